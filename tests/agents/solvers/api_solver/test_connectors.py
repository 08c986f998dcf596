"""Conventions that nobody ships are worked out, kept, and used."""

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from owa_bench.agents.solvers.api_solver import connectors
from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient, Connector
from owa_bench.agents.solvers.api_solver.http_session import HttpSession
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import Security
from tests.agents.solvers.api_solver.test_authentication import drive

HOST = "https://h.example"
BOOKS = f"{HOST}/books"
KEY = base64.b64encode(b"new").decode()
OFFICE = 'Pass realm="h", office="/desk"'
FOUND = Connector(
    name="third",
    serves=("Books.",),
    place="office",
    scheme="Pass",
    fields={"kind": "visitor"},
    echoed=("floor",),
    client="Basic",
    taken="stub",
)


def refused(status: int, challenge: str, words: str) -> dict[str, Any]:
    headers = {"www-authenticate": challenge} if challenge else {}
    return {"status": status, "headers": headers, "body": {"message": words}}


def library(request: dict[str, Any]) -> dict[str, Any]:
    """A vendor with a convention of its own: passes, to be had at a desk."""
    proof = request.get("headers", {}).get("Authorization", "")
    form = request.get("body", {})
    if request["url"] == f"{HOST}/desk":
        if form.get("kind") != "visitor":
            return refused(400, "", "`kind` must be `visitor`.")
        if proof != f"Basic {KEY}":
            return refused(401, 'Basic realm="desk"', "Show your key.")
        stub = "stub-of-third-east" if form.get("floor") == "third.east" else "stub-0"
        return {"status": 200, "body": {"stub": stub, "by": "ann"}}
    if not proof.startswith("Pass stub"):
        return refused(401, OFFICE, "Get a pass at /desk.")
    if proof != "Pass stub-of-third-east":
        words = "Only for the floor `third.east`."
        return refused(403, f'{OFFICE}, floor="third.east"', words)
    return {"status": 200, "body": [{"code": "a"}]}


def test_a_convention_is_worked_out_from_refusals() -> None:
    plan = connectors.work_out(HttpSession(0), BOOKS, "new", ("Books.",))
    assert drive(plan, library) == FOUND


@pytest.mark.parametrize("secret", ["old", "x"])
def test_what_does_not_open_is_no_connector(secret: str) -> None:
    plan = connectors.work_out(HttpSession(0), BOOKS, secret, ("Books.",))
    assert drive(plan, library) is None


def test_a_kept_connector_opens_what_is_closed_without_it(tmp_path: Path) -> None:
    connectors.save_connector(tmp_path, FOUND)
    (tmp_path / "families" / "spoilt").mkdir()
    (tmp_path / "families" / "spoilt" / connectors.FILE).write_text("{}")
    known = connectors.load_connectors(tmp_path)
    assert known == (FOUND,)
    assert connectors.connector_for(known, ["Loans."]) is None
    answers = {}
    for one in (None, connectors.connector_for(known, ["Books.", "Loans."])):
        client = AuthenticatedClient(
            "Halden Ledger",
            Security("oauth2", "Authorization"),
            HOST,
            HttpSession(0),
            FactMemory(tmp_path),
            grants=False,
            connector=one,
        )
        reply = drive(client.request("GET", BOOKS), library)
        answers[one is None] = (reply.ok, client.closed)
    assert answers == {True: (False, BOOKS), False: (True, "")}


def test_a_connector_is_a_plain_file_of_its_family(tmp_path: Path) -> None:
    connectors.save_connector(tmp_path, FOUND)
    [file] = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.relative_to(tmp_path).parts == ("families", "third", "connector.json")
    assert msgspec.json.decode(file.read_bytes())["fields"] == {"kind": "visitor"}
