"""A project under bubblewrap and one under Docker have one replay root."""

import shutil
import tempfile
from pathlib import Path

import pytest

from owa_bench.sandbox import views
from tests.builders.docker_daemon import docker_daemon
from tests.envs.projforge.test_interrupted_project import RUN, owa, root

pytestmark = [pytest.mark.project, pytest.mark.slow]
IN_DOCKER = """
import runpy, sys
from owa_bench.envs.projforge import commit_runner
from owa_bench.sandbox import backends
started = backends.DockerSandbox.open
def opened(sandbox, job):
    print("a job server in Docker")
    return started(sandbox, job)
backends.DockerSandbox.open = opened
commit_runner.BACKEND = "docker"
sys.argv[0] = "owa-bench"
runpy.run_module("owa_bench", run_name="__main__")
"""


def test_a_project_under_docker_has_the_root_of_one_under_bubblewrap(tmp_path):
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")
    first, second = tmp_path / "bubblewrap", tmp_path / "docker"
    planned = owa(*RUN, "--plan-only", "--out", first)
    assert planned.returncode == 0, planned.stderr
    shutil.copytree(first, second)  # one plan draws one project
    asked = ("--resume", "--out")
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, docker_daemon(Path(folder)):
        inside = owa(*asked, second, program=("-c", IN_DOCKER))
    assert "a job server in Docker" in inside.stdout
    assert root(inside) == root(owa(*asked, first))
