"""A run's scores for a notebook: no signature, no page, the same figures.

from owa_bench.report.scores import score
verdict = score("runs/a")["agentic"]
{axis.symbol: axis.value for axis in verdict.axes}
"""

from collections.abc import Mapping
from pathlib import Path

from owa_bench.records.score import AgentVerdict
from owa_bench.report import bundle
from owa_bench.scoring.pipeline import judge


def score(run_dir: str | Path) -> Mapping[str, AgentVerdict]:
    """Return the verdict on every arm of a run, by its name.

    Nothing is checked or signed: `owa-bench report` and `verify` do that. Without the
    ladder no rung of assurance is granted, so the levels that ask for one stay open.

    Errors: RunDirectoryError where there is no run, TraceError where an attempt does
        not read.
    """
    held = bundle.read(Path(run_dir))
    found = judge(
        held.plan,
        held.traces(),
        held.protocol,
        held.prices,
        evidence_root=held.evidence_root,
        replay_root=held.replay_root,
        plan_digest=held.plan_digest,
    )
    return {verdict.arm: verdict for verdict in found.verdicts}
