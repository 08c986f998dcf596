"""The agent that works out how vendors are opened, over episodes."""

from pathlib import Path

from playing import instance, play

from owa_bench.agents.self_improving import revisions
from owa_bench.agents.solvers.api_solver.connectors import load_connectors

ASKS_FOR_TOKENS = instance("reconcile", 2, 101)  # its bank does


def test_a_vendor_is_opened_only_after_its_connector_was_adopted(tmp_path: Path) -> None:
    """The answer is that of what is adopted; what was worked out runs beside it."""
    quality = []
    for _ in range(5):
        quality.append(play("discovering", ASKS_FOR_TOKENS, tmp_path).ending.q_state)
        trials = revisions.load_notebook(tmp_path).trials
        known = load_connectors(tmp_path)
        assert [one.name for one in (*known, *trials_of(trials))] == ["payments"]
        assert len(known) == (len(quality) > 3)
    assert quality == [0.0, 0.0, 0.0, 0.0, 1.0]


def trials_of(trials: tuple[revisions.RevisionTrial, ...]):
    return [trial.connector for trial in trials]


def test_the_agent_knows_no_token_of_its_own(tmp_path: Path) -> None:
    played = play("discovering", ASKS_FOR_TOKENS, tmp_path)
    assert played.ending.q_state == 0.0
    assert play("agentic", ASKS_FOR_TOKENS, tmp_path / "a").ending.q_state == 1.0
