"""Leaderboard: rows of run directories that a reader can trust, and why others cannot.

    board = leaderboard([Path("runs/a"), Path("runs/b")], registry)
    write_board(board, Path("board"))

Nothing is entered by hand: a row is what a run directory proves under the reader's registry of
verifiers. Source: docs/leaderboard.md.
"""

import multiprocessing
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from owa_bench.canonical import key_id
from owa_bench.errors import CheckFailure, OwaError, RunDirectoryError, error_line
from owa_bench.records.plan import WEAK_HOSTINGS, Arm, Plan, arm_role
from owa_bench.records.registry import Registry
from owa_bench.records.score import AgentVerdict, GateResult
from owa_bench.reports import verify
from owa_bench.reports.check.assurance import Assurance, Submission, assess, submission
from owa_bench.reports.check.integrity_checks import CheckResult
from owa_bench.reports.page.templates import own_file, page_template
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.terms import own_terms
from owa_bench.reports.statement import write_atomically
from owa_bench.scoring.gate import UNDECIDED
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics.task_means import mean_over_tasks

PAGE = "index.html"
CHECK = "check.html"  # whose script verifies a report's signature
LEAST = 4  # V4: replayed by a second party
MOST_LOST = 0.02  # attempts laid to a provider, as a share of the planned episodes [D]
MEMORY_BYTES = 4 << 30  # of the process that reads one member [D]
CPU_S = 600  # of the same [D]
_MICRO = 10**6


class Figure(NamedTuple):
    """A figure with the ends of its 95 percent interval; None: not known."""

    value: float | None
    low: float | None = None
    high: float | None = None


class BoardRow(NamedTuple):
    """An agent of a run that counts.

    `cost` is the agent's own, `supervisor` that of the simulated help, both USD an episode;
    `success` is a share of the unaided episodes, `axes` the ten by symbol. A placement has none of
    these figures, because a mean until a stop ranks nobody; it has `gates`. `rung` is the
    assurance, "V4" or "V5". `plans` says which plan of the submitter's it is, and of how many.
    """

    agent: str
    run: str
    battery: str
    rung: str
    level: str
    order: int
    composite: Figure | None
    success: Figure | None
    cost: Figure | None
    supervisor: Figure | None
    axes: tuple[tuple[str, Figure], ...]
    gates: tuple[GateResult, ...]
    submitter: str
    plans: str
    made: str


class RefusedRun(NamedTuple):
    """A run directory that gives no row, and why."""

    run: str
    reason: str


class Standings(NamedTuple):
    """A leaderboard by level, then index; the registry that it counts by."""

    registry: str
    rows: tuple[BoardRow, ...]
    refused: tuple[RefusedRun, ...]


def leaderboard(
    runs: Sequence[Path], registry: Registry, evaluator: bytes | None = None
) -> Standings:
    """Return the leaderboard of run directories.

    Args:
        runs: The run directories.
        registry: Whose challenges and replays count.
        evaluator: Public key of the party that asks, where it executed runs itself.
    Returns: A row an agent of every run that counts, and what was refused.
    """
    members = [_member_apart(run, registry, evaluator) for run in runs]
    played = Counter(member.plan_digest for member in members)
    rows: list[BoardRow] = []
    refused = []
    for run, member in zip(runs, members, strict=True):
        reason = member.refused
        if member.plan_digest and played[member.plan_digest] > 1:
            reason = "its plan was played in several directories here"
        if reason:
            refused.append(RefusedRun(str(run), reason.rstrip(".")))
        else:
            rows += member.rows
    rows.sort(key=lambda row: (-row.order, -_index(row), row.agent))
    return Standings(registry.name, tuple(rows), tuple(refused))


def _index(row: BoardRow) -> float:
    return row.composite.value or 0.0 if row.composite else 0.0


# --- one member, in a process of its own ----------------------------------------------
# A board survives whatever a directory does to its reader: what the bounds of
# `records.bounds` and `records.frames` do not see ends that process alone.


class _Member(NamedTuple):
    """What a run directory gives: its rows, or why it gives none."""

    plan_digest: str = ""
    rows: tuple[BoardRow, ...] = ()
    refused: str = ""


def _member_apart(run: Path, registry: Registry, evaluator: bytes | None) -> _Member:
    """Return what a run directory gives, read by a process with limits."""
    forks = multiprocessing.get_context("fork")
    receiver, sender = forks.Pipe(duplex=False)
    child = forks.Process(target=_send_member, args=(sender, run, registry, evaluator), daemon=True)
    child.start()
    sender.close()
    try:
        member: _Member = receiver.recv()
    except EOFError:
        child.join()
        member = _Member(
            refused=f"its reader ended with code {child.exitcode}: it takes more than "
            f"{MEMORY_BYTES:,} bytes of memory or {CPU_S} s of processor time"
        )
    child.join()
    return member


def _send_member(
    sender: Connection, run: Path, registry: Registry, evaluator: bytes | None
) -> None:
    """Send what a run directory gives."""
    for kind, most in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, hard))
    sender.send(_member(run, registry, evaluator))


def _member(run: Path, registry: Registry, evaluator: bytes | None) -> _Member:
    """Return what a run directory gives."""
    digest = ""
    try:
        bundle = read(run)
        digest = bundle.plan_digest
        return _Member(digest, tuple(_rows(bundle, registry, evaluator)))
    except MemoryError:
        return _Member(refused=f"it takes more than {MEMORY_BYTES:,} bytes of memory")
    except OwaError as error:
        return _Member(digest, refused=str(error))
    except Exception as error:  # noqa: BLE001 - a board survives any member
        return _Member(digest, refused=f"it cannot be judged: {error_line(error)}")


def _rows(bundle: Bundle, registry: Registry, evaluator: bytes | None) -> Iterator[BoardRow]:
    """Yield the rows of a run; CheckFailure says why it gives none."""
    plan, run = bundle.plan, bundle.layout.root
    if words := _unfit(plan, registry, evaluator):
        raise CheckFailure(words)
    if bundle.missing:
        raise CheckFailure(f"{len(bundle.missing)} planned episodes were not played")
    lost = sum(leaf.status == "provider" for leaf in bundle.leaves)
    if lost > MOST_LOST * len(plan.entries):
        raise CheckFailure(
            f"{lost} attempts were laid to a model's provider, more than "
            f"{100 * MOST_LOST:g} percent of the planned episodes: who runs the "
            "provider could have bad episodes played again; page one says how many a "
            "plain question confirmed"
        )
    public = bytes.fromhex(plan.public_key)
    checks = verify.verify(run, public, evaluator, registry)
    _refuse_broken([*checks, *verify.recompute(run)])
    assurance = assess(bundle, checks, signed=True, verifier=evaluator, registry=registry)
    if assurance.level < LEAST:
        short = assurance.rungs[assurance.level + 1]
        raise CheckFailure(
            f"{assurance.name}, and V{LEAST} is asked for: {short.name} is not met "
            f"({short.evidence})"
        )
    if assurance.level == LEAST and not submission(bundle).submitter:
        raise CheckFailure(
            "who signed its plan is not on the verifier's list of submitters, so it "
            "may be the best of many plans"
        )
    signed = verify.read_signed_report(bundle)
    if signed is None:
        raise RunDirectoryError("it holds no report")
    learners = {arm.name for arm in plan.arms if arm_role(arm) == "learner"}
    for verdict in signed.report.judgement.verdicts:
        if verdict.arm in learners:
            yield _row(bundle, verdict, assurance)


def _unfit(plan: Plan, registry: Registry, evaluator: bytes | None) -> str:
    """Return which of the terms of a plan is not for a leaderboard, "" for none."""
    if plan.battery is None:
        return "it plays no battery that gives a level"
    if theirs := own_terms(plan):
        return f"own terms: {theirs}"
    if plan.underpowered:
        return f"battery {plan.battery} is under-powered and places nobody"
    open_arms = [arm for arm in plan.arms if not _is_sandboxed(arm)]
    if open_arms:
        arm = open_arms[0]
        return f"agent {arm.name} was {arm.hosting or 'anywhere'}, not in a sandbox"
    executed = bool(registry.evaluator_of(plan.public_key))
    executed |= evaluator is not None and evaluator.hex() == plan.public_key
    if not executed and not registry.verifier_of(plan.challenger):
        return "its seeds wait for no challenge of a verifier that the registry names"
    return ""


def _is_sandboxed(arm: Arm) -> bool:
    return arm.hosting not in WEAK_HOSTINGS


def _refuse_broken(checks: Sequence[CheckResult]) -> None:
    broken = [check for check in checks if not check.ok]
    if broken:
        raise CheckFailure(f"{broken[0].name} fails: {broken[0].detail}")


def _row(bundle: Bundle, verdict: AgentVerdict, assurance: Assurance) -> BoardRow:
    plan, whose = bundle.plan, submission(bundle)
    composite, success, cost, supervisor = None, None, None, None
    if plan.placement is None:
        index = next(one for one in verdict.indices if one.name == "AAI")
        interval = index.tasks_like_these
        composite = Figure(index.value, interval.low, interval.high)
        success, cost, supervisor = _outcomes(bundle, verdict.arm)
    return BoardRow(
        agent=verdict.agent,
        run=bundle.layout.root.name,
        battery=plan.battery or "",
        rung=assurance.name,
        level=verdict.level_text,
        order=_order(verdict),
        composite=composite,
        success=success,
        cost=cost,
        supervisor=supervisor,
        axes=tuple(
            (axis.symbol, Figure(axis.value, axis.tasks_like_these.low, axis.tasks_like_these.high))
            for axis in verdict.axes
        ),
        gates=() if plan.placement is None else verdict.gates,
        submitter=whose.submitter or f"key {key_id(bytes.fromhex(plan.public_key))}",
        plans=_which_plan(whose),
        made=plan.created[:10],
    )


def _order(verdict: AgentVerdict) -> int:
    """Return the place of a level: who is undecided stands with AAI-0, who has none behind."""
    if verdict.level is not None:
        return verdict.level
    return 0 if verdict.level_text.startswith(UNDECIDED) else -1


def _which_plan(whose: Submission) -> str:
    """Return which plan of its submitter's a run plays, and of how many, if known."""
    if not whose.submitter:
        return ""
    return f"{whose.number} of {whose.plans or 'an unknown count'}"


def _outcomes(bundle: Bundle, arm: str) -> tuple[Figure, Figure, Figure]:
    """Return the share of unaided successes, and USD an episode of agent and supervisor."""
    table = observe(bundle.traces(), bundle.prices)
    own = table.take((table.arm == arm) & (table.condition == ""))
    alone = own.take((own.interventions == 0) & (own.phase != "practice"))
    if not len(own) or not len(alone):
        return Figure(None), Figure(None), Figure(None)
    success = Figure(*mean_over_tasks(alone.u.astype(float), alone.pair))
    cost, supervisor = (
        Figure(*mean_over_tasks(micro / _MICRO, own.pair, share=False))
        for micro in (own.cost_agent, own.cost_human)
    )
    return success, cost, supervisor


def write_board(board: Standings, folder: Path) -> Path:
    """Write a leaderboard as one page without scripts, and beside it the page that checks reports.

    Args:
        board: The leaderboard.
        folder: Where to; made where it is missing.
    Returns: The leaderboard's page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CHECK, own_file(CHECK).encode())
    template = page_template("leaderboard.html.j2", {"shown": figure_text})
    page = folder / PAGE
    write_atomically(page, template.render(board=board).encode())
    return page


def figure_text(figure: Figure | None, decimals: int = 3) -> str:
    """Return a figure with its interval as text.

    Args:
        figure: The figure; None: of a placement, which has none.
        decimals: Places after the point.
    Returns: Such as "0.500 [0.400, 0.600]".

    >>> [figure_text(f) for f in (Figure(0.5, 0.4, 0.6), Figure(None), Figure(1.0))]
    ['0.500 [0.400, 0.600]', 'NO EVIDENCE', '1.000']
    """
    if figure is None:
        return "–"
    if figure.value is None:
        return "NO EVIDENCE"
    text = f"{figure.value:.{decimals}f}"
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{figure.low:.{decimals}f}, {figure.high:.{decimals}f}]"
