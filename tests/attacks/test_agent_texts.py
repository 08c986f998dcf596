"""Texts and numbers that an agent sends to break what reads them: all are scored."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from owa_bench import bounded_json
from owa_bench.envs.changesurf import detectors
from owa_bench.envs.toolquest.world import Auth
from owa_bench.records.events import Action
from owa_bench.runs.store import files
from owa_bench.shells.calls import CallParser
from owa_bench.shells.native_env import read_action
from owa_bench.shells.standard_tools import tools_of
from tests.builders.api_worlds import KEY
from tests.builders.small_runs import played, run_options, small  # noqa: F401  fixtures
from tests.envs.toolquest.conftest import caller  # noqa: F401  a fixture

DEEP = "[" * 60_000
CLOSED = "[" * 500 + "]" * 500  # decodes, and breaks who walks it
HEAD = "from owa_bench.interfaces import Move\nfrom owa_bench.records.events import *\n"
FINISH = '{"tool": "finish", "arguments": {}}'


@pytest.fixture
def scored(played, small, tmp_path):  # noqa: F811
    """Return a function that plays an agent's expression, for its trace."""

    def play(expression):
        agent = tmp_path / "hostile.py"
        first = "first = True\n\ndef act(observation, info):\n    global first\n"
        last = f"    answer = {expression} if first else {FINISH!r}\n"
        agent.write_text(HEAD + first + last + "    first = False\n    return answer\n")
        request = small(str(agent))
        layout = played(request)
        (leaf,) = files.read_leaves(layout)
        assert leaf.status == "complete"
        return files.read_trace(layout, leaf)

    return play


def test_a_text_nested_without_end_is_a_refused_action(scored):
    trace = scored('"[" * 60_000')
    assert trace.end.outcome == "finished"
    assert "stand inside each other" in next(trace.of(Action)).error


def test_an_object_nested_without_end_is_scored(scored):
    trace = scored("eval('[' * 150 + ']' * 150)")
    assert trace.end.outcome == "agent_raised"


@pytest.mark.parametrize("body", [DEEP, CLOSED, "1" * 5000, "1e999", '"\\ud800"'])
@pytest.mark.parametrize("path", ["/token", "/v1/items"])
@pytest.mark.parametrize("wire", [False, True])
def test_a_body_that_breaks_decoders_is_a_bad_request(
    caller,  # noqa: F811
    body,
    path,
    wire,
):
    oauth = path == "/token"
    auth = Auth(kind="oauth2", token_path=path, scope="s", lifetime_ms=60_000)
    shop = caller(wire=wire, auth=auth if oauth else None)
    shop.read_vault()
    headers = {"content-type": "application/json", "x-api-key": KEY}
    reply = shop.http(path, "POST", body=body, headers=headers)
    assert 400 <= reply["status"] < 500


@pytest.mark.parametrize("pointer", ["/data/²", f"/data/{'9' * 5000}", "/data/-1"])
def test_a_pointer_that_is_no_index_points_at_nothing(caller, pointer):  # noqa: F811
    shop = caller()
    shop.read_vault()
    handle = shop.http("/v1/items", headers={"x-api-key": KEY})["handle"]
    result = shop.call("read", handle=handle, pointer=pointer)
    assert "nothing at the pointer" in result.text


@pytest.mark.parametrize("action", [DEEP, CLOSED, f'{{"arguments": {DEEP}'])
def test_a_nested_action_names_no_element(action):
    assert detectors._element(action) == ""


@pytest.mark.parametrize("text", [DEEP, CLOSED, "1" * 400, "[1e999]", f"[{10**30}]", f"[{2**62}]"])
@pytest.mark.parametrize(
    "space", [spaces.Discrete(2), spaces.Box(-1, 1, (1,)), spaces.Box(0, 9, (1,), np.int8)]
)
def test_a_number_that_no_array_holds_is_a_malformed_native_action(text, space):
    action, error = read_action(text, space)
    assert error is not None
    assert space.contains(action)


def test_the_parser_refuses_what_later_readers_could_not_walk():
    fault = CallParser(tools_of(())).parse(f'{{"tool": "note", "arguments": {CLOSED}}}')
    assert "stand inside each other" in fault


def test_depth_size_and_integers_are_bounded():
    deepest = "[" * bounded_json.MOST_DEPTH + "1" + "]" * bounded_json.MOST_DEPTH
    assert json.dumps(bounded_json.decode(deepest)) == deepest
    for text in (f"[{deepest}]", str(10**20), f'{{"a": [{-(10**20)}]}}', "NaN", ""):
        with pytest.raises(ValueError):
            bounded_json.decode(text)
    with pytest.raises(ValueError, match="at most 8 bytes"):
        bounded_json.decode(b'"12345678"', most_bytes=8)


REVISION = "Move({!r}, revision=Revision(step=0, proposal='p', {}))"


@pytest.mark.part(3)
@pytest.mark.parametrize(
    ("move", "field"),
    [
        ("Move({!r}, usage=(('tokens_in', 1e18),))", "usage.tokens_in"),
        ("Move({!r}, usage=(('cpu_s', float('inf')),))", "nonsense"),
        ("Move({!r}, usage=(('cpu_s', -1.0),))", "usage.cpu_s"),
        ("Move({!r}, usage=(('supervisor_min', 1.0),))", "supervisor_min"),
        ("Move({!r}, beliefs=(('a', 9.0),))", "beliefs.a"),
        (
            "Move({!r}, model_calls=(ModelCall(step=0, model='m', prompt='p', reply='',"
            " tokens_out=-5),))",
            "model_calls.tokens_out",
        ),
        (
            "Move({!r}, messages=(Message(step=0, sender='a', digest='', tokens=10**12),))",
            "messages.tokens",
        ),
        (REVISION.replace("{}", "fractions=(9, 0, 0)"), "fractions"),
        (REVISION.replace("{}", "before=1e300"), "before"),
        (REVISION.replace("{}", "ablated=-0.5"), "ablated"),
    ],
)
def test_a_declared_number_out_of_bounds_is_the_agents_failure(scored, move, field):
    trace = scored(move.replace("{!r}", repr(FINISH)))
    assert trace.end.outcome == "agent_raised"
    assert field in trace.end.reason
