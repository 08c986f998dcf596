"""`owa-bench doctor`."""

import json


def test_what_is_there_and_what_is_not(owa):
    said = owa("doctor")
    assert said.code == 0
    assert "[rl]" in said.out
    parts = {part["name"]: part for part in json.loads(owa("doctor --json").out)}
    assert parts["owa_bench"]["present"]
    missing = [p for p in parts.values() if not p["present"]]
    fixes = ("install", "Allow")
    assert all(any(fix in part["detail"] for fix in fixes) for part in missing)


def test_a_data_folder_that_cannot_be_written_is_a_lack(owa, monkeypatch):
    monkeypatch.setenv("OWA_BENCH_HOME", "/dev/null/x")
    said = owa("doctor")
    assert said.code == 3
    assert "FAIL data folder" in said.out
