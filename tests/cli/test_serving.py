"""`owa-bench serve`: what is wrong is said before anything is served or written."""

import pytest

pytest.importorskip("mcp")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--suite nope", "`--suite` must be one of armtools"),
        ("--suite cartpole3d", "which has no tools to call"),
        ("--family nope", "`--family` must be one of"),
        ("--tier 7", "`--tier` must be one of 1, 2, 3, 4, got 7"),
        ("--delta nan", "`--delta` must lie in [0, 1], got nan"),
        ("--interventions -1", "got -1"),
        ("--act-seconds 1e300", "must be at most 31622400 s"),
        ("--http --port 99999", "`--port` must lie in 0..65535"),
        ("--http --host ''", "`--host` must name an address"),
        ("--http --host 203.0.113.1", "203.0.113.1:8321 cannot be listened at"),
        ("--resume", "no plan.json"),
        ("--resume --tier 2", "--tier shapes a plan"),
    ],
)
def test_wrong_use_is_one_line(owa, place, flags, words):
    said = owa(f"serve --out x {flags}")
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (place / "x").exists()
