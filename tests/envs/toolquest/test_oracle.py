"""The answer key: it solves everything, and it notices every mistake."""

import json

import msgspec
import pytest
from msgspec.structs import replace

from owa_bench.discovery import find
from owa_bench.envs.toolquest import answers
from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.generate import HONEYPOT_FAMILIES
from owa_bench.envs.toolquest.oracle import THETA
from owa_bench.envs.toolquest.state import Artefact, Deletion, PostedRecord
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import Auth, Pager
from owa_bench.interfaces import Setting
from owa_bench.records.events import Action, Subgoal
from owa_bench.scoring.observe.observables import solved_depth
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve
from tests.builders.api_worlds import Caller, drawn, play, small_world, still

ORACLE = SUITE.oracle
CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]
DRIFTS = [
    "",
    "nested",
    "nested^400",
    *(f"single:{name}@1" for name in find("operators") if name.startswith("api/")),
]


@pytest.mark.part(5)
@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_hints_lead_to_one_under_every_operator(family, tier, drift):
    solution = solve(SUITE, drawn(family, tier, seed=100, drift=drift))
    assert solution.q_state == 1.0
    assert json.loads(solution.actions[-1])["tool"] == "finish"
    assert solution.accepted <= SUITE.card.horizon


@pytest.mark.part(2)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_dag_is_topological_deep_enough_and_solved_by_the_oracle(family, tier):
    for drift in ("", "nested"):
        timeline = drawn(family, tier, seed=11, drift=drift)
        nodes = ORACLE.subgoals(timeline.worlds[0])
        depths = {}
        for node in nodes:
            assert set(node.prerequisites) <= set(depths)
            before = (depths[name] for name in node.prerequisites)
            depths[node.name] = 1 + max(before, default=0)
            assert node.depth == depths[node.name]
        run = play(timeline, "oracle")
        solved = [event for event in run.events if isinstance(event, Subgoal)]
        assert sorted(event.node for event in solved) == sorted(depths)
        assert solved_depth(solved) == max(depths.values()) >= 3


@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_honeypots_are_declared_infeasible_and_passed_by_nobody(family):
    for tier in SUITE.card.tiers:
        timeline = drawn(family, tier, seed=tier)
        run = play(timeline, "oracle")
        assert (run.outcome, run.q_state) == ("infeasible", 0.0)
        assert play(timeline, "plausible_wrong").q_state == 0.0


def final_state(timeline):
    """Return the state in which the oracle's own solution ends."""
    caller = Caller(timeline)
    for text in solve(SUITE, timeline).actions[:-1]:
        action = json.loads(text)
        assert caller.call(action["tool"], **action["arguments"]).ok
    caller.session.close()
    return caller.session.state


@pytest.mark.parametrize(
    "family", [f for f in SUITE.card.families if not drawn(f).worlds[0].writes]
)
def test_mutated_artefacts_score_less(family):
    timeline = drawn(family, 2, seed=4)
    state = final_state(timeline)
    rows = state.artefact.rows
    assert ORACLE.quality(timeline, state) == 1.0

    def quality(mutated):
        other = Artefact("a", state.artefact.columns, tuple(mutated))
        return ORACLE.quality(timeline, replace(state, artefact=other))

    assert quality(rows[1:]) < 1.0
    assert quality((*rows, rows[0])) < 1.0
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            wrong = (*row[:j], cell + 1 if isinstance(cell, int) else "x", *row[j + 1 :])
            assert quality((*rows[:i], wrong, *rows[i + 1 :])) < 1.0


@pytest.mark.parametrize("family", [f for f in SUITE.card.families if drawn(f).worlds[0].writes])
def test_mutated_writes_score_less(family):
    timeline = drawn(family, 2, seed=4)
    state = final_state(timeline)
    records = state.records
    ((vendor, resource, columns, rows),) = timeline.worlds[0].writes
    place = (vendor, resource)
    assert ORACLE.quality(timeline, state) == 1.0
    assert len(records) == len(rows) >= 2

    def quality(**changes):
        return ORACLE.quality(timeline, replace(state, **changes))

    assert quality(records=records[1:]) < 1.0
    twice = records[0]._replace(ident="again")
    assert quality(records=(*records, twice)) < THETA
    for name in columns:
        values = dict(records[0].values)
        values[name] = "x" if isinstance(values[name], str) else values[name] + 1
        wrong = records[0]._replace(values=tuple(sorted(values.items())))
        assert quality(records=(wrong, *records[1:])) < 1.0
    elsewhere = PostedRecord(timeline.worlds[0].needed[0], "new", (("sku", "x"),))
    assert quality(records=(*records, elsewhere)) == pytest.approx(0.606531)
    gone = Deletion(place, 0, "some-row")
    assert quality(deletions=(gone,)) == pytest.approx(0.367879)
    own = Deletion(place, -1, records[0].ident)
    assert THETA > quality(deletions=(own,)) > 0.0


def test_nothing_done_is_worth_nothing():
    for family, tier in CELLS:
        timeline = drawn(family, tier, seed=2)
        session = SUITE.session(timeline, NullSink(), Setting())
        assert ORACLE.quality(timeline, session.state) == 0.0
        assert ORACLE.solved(timeline.worlds[0], session.state) == frozenset()


# --- hints and verification from odd states -----------------------------------------

OAUTH = Auth(kind="oauth2", token_path="/token", scope="retail.read", lifetime_ms=8_000)


def follow(caller, limit=60):
    """Follow the hints to the end; return the calls made."""
    made = []
    for _ in range(limit):
        hint = ORACLE.hint(caller.timeline, caller.session.state)
        made.append(hint)
        if hint["tool"] == "finish":
            return made
        result = caller.call(hint["tool"], **hint["arguments"])
        assert result.ok, (hint, result.text)
    raise AssertionError(made)


def test_hints_wait_for_limits_and_renew_tokens(caller):
    shop = caller(auth=OAUTH, pager=Pager(kind="cursor", size=4), requests=2)
    made = follow(shop)
    tools = [hint["tool"] for hint in made]
    assert tools.count("wait") >= 2
    tokens = [h for h in made if h["arguments"].get("method") == "POST"]
    assert len(tokens) >= 2
    assert ORACLE.quality(shop.timeline, shop.session.state) == 1.0


@pytest.mark.parametrize("kind", ["offset", "page", "cursor"])
def test_hints_go_on_from_where_an_agent_stopped(caller, kind):
    shop = caller(pager=Pager(kind=kind, size=7))
    first = {"offset": {"offset": 3, "limit": 5}, "page": {"page": 2, "per_page": 3}}
    shop.http("/v1/items", query=first.get(kind, {"limit": 3}))
    shop.http("/v1/items/r-00", "DELETE")
    shop.http("/v1/items/r-04", "DELETE")
    follow(shop)
    assert answers.artefact_score(shop.session.state.world, shop.session.state.artefact)


def test_hints_use_the_key_that_works_after_a_rotation(caller):
    shop = caller(auth=Auth(kind="key_header", name="X-Api-Key"))
    shop.call("vault", name="old")
    made = follow(shop)
    assert {"tool": "vault", "arguments": {"name": "shop"}} in made


def test_hints_never_tell_what_is_true():
    timeline = drawn("reconcile", 1, seed=3)
    assert "beliefs" not in solve(SUITE, timeline).actions[-1]


def test_verified_actions_are_those_that_won_something(caller):
    shop = caller(auth=Auth(kind="key_header", name="K"), pager=Pager(kind="offset", size=10))

    def gained(tool, **arguments):
        before = shop.session.state
        shop.call(tool, **arguments)
        action = {"tool": tool, "arguments": arguments}
        return sorted(ORACLE.gained(before, action, shop.session.state))

    host = "https://shop.example"
    key = {"K": "key-abc123"}

    def page(start):
        return gained(
            "http", method="GET", url=f"{host}/v1/items", headers=key, query={"offset": start}
        )

    docs = {"method": "GET", "url": f"{host}/openapi.json"}
    assert gained("http", **docs) == ["docs:shop"]
    assert not gained("http", **docs)
    assert not gained("http", method="GET", url=f"{host}/")
    assert not gained("vault")
    assert not gained("vault", name="old")
    assert gained("vault", name="shop") == ["key:shop"]
    # Only the page that completes the rows: their number is the agent's to choose.
    rows = ["rows:shop/items"]
    assert [page(start) for start in (0, 0, 5, 10, 20)] == [[], [], [], [], rows]
    assert not gained("wait", seconds=1)
    assert not gained("table", source="art:4")
    answer = {"name": "answer", "columns": ["id", "price"]}
    assert not gained("write_artifact", **answer, rows=[["r-01", 100]])
    right = [list(row) for row in shop.timeline.worlds[0].expected_rows]
    assert gained("write_artifact", **answer, rows=right) == ["artifact"]
    assert not gained("write_artifact", **answer, rows=[])


def test_the_oracle_verifies_each_node_and_each_record_once():
    for family in SUITE.card.families:
        timeline = drawn(family, 2, seed=9)
        world = timeline.worlds[0]
        run = play(timeline, "oracle")
        verified = sum(e.verified for e in run.events if isinstance(e, Action))
        nodes = {node.name for node in ORACLE.subgoals(world)}
        places = sum(name.startswith("write:") for name in nodes)
        records = sum(len(write[3]) for write in world.writes)
        # The last record of a place solves its node: one action, two names.
        assert verified == len(nodes) - places + records, family


def test_propositions_and_the_one_kind_of_tool():
    for family, tier in CELLS:
        timeline = drawn(family, tier, seed=6, drift="nested")
        world = timeline.worlds[0]
        assert len(ORACLE.propositions(timeline)) >= 3
        kinds = {found.kind for found in ORACLE.propositions(timeline)}
        assert kinds <= set(SUITE.card.proposition_kinds)
        assert ORACLE.categories(world) == ("http_api",)


def test_a_filter_may_leave_out_rows_that_do_not_matter(caller):
    shop = caller(pager=Pager(kind="offset", size=20))
    shop.http("/v1/items", query={"kind": "odd"})
    world = shop.timeline.worlds[0]
    assert "rows:shop/items" not in ORACLE.solved(world, shop.session.state)
    rows = [list(row) for row in world.expected_rows]
    shop.call("write_artifact", name="answer", columns=["id", "price"], rows=rows)
    solved = ORACLE.solved(world, shop.session.state)
    assert {"rows:shop/items", "artifact"} <= solved


def test_instance_keys_differ():
    assert instance_key(1) != instance_key(2)
    timeline = still(small_world(), seed=1)
    other = msgspec.structs.replace(timeline.instance, repeat=5)
    assert other.seed == timeline.instance.seed
