"""What to play next: every axis and every gate has a way, and each way is one that `run` takes."""

import shlex

from owa_bench import discovery
from owa_bench.reports.read.next_plays import _PLAYS, next_play

# Each takes tasks alone, whatever they are.
_BY_TASKS = {"A", "G", "$"}


def test_every_axis_has_a_way():
    symbols = {entry.plugin.symbol for entry in discovery.find("axes").values()}
    assert {symbol for symbol in symbols if not next_play(symbol)} == _BY_TASKS


def test_a_gate_is_found_by_its_first_word():
    assert next_play("maintenance closure") == next_play("maintenance") != ""
    assert next_play("M") != next_play("maintenance")
    assert next_play("AAI") == ""


def test_every_way_is_an_option_that_run_takes(owa):
    ways = {way for way in _PLAYS.values() if way.startswith("--")}
    assert len(ways) > 5
    for way in sorted(ways):
        words = f"run {way} --tier 1 --agent noop --out x --dry-run"
        if "--battery" in way:
            words = words.replace("--tier 1 ", "")
        if "robot" in way:  # a body takes no tools
            words = words.replace("noop", "random")
        said = owa(words)
        assert said.code == 0, (shlex.split(words), said.err)
