"""From a bundle to a report: judge the traces, and note the terms beside."""

from collections import Counter
from importlib import metadata

from owa_bench.canonical import key_id
from owa_bench.records.score import CellTable
from owa_bench.report import figures, pictures, tallies
from owa_bench.report.bundle import Bundle
from owa_bench.report.contents import LIMITS, Assurance, Report, RunFacts
from owa_bench.report.pictures import Gallery
from owa_bench.report.render_html import render
from owa_bench.scoring.pipeline import judge


def compose(bundle: Bundle, assurance: Assurance) -> Report:
    """Return the report of a run, a pure function of its directory and the ladder.

    Errors: TraceError where a counted attempt does not read.
    """
    return Report(
        version=metadata.version("owa_bench"),
        renderer=figures.VERSION,
        judgement=judge(
            bundle.plan,
            bundle.traces(),
            bundle.protocol,
            bundle.prices,
            evidence_root=bundle.evidence_root,
            replay_root=bundle.replay_root,
            plan_digest=bundle.plan_digest,
            assurance=assurance.level,
        ),
        assurance=assurance,
        run=_facts(bundle),
        environment=bundle.plan.environment,
        drift=tallies.drift(bundle.traces()),
        breaches=tallies.breaches(bundle.traces()),
        failures=_failures(bundle),
        limits=LIMITS,
    )


def _failures(bundle: Bundle) -> Gallery:
    """Return the pictures of failures; those of episodes in which drift was drawn."""
    return pictures.gallery(bundle.traces(), transcripts=bundle.plan.transcripts)


def page(bundle: Bundle, report: Report) -> bytes:
    """Return the HTML page of a report of this run."""
    return render(
        report,
        protocol_text=bundle.protocol_bytes.decode(),
        price_text=bundle.price_bytes.decode(),
        shown=pictures.shown(bundle.layout, report.failures),
    ).encode()


def _facts(bundle: Bundle) -> RunFacts:
    """Return the head of the page."""
    plan = bundle.plan
    states = Counter(leaf.status for leaf in bundle.leaves)
    return RunFacts(
        name=plan.name,
        battery=plan.battery,
        suites=tuple(f"{s.name} v{s.version}" for s in plan.suites),
        arms=tuple((arm.name, arm.agent, arm.fingerprint) for arm in plan.arms),
        created=plan.created,
        planned=len(plan.entries),
        attempts=len(bundle.leaves),
        counted=sum(leaf is not None for leaf in bundle.counted),
        infrastructure=states["infrastructure"],
        unfinished=states["unfinished"],
        without_attempt=len(bundle.missing),
        attempt_rule=plan.attempt_rule,
        resamples=plan.bootstrap.resamples,
        simulated_days=plan.simulated_days and any(e.day for e in plan.entries),
        transcripts=plan.transcripts,
        commitment=plan.commitment,
        verifier_nonce=plan.verifier_nonce,
        calendar=plan.calendar,
        public_key=plan.public_key,
        key_id=key_id(bytes.fromhex(plan.public_key)) if plan.public_key else "",
        tables=(_suites(bundle),),
    )


def _suites(bundle: Bundle) -> CellTable:
    """Return the suites as the plan fixed them."""
    columns = ("suite", "version", "families", "tiers", "weight", "source digest")
    rows = tuple(
        (
            suite.name,
            suite.version,
            ", ".join(suite.families),
            ", ".join(str(tier) for tier in suite.tiers),
            suite.weight,
            suite.source_digest[:16],
        )
        for suite in bundle.plan.suites
    )
    return CellTable(title="suites", columns=columns, rows=rows)
