"""Campaign batteries that ship: planned, not played, against the protocol's numbers."""

from collections import Counter, defaultdict

import msgspec
import pytest

from owa_bench.canonical import sha256
from owa_bench.records.plan import Plan
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.scoring.validation import admissibility
from tests.builders.episodes import PRICE_BYTES, PROTOCOL

FAMILY_DAY, LANE = 126, 168  # episodes and tasks of docs/scoring.md#campaigns
AGENT = "fixed"


def planned(battery: str) -> Plan:
    return draft_plan(Request(agents=(AGENT,), battery=battery)).plan


@pytest.mark.parametrize(("battery", "days"), [("level_2", 14), ("level_4", 44)])
def test_a_campaign_battery_asks_enough_of_every_day(battery: str, days: int) -> None:
    plan = planned(battery)
    own = [entry for entry in plan.entries if entry.arm == AGENT]
    practice = Counter(e.day for e in own if e.phase == "practice")
    assert set(practice) == set(range(days))
    assert min(practice.values()) >= PROTOCOL.improvement.practice_min
    base = Counter(
        (e.day, e.family)
        for e in own
        if e.phase == "checkpoint" and not e.condition and e.interventions == 0
    )
    assert len(base) == days * 6
    assert min(base.values()) >= FAMILY_DAY
    lanes: dict[tuple[str, int], set[str]] = defaultdict(set)
    sets: dict[tuple[str, int], set[str]] = defaultdict(set)
    for entry in plan.entries:
        if entry.condition in ("clean", "drifted"):
            lanes[entry.condition, entry.day].add(entry.pair)
        elif entry.condition:
            sets[entry.condition, entry.day].add(entry.pair)
    assert len(lanes) == 2 * days
    assert min(map(len, lanes.values())) >= LANE
    assert min(map(len, sets.values())) >= PROTOCOL.revision.set_min
    adopted = {day for name, day in sets if name == "before"}
    assert adopted == {14}
    assert {name for name, day in sets if day == 14} >= {"placebo", "control_after"}
    later = {day for name, day in sets if name == "after" and day > 14}
    assert len(later) == (0 if days == 14 else PROTOCOL.closures.sustained_days)
    for name, day in sets:
        assert sets[name, day] == sets["after", day]


def test_a_level_may_rest_on_a_campaign_battery() -> None:
    plan = planned("level_2")
    assert plan.battery == "level_2"
    assert plan.price_digest == sha256(PRICE_BYTES)
    plan = msgspec.structs.replace(plan, commitment="c" * 64)
    assert admissibility.check(plan, PROTOCOL) == ()
