"""The no-op finishes in one step and knows that it failed."""

from pathlib import Path

from playing import instance, play


def test_scores_the_floor(tmp_path: Path) -> None:
    played = play("noop", instance(), tmp_path)
    assert len(played.actions) == 1
    assert played.ending.q_state == 0.0
    assert played.ending.stated == 0.0
    assert played.ending.quality == 0.1
