import shutil

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.report import statement, verify
from tests.builders.run_directory import KEY, make_plan, make_run
from tests.conftest import draw_nothing


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


@pytest.fixture
def run(honest, tmp_path):
    """A copy of the honest run, to attack."""
    return RunLayout(shutil.copytree(honest.root, tmp_path / "run"))
