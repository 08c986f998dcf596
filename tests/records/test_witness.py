import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure
from owa_bench.records import witness


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("plan", [b"plan", b"another plan"])
def test_openssl_reads_the_request(tmp_path, plan: bytes) -> None:
    query = tmp_path / "query.tsq"
    request = witness.time_stamp_query(plan)
    query.write_bytes(request.der)
    shown = subprocess.run(
        ["openssl", "ts", "-query", "-in", query, "-text"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Hash Algorithm: sha256" in shown
    assert "Certificate required: yes" in shown
    assert int(re.search(r"Nonce: 0x([0-9A-F]+)", shown)[1], 16) == request.nonce
    dump = "".join(line[11:58] for line in shown.splitlines() if " - " in line)
    assert dump.replace(" ", "").replace("-", "") == sha256(plan)


def test_every_request_has_its_own_nonce() -> None:
    nonces = {witness.time_stamp_query(b"plan").nonce for _ in range(10)}
    assert len(nonces) == 10


@given(st.binary(max_size=120))
def test_other_bytes_are_refused_and_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(CheckFailure):
        witness.read_time_stamp(data)


@pytest.mark.parametrize(
    ("microsecond", "text"), [(0, "20310102030405Z"), (500_000, "20310102030405.5Z")]
)
def test_a_time_is_written_as_in_the_token(microsecond: int, text: str) -> None:
    moment = datetime(2031, 1, 2, 3, 4, 5, microsecond, tzinfo=UTC)
    assert witness._generalized(moment) == text
