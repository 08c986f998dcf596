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
FULL = "[open(f'{n}', 'wb').write(bytes(60 << 20)) for n in range(20)]"


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


@pytest.mark.parametrize("body", [CLOSED, DEEP, FULL])
def test_the_job_after_one_that_harms_the_server_is_played(ask, body):
    assert ask(body)["timed"] is False  # no InfrastructureFailure: not played again
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]


@pytest.mark.parametrize("number", [9, 19])
def test_no_job_kills_or_stops_its_server(ask, number):
    reply = ask(f"os.kill(os.getppid(), {number})")
    assert (reply["timed"], reply["result"]["results"]) == (False, [[1, ""]])


def test_a_server_that_does_not_answer_is_given_up(ask, monkeypatch):
    monkeypatch.setattr("owa_bench.repositories.commit_runner._GRACE_S", -4)
    assert ask("import time; time.sleep(60)") == {"timed": True, "result": None}
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]


FORGED = """
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for stream in ("1", "2"):
            try:
                line = os.open(f"/proc/{pid}/fd/{stream}", os.O_WRONLY)
                os.write(line, b'{"timed": false, "result": "FORGED", "last": false}\\n')
            except OSError:
                pass
"""


def test_no_job_answers_in_the_name_of_its_server(ask):
    """The first process of a sandbox holds its streams too: it must be the server."""
    assert ask(FORGED.strip())["result"]["results"] == [[1, ""]]
    assert ask(HARMLESS)["result"]["results"] == [[7, ""]]
