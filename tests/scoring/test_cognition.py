"""The cognitive gate: what each part is, and what it says without evidence."""

import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.errors import ScoringError
from owa_bench.records.events import AnyEvent, Intervention, Probe, ToolOffer
from owa_bench.records.score import GateResult
from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate.gate_statistics import hallucination, span, verified_precision
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

GATE = "cognitive"


def probes(
    verified: int = 5, contrary: int | None = 0, longest: int = 6, delayed: int = 10
) -> tuple[AnyEvent, ...]:
    """Return one task's probes: 10 retrievals, 8 a length, 10 after seven days."""
    returned = tuple((f"d{j}", j < verified) for j in range(5))
    found = Probe(
        item="q", lag_days=0, correct=True, mode="retrieve", returned=returned, contrary=contrary
    )
    spans = [
        Probe(item="s", lag_days=0, span=n, correct=n <= longest, mode="span")
        for n in range(2, 9)
        for _ in range(8)
    ]
    offer = ToolOffer(step=0, names=("answer", "go_on", "finish"))
    late = [Probe(item="d", lag_days=7, correct=k < delayed) for k in range(10)]
    early = [Probe(item="d", lag_days=1, correct=True) for _ in range(10)]
    return (offer, *[found] * 10, *spans, *late, *early)


def gate(*events: AnyEvent, tasks: int = 20) -> GateResult:
    traces: list[Trace] = [episode(index=k, pair=f"p{k}", extra=events) for k in range(tasks)]
    found = verdict(traces)
    return next(g for g in found.gates if g.gate == GATE and g.level == 2)


def test_an_able_agent_passes() -> None:
    found = gate(*probes())
    assert found.status == "PASS", found.reason
    assert found.measured == "VRP@5 1, 1 - HR@5 1, span 6, delayed recall 1"


def test_fidelity_is_shown_and_judged_by_nothing() -> None:
    wrong = Probe(item="f", lag_days=0, correct=False, mode="fidelity")
    found = gate(*probes(), wrong)
    assert (found.status, found.reason) == ("PASS", "provisional norms")
    assert found.measured.endswith("delayed recall 1, fidelity 0")


@pytest.mark.parametrize(
    ("change", "expected", "named"),
    [
        ({"verified": 3}, "BELOW", "below: VRP@5 0.600 ["),
        ({"contrary": 1}, "BELOW", "below: 1 - HR@5 0.800 ["),
        ({"longest": 4}, "UNDECIDED", "undecided: span 4 against 5; provisional"),
        ({"delayed": 4}, "UNDECIDED", "undecided: delayed recall 0.400 ["),
        ({"delayed": 1}, "BELOW", "below: delayed recall 0.100 ["),
    ],
)
def test_each_part_can_be_missed(change: dict[str, int], expected: str, named: str) -> None:
    found = gate(*probes(**change))
    assert found.status == expected
    assert found.reason.startswith(named)
    assert found.reason.endswith("; provisional norms")


def test_nothing_wrong_is_never_called_too_low() -> None:
    """VRP@5 = 1, HR@5 = 0, recall 1 and span 9 read FAIL, too low: six tasks bound nothing."""
    found = gate(*probes(longest=8), tasks=6)
    assert found.measured == "VRP@5 1, 1 - HR@5 1, span 8, delayed recall 1"
    low = 0.05 ** (1 / 6)
    assert found.status == "UNDECIDED"
    assert found.reason == (
        f"undecided: VRP@5 1.000 [{low:.3f}, 1.000] against 0.80, "
        f"1 - HR@5 1.000 [{low:.3f}, 1.000] against 0.90; provisional norms"
    )


def test_unchecked_hallucination_is_no_evidence() -> None:
    found = gate(*probes(contrary=None))
    assert found.status == "NO EVIDENCE"
    assert "1 - HR@5" in found.reason


def test_hr_is_not_one_minus_vrp() -> None:
    found = verified_precision(np.array([[True, False, False, False, False]]), 5)
    false = hallucination(np.array([0.0]), np.array([5]))
    assert (found[0], false[0]) == (0.2, 0.0)


@pytest.mark.parametrize("planted", range(2, 10))
def test_planted_step_spans_are_found_exactly(planted: int) -> None:
    rng = np.random.default_rng(planted)
    lengths = np.tile(np.repeat(np.arange(2, 12), 40), 3)
    seeds = np.repeat(np.arange(3), 400)
    right = rng.random(1200) < np.where(lengths <= planted, 0.97, 0.3)
    assert span(lengths, right, seeds, PROTOCOL.memory) == planted


def test_a_span_counts_only_where_every_shorter_length_was_tried() -> None:
    def reached(*lengths: int) -> float:
        asked = np.repeat(lengths, 40)
        return span(asked, asked > 0, asked * 0, PROTOCOL.memory)

    assert np.isnan(reached(9))
    assert reached(2, 3, 9) == 3
    assert reached(2, 3, 4, 5) == 5


def test_items_asked_with_tools_or_after_help_are_no_evidence() -> None:
    offer, *asked = probes()
    open_ = ToolOffer(step=0, names=("answer", "recall"))
    found = gate(open_, *asked)
    assert (found.status, found.reason) == (
        "NO EVIDENCE",
        "no evidence on span, delayed recall; provisional norms",
    )
    hint = Intervention(step=1, kind="hint", minutes=2.0)
    helped = gate(offer, hint, *asked)
    assert helped.status == "NO EVIDENCE"
    assert "VRP@5" in helped.reason


def test_too_few_trials_have_no_span() -> None:
    few = np.full(39, 3)
    assert np.isnan(span(few, few > 0, few * 0, PROTOCOL.memory))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        verified_precision(np.ones((2, 2), bool), 0)
    with pytest.raises(ScoringError):
        hallucination(np.array([6.0]), np.array([5]))
    with pytest.raises(ScoringError):
        span(np.ones(2, int), np.ones(3, bool), np.ones(2, int), PROTOCOL.memory)
    assert "cognitive" in find("gates")
