"""Judging stored runs again in this process gives every figure that was signed.

`tests/golden` does the same by the command line, for all six runs; here the code runs
in the test's own process, where `make mutants` changes it.
"""

import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from owa_bench.reports import verify

pytestmark = pytest.mark.part(3)

RUNS = Path(__file__).parents[1] / "golden" / "runs"


@pytest.mark.parametrize("name", ["campaign", "crews", "demo"])
def test_the_figures_are_those_that_were_signed(name, tmp_path):
    data = (RUNS / f"{name}.tar.zst").read_bytes()
    unpacked = zstandard.ZstdDecompressor().stream_reader(data).read()
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4
        archive.extractall(tmp_path)
    found = {check.name: check for check in verify.recompute(tmp_path / name)}
    assert found["recompute"].ok, found["recompute"].detail
    assert found["assurance"].ok, found["assurance"].detail
