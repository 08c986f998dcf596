"""Jobs that every backend runs; one that the machine lacks is skipped by name."""

import sys

import pytest

from owa_bench.sandbox import backends, views
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import Limits, SandboxJob
from tests.builders.docker_daemon import docker_daemon

# Docker starts a daemon and a container a job; its jobs are those of the others.
ISOLATING = ("bubblewrap", pytest.param("docker", marks=pytest.mark.slow))


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    with docker_daemon(tmp_path_factory.mktemp("docker")):
        yield


def sandbox(name, request):
    if name == "docker":
        request.getfixturevalue("daemon")
    elif name == "bubblewrap" and (fault := views.bubblewrap_fault()):
        pytest.skip(f"bubblewrap: {fault}")
    return backends.get(name)


@pytest.fixture(params=("subprocess", *ISOLATING))
def anywhere(request):
    return sandbox(request.param, request)


@pytest.fixture(params=ISOLATING)
def isolating(request):
    return sandbox(request.param, request)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def python_job(work):
    """Return a function that makes a job of Python code."""

    def make(code, limits=None, *, sandbox=None, stdin=b"", extra=()):
        plain = sandbox is not None and sandbox.name == "subprocess"
        program = sys.executable if plain else str(binds.interpreter())
        return SandboxJob(
            argv=(program, "-I", "-S", "-u", "-c", code),
            work=work,
            stdin=stdin,
            binds=(*binds.python(), *extra),
            hidden=binds.python_hidden(),
            limits=limits or Limits(),
        )

    return make
