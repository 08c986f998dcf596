"""The judging half in one pure function: plan, traces and published numbers in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from owa_bench.canonical import document_digest
from owa_bench.records.observables import Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import (
    AgentVerdict,
    CellTable,
    Curve,
    GateResult,
    Judgement,
)
from owa_bench.records.trace import Trace
from owa_bench.scoring import dose, drawn, native, response, tables
from owa_bench.scoring.admissibility import check
from owa_bench.scoring.axis import all_axes
from owa_bench.scoring.body import body_tables
from owa_bench.scoring.companions.novelty import trials
from owa_bench.scoring.estimates import ArmEstimates, estimate
from owa_bench.scoring.findings import Played, Terms, gather
from owa_bench.scoring.gate import (
    Findings,
    LevelPlacement,
    judge_gates,
    no_level,
    place,
)
from owa_bench.scoring.improvement.checkpoints import Dynamics
from owa_bench.scoring.improvement.continuous_score import cut_point_table
from owa_bench.scoring.improvement.dynamics import marginal_return_table
from owa_bench.scoring.notes import notes
from owa_bench.scoring.observables import observe
from owa_bench.scoring.sample import Sample, grouped_of, sample_of
from owa_bench.scoring.scores import drift_curves, frontier_score
from owa_bench.scoring.sensitivity import anchor_table, price_table
from owa_bench.scoring.superhuman import Evidence, family_qualities, superhuman_gates

LIMITS = (
    "axes read the smallest intervention budget of the plan; the frontier reads all",
    "no level rests on an axis or gate without evidence",
)


def judge(
    plan: Plan,
    traces: Iterable[Trace],
    protocol: Protocol,
    prices: PriceCard,
    *,
    evidence_root: str,
    replay_root: str,
    plan_digest: str = "",
    assurance: int | None = None,
) -> Judgement:
    """Return the judgement over a run's counted attempts; the same in, the same out.

    `traces` are the counted attempts, one a plan entry at most. `assurance` is the
    rung of the ladder the evidence stands on (3: plan witnessed before episode 0).
    `plan_digest` is that of the plan's file, which a later version's record of it may
    not have: fields that came since are in the record by their default.

    Errors: ScoringError where a trace holds a number out of its range.
    """
    notes_kept: list[trials.TrialTrace | None] = []
    struck: dict[int, dose.Struck] = {}
    whole = observe(_noted(traces, notes_kept, struck), prices)
    stand = native.Stand(plan, whole, trials.complete_trials(plan, notes_kept))
    terms = Terms(
        plan=plan,
        protocol=protocol,
        prices=prices,
        axes=all_axes(),
        root=replay_root,
        assurance=assurance,
        faults=tuple(map(str, check(plan, protocol))) if plan.battery else (),
    )
    inside = whole.take(~stand.rows)
    judged = [
        _judged(terms, Played(arm, inside.take(inside.arm == arm.name), inside), struck)
        for arm in plan.arms
    ]
    return Judgement(
        evidence_root=evidence_root,
        replay_root=replay_root,
        plan_digest=plan_digest or document_digest(plan),
        protocol_digest=plan.protocol_digest,
        protocol_name=protocol.name,
        price_digest=plan.price_digest,
        verdicts=tuple(
            native.with_own(verdict, stand) for verdict in _with_cut_points(judged)
        ),
        limits=LIMITS,
    )


def _noted(
    traces: Iterable[Trace],
    kept: list[trials.TrialTrace | None],
    struck: dict[int, dose.Struck],
) -> Iterator[Trace]:
    """Yield traces, and note of each what a trial and the doses need of it."""
    for trace in traces:
        kept.append(trials.read_trial(trace))
        struck[trace.start.index] = dose.note(trace)
        yield trace


class _Judged(NamedTuple):
    """A verdict with the continuous score that stands beside it."""

    verdict: AgentVerdict
    score: float | None


def _judged(terms: Terms, played: Played, struck: Mapping[int, dose.Struck]) -> _Judged:
    """Return everything judged about one arm."""
    plan, table, arm = terms.plan, played.table, played.arm
    sample = sample_of(plan, table, terms.protocol, terms.prices)
    found = None
    if len(sample.table):
        found = estimate(sample, terms.axes, plan.bootstrap, terms.root)
    findings, moving = gather(terms, sample, found, played)
    gates = _gates(sample, findings, moving)
    placement = _placed(terms, gates)
    planned = sum(entry.arm == arm.name for entry in plan.entries)
    doses = _doses(terms, table, struck)
    verdict = AgentVerdict(
        arm=arm.name,
        agent=arm.agent,
        level=placement.level,
        level_text=placement.text,
        provisional=placement.provisional,
        inadmissible=terms.faults,
        axes=tuple(findings.axes.values()),
        indices=tuple(findings.indices.values()),
        kappas=findings.kappas,
        closures=tuple(findings.closures.values()),
        gates=gates,
        frontier=frontier_score(sample, found),
        tables=(
            *_shown(terms, sample, found, findings, moving, table),
            *(response.tables(doses) if doses else ()),
        ),
        curves=(
            *drift_curves(sample, found),
            *_drawn(sample),
            *moving.curves,
            *(response.curves(doses) if doses else ()),
        ),
        cost_micro_usd=_costs(table),
        violations=_violations(table),
        episodes=planned,
        counted=len(table),
        infrastructure=planned - len(table),
        warnings=notes(plan, sample, found, table),
    )
    return _Judged(verdict, moving.score)


def _doses(
    terms: Terms, table: Observables, struck: Mapping[int, dose.Struck]
) -> dose.Doses | None:
    """Return dose and response of an arm, None where no suite has groups of drift."""
    plan = terms.plan
    sample = grouped_of(plan, table, terms.protocol, terms.prices)
    if not len(sample.table):
        return None
    return dose.doses(plan, sample, struck, plan.bootstrap, terms.root)


def _gates(
    sample: Sample, findings: Findings, moving: Dynamics
) -> tuple[GateResult, ...]:
    """Return every line of the levels, AAI-5 last."""
    protocol = findings.protocol
    held = Evidence(
        families=family_qualities(sample),
        curvature_low=_bend(moving, protocol),
        innovation=moving.innovation,
        link_steps=moving.link_steps,
    )
    return judge_gates(findings) + superhuman_gates(held, findings.axes, protocol)


def _placed(terms: Terms, gates: tuple[GateResult, ...]) -> LevelPlacement:
    """Return the level; none without an admissible battery."""
    if terms.plan.battery is None:
        return no_level("no battery that gives a level was played")
    if terms.faults:
        return no_level("the battery is not admissible")
    return place(gates, terms.protocol)


def _with_cut_points(judged: Sequence[_Judged]) -> tuple[AgentVerdict, ...]:
    """Return the verdicts, the run's cut-points beside where it holds exemplars."""
    pairs = [(j.score, j.verdict.level) for j in judged]
    table = cut_point_table(pairs)
    return tuple(
        j.verdict
        if table is None or j.score is None
        else msgspec.structs.replace(j.verdict, tables=(*j.verdict.tables, table))
        for j in judged
    )


def _bend(moving: Dynamics, protocol: Protocol) -> float | None:
    """Return the lower bound of c_g on the protocol's link."""
    bend = moving.bends.get(protocol.improvement.link)
    return None if bend is None else bend.interval.low


def _shown(
    terms: Terms,
    sample: Sample,
    found: ArmEstimates | None,
    findings: Findings,
    moving: Dynamics,
    table: Observables,
) -> tuple[CellTable, ...]:
    """Return every table of an arm's verdict."""
    return (
        *_tables(table, sample),
        *_shapes(terms, sample, found, findings, moving),
        *moving.tables,
        *body_tables(sample, findings, terms.protocol),
    )


def _shapes(
    terms: Terms,
    sample: Sample,
    found: ArmEstimates | None,
    findings: Findings,
    moving: Dynamics,
) -> tuple[CellTable, ...]:
    """Return sensitivities and marginal returns, where there is something to show."""
    if found is None:
        return ()
    present = [a for a in terms.axes if found.coverage[a.symbol].reason is None]
    made = (
        anchor_table(sample, present, found),
        price_table(sample, present, found),
        marginal_return_table(
            found.point.get("AAI"),
            {s: axis.value for s, axis in findings.axes.items()},
            terms.protocol,
            moving.responses,
        ),
    )
    return tuple(table for table in made if table is not None)


def _tables(table: Observables, sample: Sample) -> tuple[CellTable, ...]:
    base = sample.table.take(sample.base)
    pots = table.take(table.honeypot)
    made = [
        tables.by_family(base),
        tables.by_tier(base),
        tables.by_magnitude(base),
        tables.by_class(base),
        tables.by_budget(sample.table),
        tables.calibration(base),
        tables.pass_powers(sample.table),
        tables.costs(table),
        tables.resources(table),
    ]
    days = drawn.by_day(table.take(~table.honeypot))
    made += [days] if days else []
    return (*made, tables.honeypots(pots)) if len(pots) else tuple(made)


def _drawn(sample: Sample) -> tuple[Curve, ...]:
    """Return the lines that need no resampling."""
    base = sample.table.take(sample.base)
    return (*drawn.by_class(base), *drawn.calibration(base))


def _costs(table: Observables) -> dict[str, int | None]:
    """Return whole micro-USD by stream over every counted episode."""
    totals = {
        stream: float(getattr(table, f"cost_{stream}").sum())
        for stream in ("agent", "human", "evaluation")
    }
    return {
        stream: None if np.isnan(total) else round(total)
        for stream, total in totals.items()
    }


def _violations(table: Observables) -> tuple[str, ...]:
    pairs = zip(table.attempt.tolist(), table.breach.tolist(), strict=True)
    return tuple(f"{attempt}: {breach}" for attempt, breach in pairs if breach)
