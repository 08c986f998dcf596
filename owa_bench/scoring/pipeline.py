"""Judgement of a run: one pure function of plan, traces and published numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from owa_bench.canonical import document_digest
from owa_bench.records.observables import Observables
from owa_bench.records.people import HumanNorms
from owa_bench.records.plan import Arm, Plan, arm_role
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AgentVerdict, CellTable, GateResult, Judgement
from owa_bench.records.trace import Trace
from owa_bench.scoring import gate
from owa_bench.scoring.axis import all_axes
from owa_bench.scoring.estimate import drift_response
from owa_bench.scoring.estimate.estimates import ArmEstimates
from owa_bench.scoring.estimate.gate_statistics import family_qualities
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.improvement.checkpoints import Dynamics
from owa_bench.scoring.improvement.continuous_score import cut_point_table
from owa_bench.scoring.improvement.dynamics import marginal_return_table
from owa_bench.scoring.novelty import trials
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence, read_campaign
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import Sample, grouped_of, grouped_suites
from owa_bench.scoring.placement.played import PlacementFacts, PlayedPlacement, played_placement
from owa_bench.scoring.placement.verdict import placement_verdict
from owa_bench.scoring.validation.admissibility import check, check_controls, unchecked_anchors
from owa_bench.scoring.verdict import descriptive
from owa_bench.scoring.verdict.crosswalk import crosswalk_table
from owa_bench.scoring.verdict.findings import ArmEpisodes, JudgingContext, report_warnings
from owa_bench.scoring.verdict.native import NativeResults, with_native
from owa_bench.scoring.verdict.norms import human_table, with_norms
from owa_bench.scoring.verdict.project_report import project_curves, project_tables
from owa_bench.scoring.verdict.reading import read_arm, with_dynamics
from owa_bench.scoring.verdict.robotics_report import robotics_tables
from owa_bench.scoring.verdict.scores import drift_curves, frontier_score
from owa_bench.scoring.verdict.sensitivity import anchor_table, price_table

LIMITS = (
    "axes read the smallest intervention budget of the plan; the frontier reads all",
    "no level rests on an axis or gate without evidence",
)


_INADMISSIBLE = gate.no_level("the battery is not admissible")
_NO_FACTS = PlacementFacts()
_Judged = tuple[AgentVerdict, float | None]  # the continuous score is beside it


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
    lost: Mapping[int, float] = {},
    norms: HumanNorms | None = None,
    unattended: tuple[str, ...] = (),
    own_terms: str = "",
    placement: PlacementFacts = _NO_FACTS,
) -> Judgement:
    """Return the judgement over a run's counted attempts; a pure function.

    Args:
        plan: The run's plan.
        traces: Counted attempts, one a plan entry at most.
        protocol: Published numbers.
        prices: Price card.
        evidence_root: Root of the evidence, for the record.
        replay_root: Root of what a replay yields; it seeds the bootstrap.
        plan_digest: Digest of the plan's file; a record read by a later version may not have it,
            because fields added since are there by default.
        assurance: Rung of the assurance ladder (3: plan witnessed before episode 0).
        lost: Micro-USD that agents used in attempts that do not count, by plan index.
        norms: Figures of persons under the run's terms; they replace thresholds.
        unattended: Persons of the norms whom nobody watched; with one of them the norms replace
            nothing.
        own_terms: What of the terms is the submitter's own: then no level is given.
        placement: What a placement rests on beside its traces.
    Raises: ScoringError: A trace has a number out of its range.
    """
    counted = None if unattended else norms
    notes: list[trials.TrialTrace | None] = []
    exposures: dict[int, drift_response.DriftExposure] = {}
    campaigns: list[CampaignEvidence] = []
    grouped = frozenset(grouped_suites(plan))
    episodes = observe(_annotated(traces, notes, exposures, campaigns, grouped), prices)
    roots = Judgement(
        evidence_root=evidence_root,
        replay_root=replay_root,
        plan_digest=plan_digest or document_digest(plan),
        protocol_digest=plan.protocol_digest,
        protocol_name=protocol.name,
        price_digest=plan.price_digest,
        verdicts=(),
        limits=LIMITS,
    )
    if plan.placement is not None:
        played = played_placement(
            plan, protocol, prices, episodes, campaigns, lost, placement, roots.plan_digest
        )
        verdict = placement_verdict(played, own_terms, assurance)
        return msgspec.structs.replace(roots, verdicts=(verdict,))
    native = NativeResults(plan, episodes, trials.complete_trials(plan, notes))
    protocol = with_dynamics(with_norms(protocol, counted), plan)
    context = JudgingContext(
        plan=plan,
        protocol=protocol,
        prices=prices,
        axes=all_axes(),
        root=replay_root,
        assurance=assurance,
        faults=tuple(map(str, check(plan, protocol))) if plan.battery else (),
        exposures=exposures,
        lost=lost,
        norms=norms,
        own_terms=own_terms,
    )
    scored = episodes.take(~native.rows)
    judged = [
        _judged(
            context,
            ArmEpisodes(arm, scored.take(scored.arm == arm.name), scored),
            [campaign for campaign in campaigns if campaign.arm == arm.name],
        )
        for arm in plan.arms
        if not (arm.placebo or arm.baseline)  # they are read as controls only
    ]
    verdicts = _with_controls(context, _with_cut_points(judged))
    return msgspec.structs.replace(
        roots, verdicts=tuple(with_native(verdict, native) for verdict in verdicts)
    )


def observe_placement(
    plan: Plan,
    traces: Iterable[Trace],
    protocol: Protocol,
    prices: PriceCard,
    facts: PlacementFacts,
    *,
    plan_digest: str,
    lost: Mapping[int, float],
) -> PlayedPlacement:
    """Return what was played of a placement.

    Args:
        plan: The run's plan.
        traces: Counted attempts.
        protocol: Published numbers.
        prices: Price card.
        facts: What the placement rests on beside its traces.
        plan_digest: Digest of the plan's file.
        lost: Micro-USD that agents used in attempts that do not count, by plan index.
    """
    campaigns: list[CampaignEvidence] = []
    episodes = observe(_annotated(traces, [], {}, campaigns), prices)
    return played_placement(plan, protocol, prices, episodes, campaigns, lost, facts, plan_digest)


def _annotated(
    traces: Iterable[Trace],
    notes: list[trials.TrialTrace | None],
    exposures: dict[int, drift_response.DriftExposure],
    campaigns: list[CampaignEvidence],
    grouped: frozenset[str] = frozenset(),
) -> Iterator[Trace]:
    """Yield traces; collect what trials, drift response and inner campaigns read.

    Of drift that is in suites whose operators have groups.
    """
    for trace in traces:
        notes.append(trials.read_trial(trace))
        if trace.start.instance.suite in grouped:
            exposures[trace.start.index] = drift_response.drift_exposure(trace)
        campaign = read_campaign(trace)
        if campaign is not None:
            campaigns.append(campaign)
        yield trace


def _judged(
    context: JudgingContext, episodes: ArmEpisodes, campaigns: Sequence[CampaignEvidence]
) -> _Judged:
    """Return the verdict on one arm, and its continuous score."""
    plan, table, arm = context.plan, episodes.table, episodes.arm
    sample, estimates, findings, dynamics = read_arm(context, episodes, campaigns)
    gates = _gates(sample, findings, dynamics)
    placement = _placement(context, arm, gates, findings)
    planned = sum(entry.arm == arm.name for entry in plan.entries)
    doses = _dose_response(context, table)
    verdict = AgentVerdict(
        arm=arm.name,
        agent=arm.agent,
        level=placement.level,
        level_text=placement.text,
        provisional=placement.provisional,
        inadmissible=context.faults,
        axes=tuple(findings.axes.values()),
        indices=tuple(findings.indices.values()),
        kappas=findings.kappas,
        closures=tuple(findings.closures.values()),
        gates=gates,
        frontier=frontier_score(sample, estimates),
        tables=(
            *descriptive.tables(table, sample),
            *_sensitivities(context, sample, estimates, findings, dynamics),
            *((crosswalk_table(sample, findings.axes),) if plan.battery else ()),
            *dynamics.tables,
            *robotics_tables(sample, findings, context.protocol),
            *project_tables(sample, gates, context.protocol),
            *(drift_response.dose_tables(doses) if doses else ()),
        ),
        curves=(
            *drift_curves(sample, estimates),
            *descriptive.curves(sample),
            *dynamics.curves,
            *project_curves(sample),
            *(drift_response.dose_curves(doses) if doses else ()),
        ),
        cost_micro_usd=descriptive.money_totals(table),
        violations=descriptive.violations(table),
        episodes=planned,
        counted=len(table),
        infrastructure=planned - len(table),
        warnings=report_warnings(plan, sample, estimates, table),
    )
    return verdict, dynamics.score


def _dose_response(
    context: JudgingContext, table: Observables
) -> drift_response.DoseResponse | None:
    """Return the drift response of an arm, None where no suite groups its operators."""
    plan = context.plan
    sample = grouped_of(plan, table, context.protocol, context.prices)
    if not len(sample.table):
        return None
    return drift_response.dose_response(plan, sample, context.exposures)


def _gates(sample: Sample, findings: gate.Findings, dynamics: Dynamics) -> tuple[GateResult, ...]:
    """Return every line of the levels, AAI-5 last."""
    protocol = findings.protocol
    bend = dynamics.bends.get(protocol.improvement.link)
    evidence = gate.SuperhumanEvidence(
        families=family_qualities(sample),
        curvature_low=None if bend is None else bend.interval.low,
        innovation=dynamics.innovation,
        link_steps=dynamics.link_steps,
    )
    return gate.judge_gates(findings) + gate.superhuman_gates(evidence, findings.axes, protocol)


def _placement(
    context: JudgingContext, arm: Arm, gates: tuple[GateResult, ...], findings: gate.Findings
) -> gate.LevelPlacement:
    """Return the level; none without an admissible battery, or for a control policy."""
    if context.plan.battery is None:
        return gate.no_level("no battery that gives a level was played")
    if arm_role(arm) == "reference":
        return gate.no_level(gate.CONTROL_POLICY)
    if context.faults:
        return _INADMISSIBLE
    automation = gate.is_fixed_automation(findings.axes, context.protocol)
    placed = gate.place(gates, context.protocol, automation=automation)
    if context.own_terms:
        text = f"{gate.NOT_PLACED} (own terms: {context.own_terms}); by them "
        return placed._replace(level=None, text=text + placed.text)
    return gate.marked_underpowered(placed) if context.plan.underpowered else placed


def _with_cut_points(judged: Sequence[_Judged]) -> tuple[AgentVerdict, ...]:
    """Return the verdicts, with the run's cut-points where it has exemplars."""
    table = cut_point_table([(score, verdict.level) for verdict, score in judged])
    return tuple(
        verdict
        if table is None or score is None
        else msgspec.structs.replace(verdict, tables=(*verdict.tables, table))
        for verdict, score in judged
    )


def _with_controls(
    context: JudgingContext, verdicts: tuple[AgentVerdict, ...]
) -> tuple[AgentVerdict, ...]:
    """Return the verdicts, without levels where a control does not fit the anchors."""
    if context.plan.battery is None:
        return verdicts
    axes = {verdict.agent: verdict.axes for verdict in verdicts}
    faults, warnings = check_controls(axes, context.protocol), unchecked_anchors(axes)
    placed = _INADMISSIBLE if faults else None
    return tuple(
        msgspec.structs.replace(
            verdict,
            inadmissible=(*verdict.inadmissible, *faults),
            warnings=(*verdict.warnings, *warnings),
            level=verdict.level if placed is None else placed.level,
            level_text=verdict.level_text if placed is None else placed.text,
            provisional=verdict.provisional and placed is None,
        )
        for verdict in verdicts
    )


def _sensitivities(
    context: JudgingContext,
    sample: Sample,
    estimates: ArmEstimates | None,
    findings: gate.Findings,
    dynamics: Dynamics,
) -> tuple[CellTable, ...]:
    """Return sensitivities, marginal returns and the human view, where there are."""
    if estimates is None:
        return ()
    present = [a for a in context.axes if estimates.coverage[a.symbol].reason is None]
    tables = (
        anchor_table(sample, present, estimates.point),
        price_table(sample, present, estimates.point),
        marginal_return_table(
            estimates.point.get(StatisticKey("AAI")),
            {s: axis.value for s, axis in findings.axes.items()},
            context.protocol,
            dynamics.responses,
        ),
        human_table(context.norms, estimates, context.protocol),
    )
    return tuple(table for table in tables if table is not None)
