"""Replies give away lists, totals, cursors and names."""

import pytest

from owa_bench.agents.solvers import openapi, probing
from owa_bench.agents.solvers.probing import HttpReply


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([{"a": 1}], ()),
        ({"total": 3, "data": {"rows": [{"a": 1}]}}, ("data", "rows")),
        ({"links": ["x"], "items": [{"a": 1}]}, ("items",)),
        ({"deep": {"deeper": [{"a": 1}]}, "top": [{"a": 1}]}, ("top",)),
    ],
)
def test_finds_the_list(body: object, path: tuple[str, ...]) -> None:
    found = probing.find_list(body)
    assert found is not None
    assert found.path == path
    assert found.rows == ({"a": 1},)


def test_finds_no_list_where_there_is_none() -> None:
    assert probing.find_list({"error": "gone", "names": ["a"]}) is None


def test_totals_and_cursors_stand_in_body_or_headers() -> None:
    body = HttpReply(200, {}, {"total": 12, "next_cursor": "abc"})
    head = HttpReply(200, {"x-total-count": "12", "x-next-cursor": "abc"}, [])
    for reply in (body, head):
        assert probing.total(reply) == 12
        assert probing.cursor(reply) == "abc"
    last = HttpReply(200, {}, {"next_cursor": None})
    assert probing.cursor(last) is None
    assert probing.total(last) is None


def test_an_error_names_the_pager_it_wants() -> None:
    words = "Unknown query parameter: `offset`. Known: `page`, `per_page`."
    reply = HttpReply(400, {}, {"error": "unknown_parameter", "message": words})
    told = [name for name in probing.quoted_names(reply) if name != "offset"]
    assert openapi.pager_of({name: {} for name in told}).position == "page"


def test_an_error_lists_paths() -> None:
    body = {"message": "No such path.", "collections": ["/v1/a", "/v1/b-c"]}
    assert probing.paths(HttpReply(404, {}, body)) == ("/v1/a", "/v1/b-c")


def test_reads_challenge_and_wait() -> None:
    headers = {"www-authenticate": 'Bearer realm="x", token_endpoint="/token"', "retry-after": "7"}
    reply = HttpReply(401, headers, {})
    assert probing.challenge(reply) == {"realm": "x", "token_endpoint": "/token"}
    assert probing.retry_after(reply) == 7
    assert probing.retry_after(HttpReply(429, {"retry-after": "soon"}, {})) == 1
