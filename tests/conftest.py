"""For every test: fixed masters of runs; pages without drawings where none counts."""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from owa_bench.canonical import sha256

DRAWN = ("tests/report", "tests/golden", "tests/examples", "tests/bridges")
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


def pytest_runtest_setup() -> None:
    """Let shared fixtures draw the same, whichever test is the first to ask."""
    _draws.restart(_OF_FIXTURES)


@pytest.fixture(autouse=True, scope="session")
def _fixed_masters() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("owa_bench.run.plan.escrow.fresh_bytes", _draws)
        yield


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Leave the drawings out of pages, for as long as the patch stands."""

    def figures(verdicts: Sequence[object]) -> list[object]:
        return []

    patch.setattr("owa_bench.report.render_html._figures", figures)


@pytest.fixture(autouse=True)
def _of_one_test(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    _draws.restart(_OF_TESTS)
    # Of one test alone: a whole session's patch would reach other folders' tests.
    if not request.node.nodeid.startswith(DRAWN):
        draw_nothing(monkeypatch)
