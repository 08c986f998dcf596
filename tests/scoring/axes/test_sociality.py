"""Axis S: planted lift is found, chance is not, and talk has its price."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Conflict, Message
from owa_bench.records.score import AxisScore
from owa_bench.records.trace import Trace, sketch
from owa_bench.scoring.axes.sociality import GATED_CREW, lift
from tests.builders.episodes import episode
from tests.builders.verdicts import axis


def crews(
    quality: dict[tuple[int, bool], float],
    *,
    tasks: int = 12,
    repeats: int = 4,
    noise: float = 0.0,
    seed: int = 0,
    extra: tuple = (),
) -> list[Trace]:
    """Return one family played by crews (roles, muted) of a planted quality."""
    rng = np.random.default_rng(seed)
    traces = []
    largest = max(cap for cap, _ in quality)
    for (cap, muted), mean in quality.items():
        for k in range(tasks):
            for repeat in range(repeats):
                drawn = mean + noise * rng.standard_normal()
                state = min(max(drawn, 0.0), 0.94)
                base = 1 if (k + repeat) % 2 else largest
                traces.append(
                    episode(
                        index=len(traces),
                        pair=f"p{k}",
                        repeat=repeat,
                        role_cap=cap,
                        muted=muted,
                        control=muted or cap != base,
                        q_state=state,
                        stated=0.0,
                        extra=extra if cap > 1 and not muted else (),
                    )
                )
    return traces


def read(*args: object, **options: object) -> AxisScore:
    return axis(crews(*args, **options), "S")  # type: ignore[arg-type]


def test_a_planted_lift_is_found() -> None:
    found = read({(1, False): 0.4, (2, False): 0.7, (3, False): 0.6, (2, True): 0.4})
    room = 1 - (0.9 * 0.4 + 0.1)
    assert found.value == pytest.approx(0.9 * 0.3 / room, rel=1e-4)
    beside = found.details["beside"]
    assert beside["S_net"]["value"] == pytest.approx(found.value, rel=1e-4)
    assert found.gated == GATED_CREW
    assert beside[GATED_CREW]["value"] is None  # no reference of this suite


def test_parallel_work_alone_is_no_coordination() -> None:
    found = read({(1, False): 0.4, (2, False): 0.7, (2, True): 0.7})
    assert found.value is not None
    assert found.value > 0.4
    assert found.details["beside"]["S_net"]["value"] == 0.0


def test_crews_without_a_true_lift_read_near_zero() -> None:
    same = {(m, False): 0.5 for m in (1, 2, 3, 4)}
    split, naive = [], []
    for seed in range(4):
        found = read(same, tasks=40, noise=0.2, seed=seed)
        split.append(found.value)
        naive.append(found.details["lift_naive"])
    assert float(np.mean(split)) < 0.05
    assert float(np.mean(naive)) > 3 * float(np.mean(split))


def test_faults_cost_their_share() -> None:
    played = {(1, False): 0.4, (2, False): 0.7, (2, True): 0.4}
    clean = read(played).value
    talk = tuple(
        Message(step=1, source="env", sender="a", digest="same", tokens=1000) for _ in range(6)
    )
    fight = (Conflict(step=1, item="spec"),)
    found = read(played, extra=talk + fight)
    beside = found.details["beside"]
    assert beside["collapse"]["value"] == beside["conflict"]["value"] == 1.0
    assert clean is not None
    assert found.value == pytest.approx(clean - 2 * 0.05, rel=1e-3)
    settled = (*fight, Conflict(step=2, item="spec", resolved=True))
    assert read(played, extra=settled).value == pytest.approx(clean)


def test_what_is_missing_is_named() -> None:
    assert "no crew" in str(axis([episode()], "S").reason)
    assert "one role" in str(read({(2, False): 0.5}).reason)
    single = read({(1, False): 0.5, (2, False): 0.6}, repeats=1)
    assert "two repeats" in str(single.reason)


def test_without_a_muted_crew_the_gate_has_no_evidence() -> None:
    found = read({(1, False): 0.4, (2, False): 0.7})
    assert found.value is not None
    assert found.details["beside"]["S_net"]["value"] is None


def test_bad_capability_is_refused() -> None:
    one = np.ones(1)
    with pytest.raises(ScoringError):
        lift(one * 1.5, one)
    with pytest.raises(ScoringError):
        lift(one, np.ones(2))
    assert math.isnan(lift(one * math.nan, one)[0])


def test_what_is_declared_is_counted_beside_and_opens_no_channel() -> None:
    """An agent's own words, and roles that share one seat, are no crew."""
    quality = {(1, False): 0.4, (2, False): 0.7, (2, True): 0.4}
    talk = tuple(Message(step=1, sender="a", digest="same") for _ in range(6))
    heard = read(quality, extra=talk)
    assert heard.value == read(quality).value
    assert heard.details["messages declared"] == 6 * 12 * 4
    seatless = [alone(trace) for trace in crews(quality, extra=talk)]
    found = axis(seatless, "S")
    assert found.value is None
    assert found.reason == ("no channel of the environment: the agent declared 288 messages")


def alone(trace: Trace) -> Trace:
    """Return a trace of a suite with one seat."""
    start = msgspec.structs.replace(trace.start, seats=())
    return replace(trace, events=(start, *trace.events[1:]))


def test_one_role_that_is_played_worse_where_it_counts_less_gains_nothing() -> None:
    """C_1* is the better of all episodes of one role and of its base rows."""
    traces = crews({(1, False): 0.4, (2, False): 0.7, (2, True): 0.4})
    honest = axis(traces, "S")
    lying = [
        trace if trace.start.role_cap != 1 or not trace.start.control else with_quality(trace, 0.0)
        for trace in traces
    ]
    assert axis(lying, "S").value == pytest.approx(honest.value, abs=1e-6)


def with_quality(trace: Trace, quality: float) -> Trace:
    end = msgspec.structs.replace(trace.end, q_state=quality, quality=quality)
    return replace(trace, events=(*trace.events[:-1], end))


def test_no_room_is_no_evidence() -> None:
    found = read({(1, False): 0.92, (2, False): 0.94, (2, True): 0.92})
    assert found.value is None
    assert str(found.reason).startswith("no room: 1 - C_1* is 0.0")


def test_s_net_is_at_most_s() -> None:
    """The muted crew is one more rival, and the one role stays one."""
    found = read({(1, False): 0.6, (2, False): 0.8, (2, True): 0.2})
    assert found.details["beside"]["S_net"]["value"] == found.value


def said(*words: str) -> tuple[Message, ...]:
    return tuple(
        Message(step=i, source="env", sender="a", digest=text, sketch=sketch(text))
        for i, text in enumerate(words)
    )


WAITING = tuple(f"I am still waiting for the reply of fetcher {n}" for n in "12345")
BUSY = (
    "Vendor 12: fetched 340 rows of invoices",
    "Please check the orders again, page 3 looks short",
    "Four payments in March match no invoice",
    "Planner: give vendor 7 to the second fetcher",
    "The answer is written, nothing is open",
)


def test_near_duplicates_that_differ_in_a_letter_are_mode_collapse() -> None:
    quality = {(1, False): 0.4, (2, False): 0.7, (2, True): 0.4}
    shares = {
        words: read(quality, extra=said(*words)).details["beside"]["collapse"]["value"]
        for words in (WAITING, BUSY, WAITING[:4])
    }
    assert shares == {WAITING: 1.0, BUSY: 0.0, WAITING[:4]: 0.0}
    blind = tuple(Message(step=1, source="env", sender="a", digest=text) for text in WAITING)
    unseen = read(quality, extra=blind).details["beside"]["collapse"]["value"]
    assert unseen == 0.0  # a trace without sketches tells equal messages alone
