"""Breadth of tool use cannot be bought: not by many vendors of one kind, nor by idle calls."""

import msgspec
import pytest

from owa_bench.discovery import get
from owa_bench.records.events import Action, Call
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import ListSink
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.toy_suite import SUITE as CORRIDOR
from tests.builders.verdicts import axis

NEEDED = ("cloud", "files", "version_control")


def solved(suite, family):
    """Return the events of the answer key's way, and the kinds that the world needs."""
    card = suite.card
    given = Instance(suite=card.name, version=card.version, family=family, tier=1, seed=3)
    world = suite.generate(given)
    line = Timeline(instance=given, starts=(0,), worlds=(world,), changes=((),), realised=0.0)
    sink = ListSink()
    play = Episode(suite, line, sink=sink, terms=EpisodeTerms())
    while play.ending is None:
        hint = suite.oracle.hint(line, play.session.state)
        play.step(call_text(hint["tool"], hint["arguments"]))
    play.close()
    assert play.ending.success
    return sink.events, suite.oracle.categories(world)


def acts(*kinds):
    """Return calls of these kinds that went well, the last of which is verified."""
    fields = {"action": "{}", "reward": 0.0, "terminated": False, "truncated": False}
    return [
        Action(step=i, category=kind, verified=i == len(kinds), observation="o", at_ms=i, **fields)
        for i, kind in enumerate(kinds, 1)
    ]


def breadth(events, needed):
    """Return how many kinds axis T counts where every task is played like this."""
    extra = tuple(event for event in events if isinstance(event, Action))
    rest = {"verified": 0, "used": (), "categories": needed, "extra": extra}
    traces = [
        episode(index=2 * i + k, pair=f"p{k}", delta=delta, **rest)
        for i, delta in enumerate(PROTOCOL.drift.magnitudes)
        for k in range(2)
    ]
    return axis(traces, "T").details["beside"]["categories used"]["value"]


@pytest.mark.parametrize("family", ["reconcile", "restock", "incident_timeline"])
def test_many_vendors_of_one_kind_are_one_kind_of_tool(family):
    events, needed = solved(get("suites", "toolquest"), family)
    urls = [event.target for event in events if isinstance(event, Call)]
    assert len({url.split("/")[2] for url in urls if "//" in url}) >= 2
    assert needed == ("http_api",)
    assert breadth(events, needed) == 1.0


def test_three_kinds_that_a_success_rests_on_are_three():
    """The control of the test above, and of the two below."""
    assert breadth(acts("files", "version_control", "cloud"), NEEDED) == 3.0


def test_calls_after_the_last_gain_serve_nothing():
    idle = [msgspec.structs.replace(a, step=9, verified=False) for a in acts("cloud")]
    assert breadth([*acts("files", "version_control"), *idle], NEEDED) == 2.0


def test_kinds_that_the_task_does_not_need_count_nothing():
    idle = ("browser", "code", "packages")
    assert breadth(acts(*idle, "files", "version_control"), NEEDED) == 2.0


def test_a_suite_of_two_kinds_shows_two():
    events, needed = solved(CORRIDOR, "short")
    assert needed == ("cloud", "files")
    assert breadth(events, needed) == 2.0


@pytest.mark.slow
def test_a_project_takes_three_kinds():
    suite = get("suites", "projforge")
    events, needed = solved(suite, suite.card.families[0])
    assert needed == NEEDED
    assert breadth(events, needed) == 3.0
