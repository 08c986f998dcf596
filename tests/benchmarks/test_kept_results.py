"""Long benchmarks go on where they stopped, and never with results of other code."""

from typing import NamedTuple

import pytest

from benchmarks import kept_results


class Job(NamedTuple):
    key: str


JOBS = [Job("a"), Job("b"), Job("c")]


def test_a_stopped_run_goes_on(tmp_path):
    state, played = tmp_path / "new" / "state.jsonl", []

    def play(job):
        played.append(job.key)
        return {"q": job.key}

    kept_results.run(JOBS[:1], state, 1.0, play)
    kept_results.run(JOBS, state, 1.0, play)
    assert played == ["a", "b", "c"]
    assert kept_results.kept(state) == {key: {"q": key} for key in "abc"}


def test_a_torn_line_is_played_again(tmp_path):
    state = tmp_path / "state.jsonl"
    kept_results.run(JOBS[:2], state, 1.0, lambda job: job.key)
    state.write_bytes(state.read_bytes()[:-5])
    kept_results.run(JOBS, state, 1.0, lambda job: job.key)
    assert kept_results.kept(state) == {key: key for key in "abc"}
    assert len(state.read_text().splitlines()) == 3


def test_results_of_other_code_are_left_aside(tmp_path, monkeypatch, capsys):
    state = tmp_path / "state.jsonl"
    kept_results.run(JOBS, state, 1.0, lambda job: 0)
    monkeypatch.setattr(kept_results, "source", lambda: "other")
    assert kept_results.kept(state) == {}
    assert "state.jsonl: 3 results of other code left aside" in capsys.readouterr().out


def test_no_time_plays_nothing(tmp_path):
    state = tmp_path / "state.jsonl"
    kept_results.run(JOBS, state, -1.0, lambda job: 0)
    assert kept_results.kept(state) == {}


@pytest.mark.parametrize("shard", ["", "1", "a/b", "1/0"])
def test_a_malformed_shard_is_named(shard):
    with pytest.raises(SystemExit, match="--shard wants I/N"):
        kept_results.share_of(JOBS, shard)


def test_shards_share_the_list():
    parts = [job for i in range(2) for job in kept_results.share_of(JOBS, f"{i}/2")]
    assert sorted(parts) == JOBS
