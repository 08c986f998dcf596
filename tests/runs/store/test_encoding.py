"""Lines of a frame are those that `Redactor.encode` gives event by event."""

import math
from typing import get_args

import msgspec
import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.records.events import (
    DECODER,
    ENCODER,
    AnyEvent,
    Belief,
    Call,
    Execution,
    Resource,
    Violation,
)
from owa_bench.runs.store import redaction
from owa_bench.runs.store.redaction import LineBuffer, Redactor
from tests.builders.run_directory import events, make_plan

SECRET = "hunter2hunter2"


def call(**changes) -> Call:
    fields = {
        "step": 1,
        "method": "GET",
        "target": "https://x/",
        "status": 200,
        "ok": True,
        "request": "0" * 64,
        "response": "1" * 64,
    }
    return Call(**(fields | changes))


def sample() -> list[AnyEvent]:
    """Return the events of two episodes, and some of kinds that replay otherwise."""
    plan = make_plan()
    made = [e for entry in plan.entries[:2] for e in events(plan, entry, lambda _: "b")]
    return [
        *made,
        call(target=f"https://x/?key={SECRET}", headers=("a", SECRET)),
        Resource(step=1, meter="wall_s", amount=0.5),
        Execution(step=1, argv=(SECRET,), exit_code=0, output="", wall_s=1.5, cpu_s=0.5),
    ]


def slow(made: list[AnyEvent]) -> tuple[list[bytes], bytes]:
    redactor = Redactor(b"key")
    redactor.learn("s", SECRET)
    pairs = [redactor.encode(event) for event in made]
    replay = b"".join(p.replay + b"\n" for p in pairs if p.replay is not None)
    return [pair.line for pair in pairs], replay


def test_a_frame_holds_the_lines_of_its_events_one_by_one() -> None:
    redactor = Redactor(b"key")
    redactor.learn("s", SECRET)
    buffer = LineBuffer(redactor)
    made = sample()
    for event in made:
        buffer.add(event)
    frame = buffer.take()
    assert (list(frame.lines), frame.replay) == slow(made)
    assert SECRET.encode() not in b"".join(frame.lines) + frame.replay
    assert (buffer.lines, buffer.size) == ([], 0)


def test_every_kind_is_checked_without_being_decoded() -> None:
    assert redaction._FITS.keys() == set(get_args(AnyEvent))
    fits = [redaction._FITS[type(event)](event) for event in sample()]
    assert sum(fits) >= len(fits) - 2  # the starts hold an instance


@pytest.mark.parametrize(
    "event",
    [
        call(status=True),
        call(target=None),
        call(headers=(1,)),
        call(ok="yes"),
        Belief(step=1, proposition="p", kind="k", p=math.nan),
        Belief(step=1, proposition="p", kind="k", p=math.inf),
        Resource(step=1, meter="bytes", amount=1.0, stream="robot"),
        Violation(step=1, rule="r", severity="grave", evidence=""),
        Resource(step=1, meter=[], amount=1.0),
    ],
)
def test_field_that_does_not_fit_is_refused_at_once(event) -> None:
    with pytest.raises(InfrastructureFailure, match="does not fit its schema"):
        LineBuffer(Redactor(b"key")).add(event)


@pytest.mark.parametrize(
    "event",
    [
        Resource(step=1, meter="api_calls", amount=1),  # an int for a float
        call(headers=[]),  # a list for a tuple
        call(headers=["a"]),
        call(attempt=False + 0),
    ],
)
def test_line_is_the_one_encoding_of_what_it_says(event) -> None:
    buffer = LineBuffer(Redactor(b"key"))
    buffer.add(event)
    (line,) = buffer.take().lines
    assert ENCODER.encode(DECODER.decode(line)) == line
    assert line == slow([event])[0][0]


def test_a_list_changed_after_it_was_emitted_changes_no_line() -> None:
    names = ["a"]
    buffer = LineBuffer(Redactor(b"key"))
    buffer.add(call(headers=names))
    names.append("b")
    (line,) = buffer.take().lines
    assert msgspec.json.decode(line)["headers"] == ["a"]
