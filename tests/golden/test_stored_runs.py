"""Six runs recorded before the code was rearranged: their reports must not change.

`runs/README.md` says how they were recorded. Everything goes through the command line,
so this file knows no name of the package.
"""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import zstandard

ARCHIVES = sorted((Path(__file__).parent / "runs").glob("*.tar.zst"))
NAMES = [path.name.removesuffix(".tar.zst") for path in ARCHIVES]

pytestmark = pytest.mark.slow


def owa_bench(*words):
    return subprocess.run(
        [sys.executable, "-m", "owa_bench", *words], capture_output=True, text=True, check=False
    )


def unpack(path, folder):
    packed = zstandard.ZstdDecompressor().stream_reader(path.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(packed.read())) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4
        archive.extractall(folder)
    return folder / path.name.removesuffix(".tar.zst")


@pytest.fixture(scope="module", params=ARCHIVES, ids=NAMES)
def stored_run(request, tmp_path_factory):
    return unpack(request.param, tmp_path_factory.mktemp("stored"))


@pytest.mark.part(2)
def test_the_evidence_and_the_signatures_still_hold(stored_run):
    verified = owa_bench("verify", str(stored_run))
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.part(2)
def test_judging_it_again_gives_every_signed_figure_and_the_same_page(stored_run):
    recomputed = owa_bench("recompute", str(stored_run))
    assert recomputed.returncode == 0, recomputed.stdout + recomputed.stderr
    assert recomputed.stdout.count("ok ") == 3, recomputed.stdout


@pytest.mark.part(2)
def test_every_recorded_episode_happens_again_event_by_event(stored_run):
    if stored_run.name == "trials":
        pytest.importorskip("pybullet")
    replayed = owa_bench("replay", str(stored_run))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
