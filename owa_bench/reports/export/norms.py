"""Norms from runs that persons played: admission of the runs, the file, its tables.

Only what the harness recorded is read: who played by the signed plan, when by the clock of the
loop, how well by the trace.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, key_id, public_bytes, seal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.events import Action
from owa_bench.records.layout import ATTENDANCE_TYPE, NORMS_TYPE
from owa_bench.records.people import (
    Attendance,
    Group,
    HumanNorms,
    NormFigure,
    PersonRun,
    terms_fault,
    terms_of_plan,
)
from owa_bench.records.plan import PERSON, SCRIPTED_PERSON
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.statement import write_atomically
from owa_bench.reports.verify import verify
from owa_bench.scoring.verdict.norms import arm_figures, norm_figure

_MOST_WATCHERS = 8  # of one run


def make_norms(
    run_dirs: Sequence[Path], group: Group = "adults", baseline: Path | None = None
) -> HumanNorms:
    """Return the norms of several people's runs.

    Args:
        run_dirs: One run a person.
        group: Who they are, as whoever makes the norms says.
        baseline: A run of one baseline agent under the same terms; its raw statistics are the lower
            anchors a.
    Returns: The norms, unsigned.
    Raises:
        CheckFailure: The evidence of a run does not hold; names run and check.
        UsageError: A run is none of one person, is not complete, was begun twice, or has other
            terms than the first.
    """
    bundles = [_verified(path) for path in run_dirs]
    if not bundles:
        raise UsageError("Norms need at least one run of a person, got none.")
    terms = terms_of_plan(bundles[0].plan)
    for bundle in bundles:
        _refuse_other_terms(bundles[0], bundle)
    runs = tuple(_person(bundle) for bundle in bundles)
    for place, run in enumerate(runs):
        if run.person in {other.person for other in runs[:place]}:
            raise UsageError(f"A person counts once, got two runs of `{run.person}`: give one.")
    figures = [arm_figures(b.plan, b.traces(), b.protocol, b.prices) for b in bundles]
    level = bundles[0].protocol.statistics.level
    base, floor = (None, {})
    if baseline is not None:
        base = _verified(baseline)
        _refuse_other_terms(bundles[0], base)
        if len(base.plan.arms) != 1:
            raise UsageError(f"A baseline is a run of one agent, got {baseline}.")
        floor = dict(arm_figures(base.plan, base.traces(), base.protocol, base.prices).axes)
    raws = [{s: raw for s, (raw, *_) in one.axes.items()} for one in figures]
    return HumanNorms(
        group=group,
        terms=terms,
        runs=runs,
        families=_figures([one.families for one in figures], level),
        axes=_figures(raws, level),
        thresholds=_figures([one.thresholds for one in figures], level),
        baseline_root=base.evidence_root if base else "",
        baseline=floor,
    )


def sealed_norms(norms: HumanNorms, key: Ed25519PrivateKey) -> bytes:
    """Return the bytes of a norms file.

    Args:
        norms: The norms.
        key: The signing key.
    """
    public = public_bytes(key.public_key()).hex()
    signed = msgspec.structs.replace(norms, public_key=public)
    return seal(NORMS_TYPE, canonical_json(signed), key)


def _figures(persons: Sequence[Mapping[str, float]], level: float) -> dict[str, NormFigure]:
    """Return the figure of every quantity over the persons that have it."""
    names = sorted({name for one in persons for name in one})
    return {
        name: norm_figure([one[name] for one in persons if name in one], level) for name in names
    }


def _verified(run_dir: Path) -> Bundle:
    """Return a run all of whose checks hold."""
    broken = [c for c in verify(run_dir) if not c.ok]
    if broken:
        why = "; ".join(f"{check.name}: {check.detail}" for check in broken)
        raise CheckFailure(f"{run_dir} does not hold ({why}).")
    return read(run_dir)


def _refuse_other_terms(first: Bundle, other: Bundle) -> None:
    fault = terms_fault(terms_of_plan(first.plan), terms_of_plan(other.plan), whole=True)
    if fault:
        one, two = first.layout.root, other.layout.root
        raise UsageError(f"{one} and {two} must have the same terms, got {fault}.")


def _person(bundle: Bundle) -> PersonRun:
    """Return the entry of a run; UsageError where no one person played all of it."""
    plan, root = bundle.plan, bundle.layout.root
    spec = plan.arms[0].agent
    if len(plan.arms) != 1 or not spec.startswith((PERSON, SCRIPTED_PERSON)):
        names = ", ".join(arm.agent for arm in plan.arms)
        raise UsageError(f"{root} must be played by one person (`owa-bench play`), got {names}.")
    if None in bundle.counting_leaves:
        raise UsageError(f"{root} is not complete: go on with `owa-bench play --resume`.")
    seen = sorted(_begun_twice(bundle))
    if seen:
        raise UsageError(
            f"{root} cannot be used: its episodes {', '.join(map(str, seen))} were "
            "begun twice, and a second look is no norm."
        )
    ends = [trace.end for trace in bundle.traces()]
    pace = float(np.median([end.wall_s / max(end.steps, 1) for end in ends]))
    scripted, fastest = spec.startswith(SCRIPTED_PERSON), _fastest_pace(bundle)
    if pace < fastest and not scripted:
        raise UsageError(
            f"{root} cannot be used: {pace:.2g} s an action is a program's pace, less "
            f"than `norms.step_s_min` {fastest:g}; declare it with --scripted."
        )
    return PersonRun(
        person=plan.arms[0].name,
        evidence_root=bundle.evidence_root,
        plan_digest=bundle.plan_digest,
        key_id=key_id(bytes.fromhex(plan.public_key)),
        scripted=scripted,
        episodes=len(ends),
        step_s=pace,
        attendances=_attendances(bundle),
    )


def sign_attendance(run_dir: Path, key: Ed25519PrivateKey) -> Path:
    """Sign that one watched the person of a run play it, alone, to its end.

    Args:
        run_dir: The run directory, complete.
        key: Of who watched.
    Returns: The file, `receipts/attendance-KEY.dsse.json`.
    Raises:
        CheckFailure: The evidence of the run does not hold.
        UsageError: No one person played all of it, or the key signed its plan.
    """
    bundle = _verified(run_dir)
    run = _person(bundle)
    public = public_bytes(key.public_key())
    if key_id(public) == run.key_id:
        raise UsageError(
            "`--key` must be another key than the one that signed the run's plan: "
            "nobody vouches for a run of their own."
        )
    word = Attendance(
        person=run.person,
        plan_digest=run.plan_digest,
        evidence_root=run.evidence_root,
        public_key=public.hex(),
    )
    path = bundle.layout.receipts / f"attendance-{key_id(public)}.dsse.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, seal(ATTENDANCE_TYPE, canonical_json(word), key))
    return path


def _attendances(bundle: Bundle) -> tuple[str, ...]:
    """Return the signed words of those who watched a run, at most a few."""
    paths = sorted(bundle.layout.receipts.glob("attendance-*.dsse.json"))
    return tuple(path.read_text() for path in paths[:_MOST_WATCHERS])


def _fastest_pace(bundle: Bundle) -> float:
    """Return the least seconds an action of a person; UsageError without any."""
    fastest = bundle.protocol.norms.step_s_min
    if fastest is None:
        raise UsageError(
            f"`norms.step_s_min` must be in the protocol of {bundle.layout.root}, got "
            "none: let persons play under one that has it."
        )
    return fastest


def _begun_twice(bundle: Bundle) -> Iterator[int]:
    """Yield entries of which an attempt that does not count has an action."""
    counted = {leaf.attempt_id for leaf in bundle.counting_leaves if leaf is not None}
    for attempt in bundle.attempts():
        acted = any(isinstance(event, Action) for event in attempt.events)
        if acted and attempt.leaf.attempt_id not in counted:
            yield attempt.leaf.index
