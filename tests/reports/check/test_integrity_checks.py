"""Integrity checks of one attempt after another: what is right and what is not."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records import events
from owa_bench.records.instance import Instance
from owa_bench.records.plan import Budget, Plan, PlanEntry
from owa_bench.records.trace import Closing, Trace
from owa_bench.reports.check.integrity_checks import (
    AttemptFaults,
    _clock_faults,
    check_attempts,
    check_result,
    skipped_check,
)
from owa_bench.reports.read.attempts import AttemptDigests, RecordedAttempt
from owa_bench.seeding import commitment, instance_seed
from tests.builders.episodes import episode, plan_of

MASTER, NONCE = b"m" * 32, b"n" * 32


def recorded(trace: Trace, *, closed: bool = True, **changes: Any) -> RecordedAttempt:
    """Return a trace as its lines show it."""
    name = trace.leaf.attempt_id
    closing = Closing(
        closing=name, status="complete", count=len(trace.events), head="h", replay="r"
    )
    fields: dict[str, Any] = {
        "attempt_id": name,
        "frames": (),
        "count": len(trace.events),
        "digests": lambda: AttemptDigests("h", "r"),
        "closing": closing if closed else None,
        "events": trace.events,
        "faults": (),
    }
    return RecordedAttempt(**(fields | changes))


def two() -> list[Trace]:
    """Return the episodes of two pairs, their calls counted once."""
    one_call = (("api_calls", 3.0, "agent"),)
    return [episode(index=i, pair=f"p{i}", costs=one_call) for i in range(2)]


def checked(
    attempts: list[RecordedAttempt], plan: Plan | None = None, **changes: Any
) -> AttemptFaults:
    """Return the faults of attempts of which `leaves.jsonl` says the same."""
    bundle: dict[str, Any] = {
        "attempts": lambda: attempts,
        "recorded_leaves": [one.leaf for one in attempts],
        "plan": plan_of(two()) if plan is None else plan,
        "reveal": lambda: None,
        "faults": [],
        "leaf_faults": [],
        "missing": (),
        "layout": SimpleNamespace(reveal="reveal.json"),
        "plan_digest": "",
    }
    return check_attempts(SimpleNamespace(**(bundle | changes)))  # type: ignore[arg-type]


def faults(*arguments: Any, **changes: Any) -> dict[str, list[str]]:
    found = checked(*arguments, **changes).faults
    return {name: texts for name, texts in found.items() if texts}


def honest() -> list[RecordedAttempt]:
    return [recorded(trace) for trace in two()]


def changed(place: int, **terms: Any) -> list[RecordedAttempt]:
    """Return two attempts, the second's start with other terms."""
    first, second = two()
    start = msgspec.structs.replace(second.start, **terms)
    whole = (start, *second.events[1:])
    return [recorded(first), recorded(second, events=whole)]


def test_honest_attempts_have_no_faults() -> None:
    found = checked(honest())
    assert not any(found.faults.values())
    assert [leaf.attempt_id for leaf in found.leaves] == ["000000.0", "000001.0"]
    assert not found.revealed


def test_heads_and_counts_are_compared_with_closing_line_and_leaf() -> None:
    first, second = honest()
    other = recorded(two()[1], digests=lambda: AttemptDigests("other", "r"))
    assert faults([first, other], recorded_leaves=[first.leaf, second.leaf]) == {
        "chain": [
            "000001.0: its lines do not hash to the head in its closing line",
            "000001.0: its lines do not hash to the head in leaves.jsonl",
        ],
        "leaf": ["000001.0: leaves.jsonl differs from the shards"],
    }
    n = second.count
    longer = recorded(two()[1], count=n + 1)
    found = faults([first, longer], recorded_leaves=[first.leaf, second.leaf])
    assert found["count"] == [
        f"000001.0: {n + 1} events, its closing line says {n}",
        f"000001.0: {n + 1} events, leaves.jsonl says {n}",
    ]


def test_attempts_on_one_side_alone_are_named() -> None:
    first, second = honest()
    found = faults([first], recorded_leaves=[first.leaf, second.leaf])
    assert found == {
        "count": ["000001.0: in leaves.jsonl, not in the shards"],
        "chain": ["000001.0: there are no lines to hash"],
    }
    found = faults([first, second], recorded_leaves=[first.leaf])
    assert found == {"count": ["000001.0: in the shards, not in leaves.jsonl"]}
    torn = recorded(two()[1], closed=False, events=two()[1].events[:-1])
    assert faults([first, torn], recorded_leaves=[first.leaf]) == {}


def again(status: str, number: int = 1) -> RecordedAttempt:
    """Return a further attempt of entry 1."""
    trace = two()[1]
    start = msgspec.structs.replace(trace.start, attempt=number)
    name = f"000001.{number}"
    closing = Closing(closing=name, status=status, count=len(trace.events), head="h", replay="r")
    return recorded(trace, attempt_id=name, closing=closing, events=(start, *trace.events[1:]))


def test_attempts_are_numbered_from_0_and_end_with_a_complete_one() -> None:
    first, second = honest()
    failed = recorded(
        two()[1], closing=msgspec.structs.replace(second.closing, status="infrastructure")
    )
    assert faults([first, failed, again("complete")]) == {}
    assert faults([first, second, again("complete")]) == {
        "count": ["entry 1 was played again after a complete attempt"]
    }
    assert faults([first, failed, again("complete", 2)]) == {
        "count": ["entry 1 has attempts [0, 2], not all from 0"]
    }
    missing = faults([first, second], missing=(2, 3))
    assert missing == {"count": ["2 planned episodes have no attempt"]}


def test_no_more_than_three_attempts_may_fail_through_the_harness() -> None:
    lost = [again("infrastructure", number) for number in range(1, 4)]
    first = recorded(
        two()[1], closing=msgspec.structs.replace(honest()[1].closing, status="infrastructure")
    )
    assert faults([honest()[0], first, *lost[:2]]) == {}
    assert faults([honest()[0], first, *lost]) == {
        "count": [
            "entry 1 was played again after 3 attempts that the harness failed, the "
            "plan's rule allows 3"
        ]
    }


def test_faults_of_files_are_passed_on() -> None:
    broken = recorded(two()[1], faults=("a torn frame",))
    found = faults([honest()[0], broken], faults=["no shard"], leaf_faults=["no leaf"])
    torn = "attempt 000001.0 does not read and counts as a failure of quality 0"
    frames = [f"{torn} (a torn frame)", "no shard"]
    assert found == {"frames": frames, "leaf": ["no leaf"]}


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        ({"index": 0}, "000001.0: holds the episode 000000.0"),
        ({"attempt": 3}, "000001.0: holds the episode 000001.3"),
        ({"delta": 0.5}, "000001.0: delta is 0.5, planned 0.0"),
        ({"muted": True}, "000001.0: muted is True, planned False"),
        ({"phase": "practice"}, "000001.0: phase is 'practice', planned 'holdout'"),
        (
            {"fingerprint": "g"},
            "000001.0: fingerprint of the agent is not the one planned for agent",
        ),
    ],
)
def test_terms_other_than_planned_are_named(terms: Any, fault: str) -> None:
    assert faults(changed(1, **terms))["episode id"] == [fault]


def shared(kind: type[msgspec.Struct]) -> list[str]:
    """Return the fields that a record has in common with a plan entry."""
    return sorted(set(kind.__struct_fields__) & set(PlanEntry.__struct_fields__))


@pytest.mark.parametrize("term", [*shared(events.EpisodeStart), "priced"])
def test_every_term_of_an_entry_that_a_start_repeats_is_compared(term: str) -> None:
    value = 99 if term == "index" else True if term == "priced" else "another"
    named = "holds the episode 000099.0" if term == "index" else f"{term} is {value!r}"
    found = faults(changed(1, **{term: value}))["episode id"]
    assert found[0].startswith(f"000001.0: {named}")


@pytest.mark.parametrize("part", shared(Instance))
def test_another_instance_than_planned_is_named(part: str) -> None:
    entry = plan_of(two()).entries[1]
    other = msgspec.structs.replace(two()[1].start.instance, **{part: 2})
    named = f"its instance's {part} is not the planned {getattr(entry, part)!r}"
    found = faults(changed(1, instance=other))
    assert found == {"episode id": [f"000001.0: {named}"]}


def test_an_entry_that_was_not_planned_is_named() -> None:
    plan = plan_of(two()[:1])
    found = faults(honest(), plan)
    assert found == {"episode id": ["000001.0: the plan has no entry 1"]}


def test_an_attempt_begins_and_ends_once() -> None:
    first, (start, *rest, end) = honest()[0], two()[1].events
    begin = "000001.0: must begin with its one episode_start"
    close = "000001.0: must close with its one episode_end"
    for sequence, expected in (
        ((start, start, *rest, end), [begin]),
        ((*rest, end), [begin]),
        ((start, *rest), [close]),
        ((start, end, *rest, end), [close]),
        ((start, end, *rest), [close]),
        ((), [begin, close]),
    ):
        attempt = recorded(two()[1], events=sequence)
        assert faults([first, attempt])["episode id"] == expected
    for sequence, expected in (((), None), ((start, *rest), None), (tuple(rest), [begin])):
        unfinished = recorded(two()[1], closed=False, events=sequence)
        found = faults([first, unfinished], recorded_leaves=[first.leaf])
        assert found.get("episode id") == expected


def test_a_closing_line_of_another_attempt_is_named() -> None:
    first, second = honest()
    closing = msgspec.structs.replace(second.closing, closing="000009.0")
    other = recorded(two()[1], closing=closing)
    assert faults([first, other]) == {
        "episode id": ["000001.0: its closing line is that of 000009.0"]
    }


def revealed(master: bytes = MASTER, nonce: bytes = NONCE) -> SimpleNamespace:
    return SimpleNamespace(master=master.hex(), nonce=nonce.hex())


def seeded() -> list[RecordedAttempt]:
    """Return the episodes under the seeds of the master."""
    made = []
    for trace in two():
        seed = instance_seed(MASTER, trace.start.pair)
        instance = msgspec.structs.replace(trace.start.instance, seed=seed)
        start = msgspec.structs.replace(trace.start, instance=instance)
        made.append(recorded(trace, events=(start, *trace.events[1:])))
    return made


def committed() -> Plan:
    plan = plan_of(two())
    return msgspec.structs.replace(plan, commitment=commitment(NONCE, MASTER))


def test_seeds_are_the_masters_once_it_is_revealed() -> None:
    found = checked(seeded(), committed(), reveal=revealed)
    assert not any(found.faults.values())
    assert found.revealed
    other = faults(honest(), committed(), reveal=revealed)
    assert other["seed"] == [
        f"00000{i}.0: not the seed that the master gives p{i}" for i in range(2)
    ]
    closed = faults(seeded(), plan_of(two()), reveal=revealed)
    words = "what was revealed does not open the plan's commitment"
    assert closed == {"seed": [words]}


def test_a_reveal_must_be_hex() -> None:
    odd = SimpleNamespace(master="xyz", nonce="")
    with pytest.raises(RunDirectoryError, match="must hold hex strings"):
        faults(honest(), reveal=lambda: odd)


def test_a_pair_has_one_seed() -> None:
    traces = [episode(index=i, costs=(("api_calls", 3.0, "agent"),)) for i in range(2)]
    instance = msgspec.structs.replace(traces[1].start.instance, seed=8)
    start = msgspec.structs.replace(traces[1].start, instance=instance)
    other = recorded(traces[1], events=(start, *traces[1].events[1:]))
    found = faults([recorded(traces[0]), other], plan_of(traces))
    assert found == {"seed": ["000001.0: the pair p0 has two seeds"]}


def extended(*extra: events.AnyEvent, **terms: Any) -> list[RecordedAttempt]:
    """Return two attempts, the second with further events before its end."""
    first, second = two()
    start = msgspec.structs.replace(second.start, **terms)
    whole = (start, *second.events[1:-1], *extra, second.events[-1])
    attempt = recorded(second, events=whole)
    closing = msgspec.structs.replace(attempt.closing, count=attempt.count)
    return [recorded(first), recorded(second, events=whole, closing=closing)]


def call(method: str, **more: Any) -> events.Call:
    return events.Call(
        step=1,
        method=method,
        target="/",
        status=200,
        category="",
        ok=True,
        request=more.get("request", "r"),
        response=more.get("response", "s"),
    )


def paid(meter: str, amount: float, source: str = "harness") -> events.Resource:
    return events.Resource(step=1, meter=meter, amount=amount, source=source)


def test_meters_are_what_the_events_make() -> None:
    help_ = events.Intervention(step=1, kind="hint", minutes=2.5)
    minutes = paid("supervisor_min", 2.5)
    assert faults(extended(call("POST"), paid("api_calls", 1.0))) == {}
    assert faults(extended(call("VAULT"), help_, minutes, paid("tokens_in", 9.0))) == {}
    assert faults(extended(call("GET")))["cost"] == [
        "000001.0: api_calls is metered as 3, its events make 4"
    ]
    assert faults(extended(help_))["cost"] == [
        "000001.0: supervisor_min is metered as 0, its events make 2.5"
    ]
    declared = faults(extended(call("GET"), paid("api_calls", 1.0, "agent")))
    assert declared["cost"] == ["000001.0: api_calls is metered as 3, its events make 4"]
    within, beyond = (paid("api_calls", 1.0 + x) for x in (0.9e-6, 1.1e-6))
    assert faults(extended(call("GET"), within)) == {}
    assert len(faults(extended(call("GET"), beyond))["cost"]) == 1
    first, broken = extended(call("GET"))
    torn = recorded(two()[1], closed=False, events=broken.events[:-1])
    assert faults([first, torn], recorded_leaves=[first.leaf]) == {}


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        *((m, 1) for m in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
        *((m, 0) for m in ("VAULT", "get", "")),
    ],
)
def test_calls_over_the_network_are_metered_and_those_of_tools_not(method: str, calls: int) -> None:
    metered = [paid("api_calls", 1.0)] * calls
    assert faults(extended(call(method), *metered)) == {}
    assert faults(extended(call(method), *metered, paid("api_calls", 1.0))) != {}


def inner(number: int, **more: Any) -> events.InnerAttempt:
    fields: dict[str, Any] = {"version": "v", "draw": "d", "replay": "r"}
    fields |= {"quality": 0.5, "logged": 0.5, "step": 1, "steps": 1}
    return events.InnerAttempt(batch="b", number=number, pair=number, **fields | more)


def test_inner_attempts_of_whole_episodes_are_counted_and_judged() -> None:
    assert checked(honest()).inner_attempts == 0
    assert checked(extended(inner(0), inner(1))).inner_attempts == 2
    first, second = extended(inner(1))
    assert faults([first, second]) == {
        "inner attempts": [
            "000001.0: b: its attempts are not numbered from 0",
            "000001.0: inner attempts without a campaign",
        ]
    }
    torn = recorded(two()[1], closed=False, events=second.events[:-1])
    assert faults([first, torn], recorded_leaves=[first.leaf]) == {}


def test_a_suites_own_meters_count_its_own_events() -> None:
    own = (
        events.WitnessedMeter(meter="pages", witness="call"),
        events.WitnessedMeter(meter="minutes", witness="intervention", field="minutes"),
    )
    help_ = events.Intervention(step=1, kind="hint", minutes=2.5)
    right = (help_, paid("supervisor_min", 2.5), paid("minutes", 2.5), paid("pages", 3.0))
    assert faults(extended(*right, meters=own)) == {}
    odd = events.WitnessedMeter(meter="odd", witness="call", field="nothing")
    assert faults(extended(*right, meters=(*own, odd))) == {}
    wrong = faults(extended(*right[:3], meters=own))["cost"]
    assert wrong == ["000001.0: pages is metered as 0, its events make 3"]


def test_the_blobs_of_events_are_named_by_whole_digests() -> None:
    names = [f"{i:064x}" for i in range(11)]
    a, b, c, d, e, f, g, h, i, j, partial = names
    found = checked(
        extended(
            call("VAULT", request=a, response=b),
            events.Observation(step=1, blob=c),
            events.Intervention(step=1, kind="hint", minutes=0.0, question=d, answer=e),
            events.Artifact(step=1, name="n", media="m", blob=f),
            events.Evidence(step=1, name="n", media="m", blob=g),
            events.ModelCall(step=1, model="m", prompt=h, reply=i[:-1]),
            events.Message(step=1, sender="s", digest=i),
            inner(0, replay=j, full=True),
            inner(1, replay=partial),  # its lines are not kept
        )
    )
    assert found.digests == set(names[:-1])


def timed(wall_s: float, outcome: str, reason: str = "", **changes: Any) -> list[str]:
    """Return the faults of an attempt that a clock ended, act 10 s, episode 60 s."""
    budget = {"act_s": 10.0, "episode_wall_s": 60.0}
    limits = {"run_meters": (("gpu_s", 5.0),), "episode_meters": (("cpu_s", 5.0),)}
    plan = Budget(**(budget | limits | changes))
    first = two()[0]
    end = msgspec.structs.replace(
        first.end, outcome=outcome, reason=reason, timed=True, wall_s=wall_s
    )
    attempt = recorded(first, events=(*first.events[:-1], end))
    return list(_clock_faults(attempt, plan))


@pytest.mark.parametrize(
    ("wall_s", "outcome", "reason", "changes", "least"),
    [
        (9.9, "agent_timeout", "", {}, None),  # one hundredth of slack
        (9.89, "agent_timeout", "", {}, "10"),
        (4.9, "agent_timeout", "", {"episode_wall_s": 5.0}, "5"),
        (4.95, "agent_timeout", "", {"episode_wall_s": 5.0}, None),
        (9.8, "agent_timeout", "", {"episode_wall_s": None}, "10"),
        (59.4, "truncated", "budget:wall_s", {}, None),
        (59.3, "truncated", "budget:wall_s", {}, "60"),
        (0.0, "truncated", "budget:cpu_s", {}, None),
        (0.0, "truncated", "budget:gpu_s", {}, None),
        (0.0, "truncated", "steps", {}, None),
        (0.0, "finished", "budget:wall_s", {}, None),
    ],
)
def test_a_clock_ends_nothing_before_its_limit(
    wall_s: float, outcome: str, reason: str, changes: Any, least: str | None
) -> None:
    expected = [
        f"000000.0: a clock ended it after {wall_s:g} s, the least that the plan gives is {least} s"
    ]
    assert timed(wall_s, outcome, reason, **changes) == (expected if least else [])


def test_a_clock_that_the_plan_does_not_have_ends_nothing() -> None:
    none = {"episode_wall_s": None}
    found = timed(99.0, "truncated", "budget:wall_s", **none)
    assert found == ["000000.0: a clock of wall_s ended it, the plan has none"]
    tokens = {"episode_meters": (("tokens_in", 5.0),), "run_meters": ()}
    found = timed(0.0, "truncated", "budget:tokens_in", **tokens)
    assert found == ["000000.0: a clock of tokens_in ended it, the plan has none"]
    whole = {"episode_wall_s": None, "run_meters": (("wall_s", 99.0),)}
    found = timed(1.0, "truncated", "budget:wall_s", **whole)
    assert "the least that the plan gives is 10 s" in found[0]


def test_three_faults_are_shown_and_the_rest_counted() -> None:
    assert check_result("n", ["a", "b", "c"], "good") == ("n", False, "a; b; c", False)
    more = check_result("n", list("abcde"), "good")
    assert more.detail == "a; b; c; and 2 more"
    assert check_result("n", [], "good") == ("n", True, "good", False)
    assert skipped_check("n", "why") == ("n", True, "not checked: why", True)
