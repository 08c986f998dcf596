"""Agents that are container images, named by digest: the image's own command is played.

It speaks JSON lines (`docs/wire-protocol.md`) over a pipe, in a container of Docker without
network, whose root is read-only; `/memory` is its folder.
"""

import os
import re
import secrets
import shutil
import subprocess

from owa_bench.sandbox import views
from owa_bench.sandbox.first_process import ProgramLimits
from owa_bench.sandbox.namespaces import SandboxView

_IMAGE = re.compile(r"(?:[a-z0-9][a-z0-9._/:-]*@)?sha256:([0-9a-f]{64})")
_NAME_DIGITS = 12
# Twice: the daemon may still be making it when its client has ended.
_REMOVE = 'read -r _; for pause in 5 0; do "$0" rm -f -v "$1"; sleep $pause; done'


def is_image(spec: str) -> bool:
    """Return whether an agent's spec names an image: sha256:HEX or NAME@sha256:HEX."""
    return _IMAGE.fullmatch(spec) is not None


def image_name(spec: str) -> str:
    """Return what an arm that plays an image is called: its repository's name and its digest's."""
    named, _, digest = spec.rpartition("sha256:")
    word = named.rstrip("@").rpartition("/")[2].partition(":")[0]
    return f"{word or 'image'}-{digest[:_NAME_DIGITS]}"


def image_fault(spec: str) -> str:
    """Return why an image cannot be played on this machine, "" if it can."""
    if fault := views.docker_fault():
        return fault
    command = [_program(), "image", "inspect", spec]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return "" if done.returncode == 0 else f"Docker holds no image {spec} (docker load)"


def image_command(spec: str, view: SandboxView, limits: ProgramLimits) -> list[str]:
    """Return the command line that plays an image, whose container ends with it.

    A process of its own removes the container as soon as this one, which is to become Docker's
    client, has ended: the container is no child of it.

    Args:
        spec: The image.
        view: What it sees beside its own files; its folder is the image's own.
        limits: What it may use.
    Returns: The command line, to be executed by this process.
    """
    name = f"owa-agent-{secrets.token_hex(8)}"
    *options, _, _ = views.docker_options(view, memory=limits.memory, tasks=limits.processes * 8)
    options += ["--ulimit", f"cpu={limits.cpu_s}", "--ulimit", f"fsize={limits.file}"]
    options += ["--user", f"{os.getuid()}:{os.getgid()}", "--ulimit", "core=0"]
    ended, lifeline = os.pipe()
    subprocess.Popen(  # noqa: S603
        ["sh", "-c", _REMOVE, _program(), name],  # noqa: S607
        stdin=ended,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(ended)
    os.set_inheritable(lifeline, True)
    return [_program(), "run", "--pull", "never", "--name", name, *options, spec]


def _program() -> str:
    return shutil.which("docker") or "docker"
