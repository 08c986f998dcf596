"""Run directories made to hang, exhaust or confuse whoever verifies them.

Each is a whole signed run in which one thing was put in place of another. `verify` runs
as a process with a bound on its memory and on its time: it must end by itself with exit
status 1, and say why in the last line that it prints.
"""

import os
import resource
import shutil
import subprocess
import sys

import pytest
import zstandard

from owa_bench.records.layout import RunLayout
from owa_bench.report import statement
from tests.builders.run_directory import KEY, make_plan, make_run

GIB = 1 << 30
MEMORY = GIB  # bytes of addresses, of which Python and numpy take more than half
DEADLINE_S = 30  # none takes five seconds where nothing else runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    layout = make_run(tmp_path_factory.mktemp("whole") / "run", make_plan(2))
    statement.write(layout.root, KEY)
    return layout.root


def first_shard(run):
    return min(run.shards.iterdir())


def sparse(path):
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(8 * GIB)


def put(make, path):
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


def bombs(run):
    """Sixty frames of 120 MB, each of some kilobytes."""
    frame = zstandard.ZstdCompressor(level=1).compress(bytes(120 << 20))
    with first_shard(run).open("ab") as file:
        file.writelines([frame] * 60)


def endless(path):
    path.symlink_to("/dev/zero")


HOSTILE = {
    "frames that unpack to gigabytes": bombs,
    "a pipe as shard": lambda run: put(os.mkfifo, first_shard(run)),
    "a pipe as report": lambda run: put(os.mkfifo, run.report_envelope),
    "a pipe as witness": lambda run: put(os.mkfifo, run.witness / "nonce.json"),
    "a device as shard": lambda run: put(endless, first_shard(run)),
    "a device as plan": lambda run: put(endless, run.plan),
    "a device as registry": lambda run: put(endless, run.registry),
    "a plan nested without end": lambda run: run.plan.write_text("[" * 200_000),
    "a plan that is no text": lambda run: run.plan.write_bytes(b"\xff\xfe" * 999),
    "a plan of gigabytes": lambda run: sparse(run.plan),
    "leaves of gigabytes": lambda run: sparse(run.leaves),
    "a page of gigabytes": lambda run: sparse(run.page),
    "a protocol of gigabytes": lambda run: sparse(run.protocol),
    "a shard of gigabytes": lambda run: sparse(first_shard(run)),
    "a receipt of gigabytes": lambda run: (
        run.receipts.mkdir(exist_ok=True),
        sparse(run.receipts / "replay-9.dsse.json"),
    ),
    "a folder of shards that is itself": lambda run: (
        shutil.rmtree(run.shards),
        run.shards.symlink_to(run.shards),
    ),
}


@pytest.mark.part(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_verify_ends_by_itself_and_says_why(whole, tmp_path, name):
    run = RunLayout(tmp_path / "run")
    shutil.copytree(whole, run.root)
    HOSTILE[name](run)
    done = subprocess.run(
        [sys.executable, "-m", "owa_bench", "verify", str(run.root)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()
    assert len(last) == 1, done.stderr
    assert last[0].startswith("error: ")
