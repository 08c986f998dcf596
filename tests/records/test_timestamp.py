import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure
from owa_bench.records import timestamp


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("nonce", [1, 127, 128, 255, 1 << 62, (1 << 63) - 1])
def test_openssl_reads_the_request(tmp_path, nonce: int) -> None:
    query = tmp_path / "query.tsq"
    digest = sha256(b"plan")
    query.write_bytes(timestamp.request(digest, nonce))
    shown = subprocess.run(
        ["openssl", "ts", "-query", "-in", query, "-text"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Hash Algorithm: sha256" in shown
    assert "Certificate required: yes" in shown
    assert int(re.search(r"Nonce: 0x([0-9A-F]+)", shown)[1], 16) == nonce
    dump = "".join(line[11:58] for line in shown.splitlines() if " - " in line)
    assert dump.replace(" ", "").replace("-", "") == digest


@given(st.binary(max_size=120))
def test_other_bytes_are_refused_and_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(CheckFailure):
        timestamp.read(data)
