"""Errors of the package: what crosses a process boundary."""

from multiprocessing.reduction import ForkingPickler

import pytest

from owa_bench.errors import (
    RECORD_BYTES,
    AgentRaised,
    FieldError,
    MissingPartError,
    UnknownNameError,
    bounded_record,
    error_record,
)


@pytest.mark.parametrize(
    "error",
    [
        FieldError("tier", 7, "must be one of 1, 2, 3, 4"),
        MissingPartError("Chromium", "apt-get install chromium-headless-shell"),
        AgentRaised("boom", "Traceback"),
        UnknownNameError("suite", "toolqest", ["toolquest"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_worker_process_arrives_whole(error) -> None:
    back = ForkingPickler.loads(ForkingPickler.dumps(error))
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))


def test_a_record_within_the_bound_is_kept_whole():
    text = "a line\n" * (RECORD_BYTES // 7)
    assert bounded_record(text) == text
    assert bounded_record("") == ""


def test_a_longer_record_keeps_whole_lines_of_head_and_tail():
    lines = [f"line {i:06d}\n" for i in range(10_000)]
    record = bounded_record("".join(lines))
    assert len(record.encode()) <= RECORD_BYTES
    kept = record.splitlines(keepends=True)
    (note,) = [place for place, line in enumerate(kept) if line not in set(lines)]
    left = len(lines) - (len(kept) - 1)
    assert kept[note] == f"[{left} lines left out, {left * 12} bytes]\n"
    assert kept[:note] == lines[:note]
    assert kept[note + 1 :] == lines[-(len(kept) - note - 1) :]
    assert len(record.encode()) > RECORD_BYTES - 200


def test_no_line_is_cut_in_two():
    secret = "s" * RECORD_BYTES
    assert bounded_record(f"head\n{secret}\ntail") == "head\n[1 lines left out, 16385 bytes]\ntail"


def test_a_record_holds_causes_and_the_whole_text():
    try:
        try:
            raise KeyError("inner")
        except KeyError as cause:
            raise ValueError("first\nsecond " + "x" * 1000) from cause
    except ValueError as error:
        record = error_record(error)
    assert "KeyError: 'inner'" in record
    assert record.endswith("second " + "x" * 1000 + "\n")
