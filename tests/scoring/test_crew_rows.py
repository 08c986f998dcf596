"""How a crew works together, read from its channel's events by hand."""

import pytest

from owa_bench.records.events import CallRefusal, Handoff, Message
from owa_bench.scoring.observe.episode_tables import crew_row
from tests.builders.episodes import episode
from tests.builders.verdicts import axis
from tests.scoring.axes.test_sociality import crews


def said(step, sender, to, **what):
    source = what.pop("source", "env")
    return Message(
        step=step, source=source, sender=sender, receivers=(to,), digest=f"{step}{sender}", **what
    )


TALK = (
    said(1, "a", "b", asks="x.tag", reached=True),
    said(2, "b", "a", gives=("x.tag", "y.tag"), news=1),  # answers the first
    said(3, "a", "c", asks="z.tag"),  # asks who does not know
    said(4, "a", "b", asks="x.key", reached=True),
    said(5, "c", "a", gives=("x.key",)),  # another seat tells it
    said(6, "a", "b", source="agent", asks="x.key", reached=True, gives=("q.tag",)),
    Handoff(step=7, item="x", sender="a", receiver="b", untrue=2),
    Handoff(step=8, item="y", sender="a", receiver="b"),
    CallRefusal(step=9, tool="merge"),
)


def test_questions_answers_facts_and_refusals_are_counted() -> None:
    row = crew_row(episode(role_cap=3, extra=TALK))
    assert (row["asks"], row["reached"], row["answered"]) == (3, 2, 1)
    assert (row["gives"], row["news"]) == (3, 1)
    assert (row["handoffs"], row["untrue"], row["refused"]) == (2, 1, 1)
    assert row["declared"] == 1


def test_the_report_shows_them_beside_s_and_they_do_not_move_it() -> None:
    quality = {(1, False): 0.4, (2, False): 0.7, (2, True): 0.4}
    plain, talking = (axis(crews(quality, extra=e), "S") for e in ((), TALK))
    beside = talking.details["beside"]
    assert beside["asks that reach who knows"]["value"] == pytest.approx(2 / 3)
    assert beside["asks answered"]["value"] == pytest.approx(1 / 2)
    assert beside["facts told that were needed"]["value"] == pytest.approx(1 / 3)
    assert beside["manifests untrue"]["value"] == pytest.approx(1 / 2)
    assert beside["calls refused"]["value"] == pytest.approx(1 / 8)
    assert plain.details["beside"]["asks answered"]["value"] is None
    assert talking.value == pytest.approx(plain.value)
