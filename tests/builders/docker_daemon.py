"""A Docker daemon of a test's own, without network."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from owa_bench.sandbox import views


@contextlib.contextmanager
def docker_daemon(folder: Path) -> Iterator[None]:
    """Run a daemon whose files lie in `folder`; skip where none can be."""
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("docker: needs the program dockerd, and root")
    options = ["--iptables=false", "--bridge=none", "--storage-driver=vfs"]
    options += [f"--host=unix://{folder}/docker.sock", f"--pidfile={folder}/pid"]
    options += [f"--data-root={folder}/images", f"--exec-root={folder}/exec"]
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        patch.setenv("DOCKER_HOST", f"unix://{folder}/docker.sock")
        daemon = subprocess.Popen(["dockerd", *options], stdout=log, stderr=log)
        try:
            until = time.monotonic() + 60
            while fault := views.docker_fault.__wrapped__():
                if daemon.poll() is not None or time.monotonic() > until:
                    pytest.skip(f"docker: the daemon does not start here: {fault}")
                time.sleep(0.5)
            views.docker_fault.cache_clear()
            yield
        finally:
            daemon.terminate()
            daemon.wait()
            # The daemon leaves its data mounted on itself, which nobody can remove.
            command = ["umount", "--lazy", folder / "images"]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
            views.docker_fault.cache_clear()
