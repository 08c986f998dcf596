"""Pages without drawings, except where pages are what is tested."""

from collections.abc import Sequence

import pytest

DRAWN = ("tests/report", "tests/golden", "tests/examples", "tests/bridges")


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Leave the drawings out of pages, for as long as the patch stands."""

    def figures(verdicts: Sequence[object]) -> list[object]:
        return []

    patch.setattr("owa_bench.report.render_html._figures", figures)


@pytest.fixture(autouse=True)
def _without_drawings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of one test alone: a whole session's patch would reach other folders' tests.
    if not request.node.nodeid.startswith(DRAWN):
        draw_nothing(monkeypatch)
