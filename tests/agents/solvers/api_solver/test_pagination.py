"""Collections that moved, against a vendor made of a dictionary."""

from pathlib import Path
from typing import Any

import pytest

from owa_bench.agents.solvers.api_solver.pagination import fetch_pages
from owa_bench.agents.solvers.openapi import Operation, PagingScheme, Property, Security
from tests.agents.solvers.api_solver.test_authentication import access, drive

SERVER = "https://h.example"
FIELDS = (Property("code", "string", "Code."), Property("name", "string", "Name."))
BOOKS = Operation("GET", f"{SERVER}/books", "Books.", (), PagingScheme("none"), FIELDS)


def moved(request: dict[str, Any]) -> dict[str, Any]:
    if request["url"] == f"{SERVER}/ledgers":
        return {"status": 200, "body": [{"code": "a", "name": "b"}]}
    return {"status": 404, "body": {"error": "gone", "collections": ["/ledgers"]}}


@pytest.mark.parametrize(
    "known", [None, f"{SERVER}/ledgers", "https://other.example/ledgers", f"{SERVER}/x"]
)
def test_documents_that_name_another_place_are_wrong_however_it_was_found(
    tmp_path: Path, known: str | None
) -> None:
    """Who remembered the place held that the documents agree with what is served.

    Who remembered it on another host called there with this vendor's credentials.
    """
    caller, calls = access(Security("none"), tmp_path), []
    found = drive(fetch_pages(caller, BOOKS, (), known), moved, calls)
    assert found.address == f"{SERVER}/ledgers"
    assert found.doc_errors == {"path"}
    assert all(call.arguments["url"].startswith(SERVER) for call in calls)
