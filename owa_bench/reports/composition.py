"""The report record, composed from the judgement of a run and the terms of its plan.

For a notebook, the same figures without signature or page:

from owa_bench.reports.composition import score verdict = score("runs/a")["agentic"] {axis.symbol:
axis.value for axis in verdict.axes}
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from owa_bench.canonical import key_id
from owa_bench.records.events import Drift, Violation
from owa_bench.records.score import AgentVerdict, CellTable, Judgement
from owa_bench.records.trace import FAILED, Trace
from owa_bench.reports.check.assurance import Assurance, submission_words
from owa_bench.reports.check.integrity_checks import unreadable_line
from owa_bench.reports.check.placement import placement_facts
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.comparison import report_comparison
from owa_bench.reports.read.failures import (
    FailureReadings,
    FailureSummary,
    lost_readings,
    read_episode,
)
from owa_bench.reports.read.outcomes import ArmOutcomes, OutcomeEpisodes, arm_outcomes
from owa_bench.reports.read.pictures import Gallery, PictureChoice
from owa_bench.reports.read.ratings import rating_tables
from owa_bench.reports.read.terms import checklist_table, own_terms
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.verdict.norms import norm_tables

# What no check of this project can show; printed on every report.
LIMITS = (
    "Fabricated usage. Tokens, model calls and messages that an agent declares are"
    " marked `source: agent`; if usage and cost are faked together, no check sees it.",
    "The best of several whole runs. Somebody may run the same plan many times, or"
    " many plans, and publish one. A verifier who registers submitters counts the plans"
    " that each had challenged; two verifiers, or two names of one submitter, count"
    " apart, and one plan may be played several times.",
    "A human or an oracle inside the agent. The harness sees actions, not who chose"
    " them. A run executed by the verifier (V5) narrows this.",
    "Seed grinding without a challenge. Whoever picks the master secret may pick one"
    " with easy worlds, and a nonce that was known before does not hinder that; only a"
    " verifier's challenge to the signed plan does.",
    "A plan rewritten afterwards. Whoever holds the signing key can write another plan"
    " and sign it anew; only a witness from before episode 0 (V3) shows it.",
)
_MOST_GROUPS = 20  # of like failures
_DRIFT = (
    *("operator", "version", "class", "in effect", "weight"),
    *("episodes", "changes", "targets"),
)
_BREACHES = ("agent", "rule", "severity", "episodes", "breaches", "first", "evidence")
_SUITES = ("suite", "version", "families", "tiers", "weight", "source digest")

RENDERER = metadata.version("matplotlib")  # which draws a page's figures

_FROM_PLAN = (
    *("name", "battery", "created", "attempt_rule", "transcripts", "commitment"),
    *("calendar", "public_key"),
)


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run as its plan and its shards have it, for the head of the page."""

    name: str
    battery: str | None
    suites: tuple[str, ...]
    arms: tuple[tuple[str, str, str], ...]
    created: str
    planned: int
    attempts: int
    counted: int
    infrastructure: int
    unfinished: int
    without_attempt: int
    attempt_rule: str
    simulated_days: bool
    transcripts: bool
    commitment: str
    verifier_nonce: str | None
    calendar: str
    public_key: str
    key_id: str
    tables: tuple[CellTable, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is signed beside the roots.

    `failures` are pictures of failed episodes, `failed` is what went wrong. `comparison` is of two
    arms. `page` is the SHA-256 of the HTML page. `renderer` is the version of matplotlib: the same
    version draws the same bytes.
    """

    schema: str = "owa-report-1"
    version: str
    renderer: str
    judgement: Judgement
    assurance: Assurance
    run: RunFacts
    environment: tuple[tuple[str, str], ...]
    drift: CellTable
    breaches: CellTable
    outcomes: tuple[ArmOutcomes, ...] = ()
    failures: Gallery = Gallery()
    failed: FailureSummary = FailureSummary()
    comparison: CellTable | None = None
    limits: tuple[str, ...]
    page: str | None = None


def compose(bundle: Bundle, assurance: Assurance) -> Report:
    """Return the report of a run, a pure function of its directory and its assurance.

    Args:
        bundle: the run directory.
        assurance: the assurance levels that the run meets.
    Returns: The report without the digest of its page.
    Raises: TraceError: a counted attempt does not read.
    """
    drift, breaches, pictures = _DriftCounts(), _BreachCounts(), PictureChoice()
    outcomes = OutcomeEpisodes(placement=bundle.plan.placement is not None)
    failures = FailureReadings()

    def read_once() -> Iterator[Trace]:
        """Yield the counted episodes, seen by all: to read a run takes longer than to judge it."""
        for trace in bundle.traces():
            for rows in (drift, breaches, pictures, outcomes):
                rows.add(trace)
            failures.add(read_episode(trace))
            yield trace

    judgement = judge_bundle(bundle, assurance.level, read_once())
    for episode in lost_readings(bundle, outcomes.counted.keys()):
        failures.add(episode)
    return Report(
        version=metadata.version("owa_bench"),
        renderer=RENDERER,
        judgement=judgement,
        assurance=assurance,
        run=_facts(bundle, judgement),
        environment=bundle.plan.environment,
        drift=drift.table(),
        breaches=breaches.table(),
        outcomes=arm_outcomes(bundle, _costs(judgement), outcomes),
        failures=pictures.gallery(transcripts=bundle.plan.transcripts),
        failed=failures.summary([arm.name for arm in bundle.plan.arms], _MOST_GROUPS),
        comparison=report_comparison(bundle),
        limits=LIMITS,
    )


def score(run_dir: str | Path) -> Mapping[str, AgentVerdict]:
    """Return the verdict on every arm of a run, by its name.

    Nothing is checked or signed: `owa-bench report` and `verify` do that. No assurance level is
    granted, so the AAI levels that ask for one are not reached.

    Raises:
        RunDirectoryError: there is no run.
        TraceError: an attempt does not read.
    """
    verdicts = judge_bundle(read(Path(run_dir)), None).verdicts
    return {verdict.arm: verdict for verdict in verdicts}


def drift_counts(traces: Iterable[Trace]) -> CellTable:
    """Return drift operators with class, weight, and the number of their changes.

    An operator has a row per class that its changes have in effect. `episodes` counts episodes with
    at least one such change, `targets` the distinct targets over the whole run.
    """
    counts = _DriftCounts()
    for trace in traces:
        counts.add(trace)
    return counts.table()


class _DriftCounts:
    """Changes of the counted episodes by operator, added one by one."""

    def __init__(self) -> None:
        kind = tuple[str, int, str, str, float]
        self._episodes: Counter[kind] = Counter()
        self._changes: Counter[kind] = Counter()
        self._targets: dict[kind, set[str]] = defaultdict(set)

    def add(self, trace: Trace) -> None:
        """Add the changes of a counted episode."""
        kinds = set()
        for event in trace.of(Drift):
            classes = (event.announcement, event.effective)
            kind = (event.operator, event.version, *classes, event.weight)
            kinds.add(kind)
            self._changes[kind] += 1
            self._targets[kind].add(event.target)
        self._episodes.update(kinds)

    def table(self) -> CellTable:
        """Return a row per operator and class in effect."""
        rows = tuple(
            (*kind, self._episodes[kind], self._changes[kind], len(self._targets[kind]))
            for kind in sorted(self._changes)
        )
        note = "" if rows else "No drift struck in any counted episode."
        return CellTable("drift met", _DRIFT, rows, note)


def violation_counts(traces: Iterable[Trace]) -> CellTable:
    """Return broken rules of engagement by agent, with the first evidence of each."""
    counts = _BreachCounts()
    for trace in traces:
        counts.add(trace)
    return counts.table()


class _BreachCounts:
    """Breaches of the counted episodes by agent and rule, added one by one."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)

    def add(self, trace: Trace) -> None:
        """Add the breaches of a counted episode."""
        for event in trace.of(Violation):
            key = (trace.start.arm, event.rule, event.severity)
            self._seen[key].append((trace.leaf.attempt_id, event.evidence))

    def table(self) -> CellTable:
        """Return a row per agent and rule."""
        rows = tuple(
            (*key, len({attempt for attempt, _ in breaches}), len(breaches), *breaches[0])
            for key, breaches in sorted(self._seen.items())
        )
        note = "" if rows else "No rule of engagement was seen to be broken."
        return CellTable("broken rules", _BREACHES, rows, note)


def _costs(judgement: Judgement) -> dict[str, int | None]:
    """Return micro-USD of the agent and human streams by arm, None where unknown."""
    costs: dict[str, int | None] = {}
    for verdict in judgement.verdicts:
        agent, human = (verdict.cost_micro_usd.get(s) for s in ("agent", "human"))
        costs[verdict.arm] = None if agent is None or human is None else agent + human
    return costs


def judge_bundle(
    bundle: Bundle, assurance: int | None, traces: Iterable[Trace] | None = None
) -> Judgement:
    """Return the judgement of a run; a warning names each attempt that does not read.

    Args:
        bundle: the run directory.
        assurance: the assurance level that the run meets; None grants none.
        traces: its counted attempts; None: they are read.
    """
    judgement = judge(
        bundle.plan,
        bundle.traces() if traces is None else traces,
        bundle.protocol,
        bundle.prices,
        evidence_root=bundle.evidence_root,
        replay_root=bundle.replay_root,
        plan_digest=bundle.plan_digest,
        assurance=assurance,
        lost=bundle.lost_costs(bundle.prices),
        norms=bundle.norms,
        unattended=bundle.unattended,
        own_terms=own_terms(bundle.plan),
        **({"placement": placement_facts(bundle)} if bundle.plan.placement else {}),
    )
    arms = {entry.index: entry.arm for entry in bundle.plan.entries}
    lines = defaultdict(list)
    for attempt in bundle.unreadable:
        lines[arms.get(attempt.leaf.index)].append(unreadable_line(attempt))
    verdicts = tuple(
        msgspec.structs.replace(v, warnings=(*v.warnings, *lines[v.arm]))
        for v in judgement.verdicts
    )
    return msgspec.structs.replace(judgement, verdicts=verdicts) if lines else judgement


def _given_nonce(bundle: Bundle) -> str | None:
    """Return what a verifier gave to the seeds, and whose plan it is, in words."""
    plan = bundle.plan
    if not plan.challenger:
        return plan.verifier_nonce
    signer = key_id(bytes.fromhex(plan.challenger))
    words = f"challenge of key {signer}, given after the plan was signed"
    return f"{words}; {submission_words(bundle)}"


def _facts(bundle: Bundle, judgement: Judgement) -> RunFacts:
    plan = bundle.plan
    terms = (plan, bundle.protocol, judgement, bundle.norms)
    states = Counter(leaf.status for leaf in bundle.leaves)
    suites = tuple(
        (
            suite.name,
            suite.version,
            ", ".join(suite.families),
            ", ".join(map(str, suite.tiers)),
            suite.weight,
            suite.source_digest[:16],
        )
        for suite in plan.suites
    )
    return RunFacts(
        **{name: getattr(plan, name) for name in _FROM_PLAN},
        verifier_nonce=_given_nonce(bundle),
        suites=tuple(f"{s.name} v{s.version}" for s in plan.suites),
        arms=tuple((arm.name, arm.agent, arm.fingerprint) for arm in plan.arms),
        planned=len(bundle.due),
        attempts=len(bundle.leaves),
        counted=sum(leaf is not None for leaf in bundle.counting_leaves),
        infrastructure=sum(states[status] for status in FAILED),
        unfinished=states["unfinished"],
        without_attempt=len(bundle.missing),
        simulated_days=plan.simulated_days and any(e.day for e in plan.entries),
        key_id=key_id(bytes.fromhex(plan.public_key)) if plan.public_key else "",
        tables=(
            CellTable("suites", _SUITES, suites),
            *(norm_tables(bundle.norms, bundle.registry) if bundle.norms else ()),
            *rating_tables(bundle),
            *((checklist_table(*terms),) if plan.battery else ()),
        ),
    )
