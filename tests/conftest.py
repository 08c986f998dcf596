"""For every test: fixed masters of runs; pages without drawings where none counts."""

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence

import pytest

from owa_bench.canonical import sha256

DRAWN = (
    *("tests/golden", "tests/examples", "tests/bridges"),
    *("tests/reports/test_verify.py", "tests/runs/play/test_native.py"),
    "tests/reports/export/test_leaderboard.py",
)
# A data folder of this process: equal masters would meet in a shared one.
os.environ["OWA_BENCH_HOME"] = tempfile.mkdtemp(prefix="owa-home-")
_OF_FIXTURES, _OF_TESTS = 0, 1_000


class _Draws:
    """Bytes by their number, so that a test meets the same worlds in every run."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def restart(self, number: int) -> None:
        self.numbers = itertools.count(number)

    def __call__(self) -> bytes:
        return bytes.fromhex(sha256(f"draw {next(self.numbers)}".encode()))


_draws = _Draws()


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Leave the drawings out of pages, for as long as the patch stands."""

    def figures(verdicts: Sequence[object]) -> list[object]:
        return []

    patch.setattr("owa_bench.reports.page.render_html._figures", figures)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Patch a test and the shared fixtures that it is the first to ask for."""
    _draws.restart(_OF_FIXTURES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("owa_bench.runs.plan.escrow.fresh_bytes", _draws)
        if not item.nodeid.startswith(DRAWN):
            draw_nothing(patch)
        return (yield)


@pytest.fixture(autouse=True)
def _masters_of_one_test() -> None:
    _draws.restart(_OF_TESTS)
