import shutil

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.report import statement, verify
from tests.builders.run_directory import KEY, make_plan, make_run


def draw_nothing(patch):
    """Leave the drawings out of pages: tests/report draws them, attacks need none."""
    patch.setattr("owa_bench.report.render_html._figures", lambda verdicts: [])


@pytest.fixture(scope="session")
def honest(tmp_path_factory):
    """A whole, signed run with all its checks in order."""
    layout = make_run(tmp_path_factory.mktemp("honest") / "run", make_plan(2))
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        statement.write(layout.root, KEY)
        assert all(check.ok for check in verify.verify(layout.root))
        assert all(check.ok for check in verify.recompute(layout.root))
    return layout


@pytest.fixture(autouse=True)
def _without_drawings(monkeypatch):
    # Of one test alone: a whole session's patch would reach other folders' tests.
    draw_nothing(monkeypatch)


@pytest.fixture
def run(honest, tmp_path):
    """A copy of the honest run, to attack."""
    return RunLayout(shutil.copytree(honest.root, tmp_path / "run"))
