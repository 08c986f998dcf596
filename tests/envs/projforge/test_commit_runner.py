"""Jobs that harm their server: the job is the loser, never the harness or the next."""

import shutil

import pytest

from owa_bench.repositories.commit_runner import CommitRunner
from owa_bench.repositories.pushes import WorktreeFiles
from owa_bench.repositories.repository import ProjectRepository
from owa_bench.sandbox import views

pytestmark = pytest.mark.skipif(
    bool(views.bubblewrap_fault()) or shutil.which("git") is None,
    reason="git or bubblewrap does not work here",
)
HARMLESS = "return 7"
CLOSED = "[os.chmod(p, 0) for p in ('/work', '/tmp', '/dev/shm')]"
DEEP = "os.chdir('/work'); [(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]"
KILLED = "os.kill(os.getppid(), 9)"


@pytest.fixture
def ask(tmp_path):
    """Return a function that asks the code with a body for its answer."""
    git = ProjectRepository(tmp_path / "repository")
    files, runner = WorktreeFiles(git.worktree), CommitRunner(tmp_path / "runner", git)

    def asked(body):
        code = f"import os\n\n\ndef handle(name, rows):\n    {body}\n    return 1\n"
        files.write("app/__init__.py", "")
        files.write("app/service.py", code)
        git.commit("Next", "platform", 0)
        case = {"site": [], "strict": False, "cases": [["x", []]]}
        tree = runner.tree(git.head())
        return runner.job(job="answers", tree=tree, cpu_s=2, wall_s=5, **case)

    yield asked
    runner.close()
    assert not (tmp_path / "runner" / "work").exists()


@pytest.mark.parametrize("body", [CLOSED, DEEP, KILLED])
def test_the_job_after_one_that_harms_the_server_is_played(ask, body):
    assert ask(body)["timed"] is False  # no InfrastructureFailure: not played again
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]


def test_a_job_that_stops_its_server_is_timed(ask, monkeypatch):
    monkeypatch.setattr("owa_bench.repositories.commit_runner._GRACE_S", 1)
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]
    assert ask("os.kill(os.getppid(), 19)") == {"timed": True, "result": None}
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]
