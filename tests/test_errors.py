"""Errors of the package: what crosses a process boundary."""

from multiprocessing.reduction import ForkingPickler

import pytest

from owa_bench.errors import FieldError, MissingPartError, UnknownNameError


@pytest.mark.parametrize(
    "error",
    [
        FieldError("tier", 7, "must be one of 1, 2, 3, 4"),
        MissingPartError("Chromium", "apt-get install chromium-headless-shell"),
        UnknownNameError("suite", "toolqest", ["toolquest"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_worker_process_arrives_whole(error) -> None:
    back = ForkingPickler.loads(ForkingPickler.dumps(error))
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))
