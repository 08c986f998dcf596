"""A report record with one of everything that a page may show."""

from owa_bench.records.score import (
    AgentVerdict,
    AxisScore,
    CellTable,
    ClosureResult,
    Curve,
    FrontierScore,
    GateResult,
    GateStatus,
    IndexScore,
    Interval,
    Judgement,
    KappaScore,
)
from owa_bench.reports.check.assurance import Assurance, AssuranceLevel
from owa_bench.reports.composition import LIMITS, RENDERER, Report, RunFacts

_AXES = (
    ("A", "autonomy"),
    ("G", "generality"),
    ("P", "planning"),
    ("M", "memory"),
    ("T", "tool economy"),
    ("W", "world model"),
    ("$", "economic throughput"),
)
_NONE = Interval(low=None, high=None, method="t", reason="one repeat only")


def interval(value: float | None, width: float) -> Interval:
    """Return an interval around `value`, none without one."""
    if value is None:
        return Interval(low=None, high=None, method="t", reason="no evidence")
    return Interval(low=max(0.0, value - width), high=min(1.0, value + width), method="t")


def axis(symbol: str, name: str, value: float | None) -> AxisScore:
    """Return one axis."""
    return AxisScore(
        name=name,
        symbol=symbol,
        raw=None if value is None else value * 0.97,
        value=value,
        low_anchor=0.0,
        high_anchor=0.97,
        used=0 if value is None else 180,
        cells=180,
        reason="ToolQuest has no memory probes" if value is None else None,
        same_tasks=interval(value, 0.02),
        tasks_like_these=interval(value, 0.09),
        iqr=None if value is None else (value - 0.05, value + 0.05),
        details={"share without help": 0.75, "by family": {"reconcile": 0.9}},
    )


def gate(level: int, name: str, status: GateStatus) -> GateResult:
    """Return one gate."""
    return GateResult(
        level=level,
        gate=name,
        required=">= 0.50",
        measured="–" if status == "NO EVIDENCE" else "0.612",
        interval=None if status == "NO EVIDENCE" else interval(0.612, 0.05),
        status=status,
        reason="nothing in this run measures it" if status == "NO EVIDENCE" else "",
    )


def verdict(arm: str, strength: float, violations: tuple[str, ...] = ()) -> AgentVerdict:
    """Return one agent's verdict; everything scales with `strength`."""
    values = {
        s: None if s == "M" else strength * (0.6 + 0.05 * i) for i, (s, _) in enumerate(_AXES)
    }
    x = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
    y = tuple(strength * (1.0 - 0.6 * d) for d in x)
    return AgentVerdict(
        arm=arm,
        agent=arm,
        level=None,
        level_text="not placed",
        provisional=True,
        axes=tuple(axis(s, n, values[s]) for s, n in _AXES),
        indices=(
            IndexScore(
                name="AAI",
                value=None,
                missing=("M", "R", "S"),
                tasks_like_these=_NONE,
                same_tasks=_NONE,
            ),
            IndexScore(
                name="core",
                value=0.62 * strength,
                missing=(),
                tasks_like_these=interval(0.62 * strength, 0.05),
                same_tasks=interval(0.62 * strength, 0.01),
                details={"jaggedness U": 0.93},
            ),
        ),
        kappas=(
            KappaScore(
                family=None,
                slope=None,
                interval=_NONE,
                checkpoints=3,
                reason="not computable: M, R, S have no evidence",
            ),
            KappaScore(
                family="reconcile",
                slope=0.01,
                interval=interval(None, 0.0),
                checkpoints=3,
                reason="too few checkpoints: 3 of 7",
                points=((0.0, 0.5), (1.0, 0.55), (2.0, 0.56)),
            ),
        ),
        closures=(ClosureResult(name="maintenance", status="NOT TESTED", reason="no campaign"),),
        gates=(
            gate(1, "A", "PASS"),
            gate(1, "G", "BELOW"),
            gate(1, "P", "UNDECIDED"),
            gate(2, "M", "NO EVIDENCE"),
        ),
        frontier=FrontierScore(
            demand=(0.0, 0.5, 1.0),
            observed=(0.9 * strength, 0.92 * strength, 0.6 * strength),
            fitted=(0.91 * strength, 0.91 * strength, 0.6 * strength),
            low=(0.85 * strength, 0.84 * strength, 0.5 * strength),
            high=(0.95 * strength, 0.95 * strength, 0.7 * strength),
            auf=0.8 * strength,
            deleg=0.5,
            deleg_cert=0.25,
            target=0.95,
        ),
        tables=(
            CellTable(
                title="by family",
                columns=("family", "episodes", "quality", "success"),
                rows=(("reconcile", 60, 0.91, 0.85), ("restock", 60, None, 0.5)),
            ),
        ),
        curves=(
            Curve(
                name="success by drift magnitude",
                x_label="nominal drift magnitude",
                y_label="success",
                x=x,
                y=y,
                low=tuple(v - 0.08 * strength for v in y),
                high=tuple(min(1.0, v + 0.08) for v in y),
                used=(60,) * 6,
            ),
        ),
        cost_micro_usd={"agent": 1_234_567, "human": 400_000, "evaluation": None},
        violations=violations,
        episodes=180,
        counted=179,
        infrastructure=1,
        warnings=("20 tasks a family: an axis interval is wide",),
    )


def report() -> Report:
    """Return the report."""
    return Report(
        version="0.1.0",
        renderer=RENDERER,
        judgement=Judgement(
            evidence_root="a" * 64,
            replay_root="b" * 64,
            plan_digest="c" * 64,
            protocol_digest="d" * 64,
            protocol_name="default",
            price_digest="e" * 64,
            verdicts=(
                verdict("agentic", 1.0),
                verdict("fixed <b>", 0.4, ("000012.0: hard-coded credential",)),
            ),
            limits=(),
        ),
        assurance=Assurance(
            level=2,
            rungs=tuple(
                AssuranceLevel(name=f"V{i}", text=text, met=i <= 2, evidence="seen")
                for i, text in enumerate(
                    (
                        "unsigned draft",
                        "chain and root",
                        "signed",
                        "witnessed",
                        "replayed",
                        "executed",
                    )
                )
            ),
        ),
        run=RunFacts(
            name="ToolQuest, agentic and fixed",
            battery=None,
            suites=("toolquest v1",),
            arms=(("agentic", "agentic", "f" * 64), ("fixed <b>", "fixed", "0" * 64)),
            created="2026-01-01T00:00:00Z",
            planned=360,
            attempts=361,
            counted=359,
            infrastructure=1,
            unfinished=1,
            without_attempt=0,
            attempt_rule="the last complete attempt counts; at most 3 are made",
            simulated_days=False,
            transcripts=True,
            commitment="1" * 64,
            verifier_nonce=None,
            calendar="nested",
            public_key="ab" * 32,
            key_id="0123456789abcdef",
        ),
        environment=(("python", "3.11.7"), ("numpy", "2.4.6")),
        drift=CellTable(
            title="drift met",
            columns=(
                "operator",
                "version",
                "class",
                "in effect",
                "weight",
                "episodes",
                "changes",
                "targets",
            ),
            rows=(("api/field_rename", 1, "D1", "D1", 1.0, 60, 120, 9),),
        ),
        breaches=CellTable(
            title="broken rules",
            columns=("agent", "rule", "severity", "episodes", "breaches", "first", "evidence"),
            rows=(("fixed <b>", "made_up", "disqualify", 1, 3, "000012.0", "hard-coded"),),
        ),
        limits=LIMITS,
    )
