import shutil

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from tests.attacks import attack_table, tampering
from tests.builders.run_directory import KEY, make_plan, make_run
from tests.cli.conftest import owa, place
from tests.conftest import draw_nothing

__all__ = ["owa", "place"]  # fixtures of the command line


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


def pytest_addoption(parser):
    parser.addoption(
        "--attack-table",
        action="store_true",
        help="print who attacks how and what caught it (pytest tests/attacks)",
    )


@pytest.fixture(autouse=True)
def _checks_that_caught(request, monkeypatch):
    """Keep the names of the checks that failed in a test."""
    caught = []
    monkeypatch.setattr(tampering, "CAUGHT", caught)
    request.node.user_properties.append(("caught", caught))


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--attack-table"):
        return
    rows = attack_table.attack_rows(
        (report.nodeid, dict(report.user_properties).get("caught", ()))
        for report in terminalreporter.stats.get("passed", ())
    )
    terminalreporter.section("attacks")
    terminalreporter.write_line(attack_table.table(rows))
