"""The ceremony: submitter, verifier and reader, to a report at V4."""

import pytest

from tests.builders.ceremony_run import hold_ceremony


@pytest.mark.part(4)
@pytest.mark.slow
def test_three_parties_reach_v4(tmp_path):
    printed = hold_ceremony(tmp_path)
    assert "V4 now, V4 when signed" in printed
    assert "every seed is the master's" in printed
    assert (tmp_path / "place" / "board" / "index.html").exists()
