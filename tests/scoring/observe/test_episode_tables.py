"""Tables of episodes on events written by hand: crews, probes, project days."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records import events
from owa_bench.records.events import ProjectDay
from owa_bench.records.observables import NEAR, NO_CAP
from owa_bench.scoring.observe import episode_tables
from tests.builders.episodes import episode

NOTHING = SimpleNamespace(of=lambda kind: ())


def message(step, sender, receivers, *, asks=None, gives=(), reached=True, news=0):
    """Return a message of a crew."""
    return SimpleNamespace(
        step=step,
        sender=sender,
        receivers=receivers,
        asks=asks,
        gives=gives,
        reached=reached,
        news=news,
    )


ASK = message(2, "a", ("b", "c"), asks="x")


@pytest.mark.parametrize(
    ("told", "answered"),
    [
        (message(3, "b", ("a",), gives=("x",)), 1),
        (message(3, "c", ("b", "a"), gives=("y", "x")), 1),
        (message(2, "b", ("a",), gives=("x",)), 0),  # not after the question
        (message(3, "d", ("a",), gives=("x",)), 0),  # never asked
        (message(3, "b", ("c",), gives=("x",)), 0),  # told another
        (message(3, "b", ("a",), gives=("y",)), 0),  # another fact
    ],
)
def test_an_answer_comes_from_a_seat_that_the_question_reached(told, answered):
    found = episode_tables._together(NOTHING, [ASK, told])
    assert found["answered"] == answered
    lost = message(2, "a", ("b", "c"), asks="x", reached=False)
    missed = episode_tables._together(NOTHING, [lost, told])
    assert (missed["asks"], missed["reached"], missed["answered"]) == (1, 0, 0)


def test_what_was_told_refused_and_handed_over_is_counted():
    said = [
        message(1, "a", ("b",), gives=("x", "y"), news=1),
        message(2, "b", ("a",), gives=("z",), news=2),
    ]
    other = {"Handoff": [SimpleNamespace(untrue=n) for n in (0, 1, 3)], "CallRefusal": [None] * 4}
    trace = SimpleNamespace(of=lambda kind: iter(other[kind.__name__]))
    found = episode_tables._together(trace, said)
    counts = {"asks": 0, "reached": 0, "answered": 0, "gives": 3, "news": 3}
    assert found == counts | {"refused": 4, "handoffs": 3, "untrue": 2}


def test_runs_and_cycles_are_the_longest_in_a_row():
    assert episode_tables._longest([True, False, True, True, False]) == 2
    assert episode_tables._longest([False]) == episode_tables._longest([]) == 0
    assert episode_tables._cycle("xabababy", 2) == 4
    assert episode_tables._cycle("aaaaaa", 2) == 0
    assert episode_tables._cycle("abcabcab", 3) == 5
    assert episode_tables._cycle("ab", 2) == 0


def test_alike_is_the_longest_run_of_one_sender_by_bits_that_differ():
    def said(sender, digest, sketch):
        return SimpleNamespace(sender=sender, digest=digest, sketch=sketch)

    words = [
        said("a", "1", f"{0b0:016x}"),
        said("b", "9", f"{0xFFFF:016x}"),
        said("a", "1", f"{0b111:016x}"),  # the same text: no distance
        said("a", "2", f"{0b110:016x}"),  # one bit
        said("a", "3", f"{0b0:016x}"),  # two bits
    ]
    found = episode_tables._alike(words)
    assert len(found) == NEAR
    assert found[:3] == (2, 3, 4)
    assert set(found[3:]) == {4}
    assert episode_tables._alike([]) == (0,) * NEAR


def probe(role="agent", **changes):
    fields = {"item": "i", "lag_days": 1.0, "correct": True, "role": role}
    return events.Probe(**fields | changes)


def offer(*names, role="agent"):
    return events.ToolOffer(step=0, names=names, role=role)


@pytest.mark.parametrize(
    ("before", "zero_tool"),
    [
        ((), False),
        ((offer("answer"),), True),
        ((offer("answer", "go_on", "finish", "declare_infeasible"),), True),
        ((offer("answer", "look"),), False),
        ((offer("look"), offer("answer")), True),
        ((offer("answer"), offer("look", role="b")), True),
        ((offer("answer", role="b"),), False),
    ],
)
def test_a_probe_without_tools_is_one_whose_seat_was_last_offered_none(before, zero_tool):
    trace = episode(extra=(*before, probe()))
    (found,) = episode_tables.probe_records(trace, void=False)
    assert found.zero_tool == zero_tool
    assert (found.helped, found.new_sitting) == (False, True)


def test_help_and_sittings_before_a_probe_count():
    def help_of(kind):
        return events.Intervention(step=1, kind=kind, minutes=1.0)

    sitting = events.Sitting(step=1, number=2, role="agent")
    trace = episode(
        extra=(
            help_of("refused"),
            probe(),
            sitting,
            *(probe(sitting=n) for n in (1, 2, 3)),
            help_of("hint"),
            probe(),
        )
    )
    found = episode_tables.probe_records(trace, void=False)
    assert [one.helped for one in found] == [False] * 4 + [True]
    assert [one.new_sitting for one in found] == [True, True, False, False, True]


def test_a_void_episode_has_every_probe_wrong_and_every_entry_false():
    returned = (("d0", True), ("d1", False))
    extra = (probe(mode="retrieve", returned=returned, contrary=0), probe(contrary=3))
    first, second = episode_tables.probe_records(episode(extra=extra), void=True)
    assert first.event.returned == (("d0", False), ("d1", False))
    assert (first.event.correct, first.event.contrary) == (False, 2)
    assert (second.event.correct, second.event.contrary) == (False, 3)


def test_tracking_needs_an_error_and_a_band():
    def samples(error, tolerance):
        sample = SimpleNamespace(error=error, tolerance=tolerance)
        leaf = SimpleNamespace(attempt_id="a")
        trace = SimpleNamespace(of=lambda kind: iter([sample]), leaf=leaf)
        return episode_tables.checked_tracking(trace)

    assert len(samples(0.0, 0.5)) == 1
    for error, tolerance in ((np.nan, 1.0), (0.1, 0.0), (0.1, np.nan)):
        with pytest.raises(ScoringError, match="Tracking in attempt a"):
            samples(error, tolerance)


def test_probes_of_episodes_fill_a_table_with_as_many_slots_as_the_longest():
    longest = (("a", True), ("b", False), ("c", True))
    records = [
        episode_tables.probe_records(episode(extra=extra), void=False)
        for extra in (
            (probe(lag_days=3.0), probe(returned=longest[:1])),
            (),
            (probe(returned=longest),),
        )
    ]
    found = episode_tables.probe_table(records)
    assert found.row.tolist() == [0, 0, 2]
    assert found.lag.tolist() == [3.0, 1.0, 1.0]
    assert found.returned.tolist() == [0, 1, 3]
    assert found.verified.tolist() == [[False] * 3, [True, False, False], [True, False, True]]
    assert episode_tables.probe_table([[]]).verified.shape == (0, 0)


def test_lines_of_a_change_are_those_added_and_removed():
    files = [SimpleNamespace(added=2, removed=5), SimpleNamespace(added=1, removed=0)]
    fields = {"since": 0, "until": 1, "before": "b", "after": "a", "played": "p"}
    change = SimpleNamespace(files=files, families=("f", "g"), **fields)
    found = episode_tables.change_table([[], [change]])
    assert (found.row.tolist(), found.lines.tolist()) == ([1], [8])
    assert found.families.tolist() == [("f", "g")]


def action(observation, *, role="a", novel=False, verified=False):
    return SimpleNamespace(role=role, observation=observation, novel=novel, verified=verified)


def call(role, target, method="GET", request="r"):
    return SimpleNamespace(role=role, method=method, target=target, request=request)


def crew(*, seats=(), cap=None, bound=None, no_lift=None, **found):
    """Return the columns of an episode with these events by kind."""
    start = SimpleNamespace(
        seats=seats, role_cap=cap, muted=False, control=False, crew_bound=bound, no_lift=no_lift
    )
    trace = SimpleNamespace(start=start, of=lambda kind: iter(found.get(kind.__name__, ())))
    return episode_tables.crew_row(trace)


def told(step, *, source="env", tokens=0):
    said = message(step, "a", ("b",))
    return SimpleNamespace(
        **vars(said), source=source, tokens=tokens, digest=str(step), sketch="f" * 16
    )


def test_an_episode_of_one_silent_seat_is_no_crew():
    row = crew()
    assert (row["seats"], row["cap"], row["channel"]) == (1, NO_CAP, False)
    assert (row["idle"], row["cycle"], row["same"]) == (0, 0, 0)
    assert (row["conflict"], row["no_lift"]) == (False, False)
    assert np.isnan(row["bound"])
    known = crew(cap=3, bound=0.5, no_lift=True)
    assert (known["cap"], known["bound"], known["no_lift"]) == (3, 0.5, True)


def test_a_channel_is_a_second_seat_or_a_message_of_the_suite():
    assert not crew(seats=("a",))["channel"]
    assert crew(seats=("a", "b"))["channel"]
    assert crew(seats=("a",), Message=[told(1)])["channel"]
    assert not crew(seats=("a",), Message=[told(1, source="agent")])["channel"]


def test_messages_and_conflicts_of_the_agent_are_counted_apart():
    said = [told(1, tokens=3), told(2, source="agent", tokens=5), told(3, tokens=4)]
    row = crew(Message=said)
    assert (row["messages"], row["declared"], row["tokens"]) == (2, 1, 7)

    def conflict(item, resolved, source="env"):
        return SimpleNamespace(item=item, resolved=resolved, source=source)

    assert crew(Conflict=[conflict("x", False)])["conflict"]
    assert not crew(Conflict=[conflict("x", False), conflict("x", True)])["conflict"]
    assert crew(Conflict=[conflict("x", True), conflict("y", False)])["conflict"]
    assert not crew(Conflict=[conflict("x", False, "agent")])["conflict"]


def test_rounds_calls_and_answers_of_each_seat_are_counted():
    """Five actions in a row without a novel result are two rounds of two seats."""
    news = [True, False, False, False, False, False]
    actions = [action("o", role="ab"[i % 2], novel=n) for i, n in enumerate(news)]
    actions[0].verified = actions[2].verified = True
    calls = [call("a", t) for t in "xyxyxzzz"] + [call("b", "z")]
    calls += [call("b", "z", "POST"), call("b", "z", "POST", "s")]
    row = crew(seats=("a", "b"), Action=actions, Call=calls)
    assert (row["idle"], row["cycle"], row["same"]) == (2, 3, 3)
    assert (row["answers"], row["verified"]) == (2, 2)
    five = crew(Call=[call("a", t) for t in "vwxyzvwxyz"])
    assert (five["cycle"], five["same"]) == (5, 1)
    assert crew(Call=[call("a", t) for t in "uvwxyzuvwxyz"])["cycle"] == 0


def test_a_void_day_of_a_project_earns_nothing_and_what_was_not_due_stays_so():
    fields = {"green": True, "acceptance": 0.5, "service": 1.0, "release": None}
    day = ProjectDay(step=1, day=3, postmortem=0.25, **fields)
    trace = episode(extra=(day,))
    assert episode_tables.project_days(trace, void=False) == (day,)
    (found,) = episode_tables.project_days(trace, void=True)
    marks = (found.green, found.acceptance, found.service, found.postmortem)
    assert marks == (False, 0.0, 0.0, 0.0)
    assert (found.release, found.day) == (None, 3)
