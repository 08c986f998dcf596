"""`owa-bench visit`: what is wrong is said by field and value before it serves."""

import pytest


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--family stay/book --port 99999", "`--port` must lie in 0..65535"),
        ("--family stay/book --port -1", "`--port` must lie in 0..65535"),
        ("--family nosuch", "got 'nosuch'"),
        ("--family stay/book --tier 9", "`tier` must be one of 1, 2, 3, got 9"),
        ("--family stay/book --delta 2", "`delta` must be in [0, 1], got 2.0"),
    ],
)
def test_wrong_use_is_one_line(owa, flags, words):
    said = owa(f"visit {flags}")
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
