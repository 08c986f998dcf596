"""Where sittings, seats and lanes were not apart, what rests on it has no evidence."""

import msgspec
import pytest

from owa_bench.records.plan import PRIVATE
from owa_bench.scoring.gate import judge_gates
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, plan_of
from tests.scoring.axes.test_sociality import crews
from tests.scoring.test_levels import findings

WHY = "the machine has too little memory"


def verdict(root):
    traces = crews({(1, False): 0.4, (2, False): 0.7, (2, True): 0.4})
    plan = plan_of(traces)
    arms = tuple(msgspec.structs.replace(arm, root=root) for arm in plan.arms)
    plan = msgspec.structs.replace(plan, arms=arms)
    found = judge(plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    return found.verdicts[0]


@pytest.mark.parametrize("root", ["", PRIVATE])
def test_a_private_root_changes_no_figure(root):
    found = verdict(root)
    assert next(a for a in found.axes if a.symbol == "S").value > 0.4
    assert not any("caches" in warning for warning in found.warnings)


def test_with_a_shared_root_the_axes_on_what_is_apart_are_missing():
    found = verdict(f"shared: {WHY}")
    for axis in found.axes:
        if axis.symbol in "MRS":
            assert axis.value is None
            assert WHY in axis.reason
    others = [a.value for a in found.axes if a.symbol not in "MRS"]
    assert others == [a.value for a in verdict("").axes if a.symbol not in "MRS"]
    assert any(value is not None for value in others)
    assert any(WHY in warning for warning in found.warnings)


def test_with_a_shared_root_gates_on_lanes_have_no_evidence():
    apart, shared = findings(), findings(shared_root=WHY)
    pairs = zip(judge_gates(apart), judge_gates(shared), strict=True)
    moved = [after for before, after in pairs if before != after]
    assert any(result.gate == "kappa" for result in moved)
    assert {result.status for result in moved} == {"NO EVIDENCE"}
    assert all(WHY in result.reason for result in moved)
