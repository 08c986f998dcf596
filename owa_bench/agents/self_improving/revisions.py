"""Self-revision: one proposed skill at a time, decided by a sequential paired test.

A proposal answers the sign that showed up most. From then on every new goal is worked
on twice, as before and with the change, and both runs are held to the same checks
(`skills.api_solver.self_checks`): a pair is won, lost or tied. The goals come after the
proposal, so none of them led to it. The test is a bet against "the change wins no more
than half of the pairs that differ", valid whenever it is stopped. Neither the checks
nor this rule can be revised, and the supervisor's answers stay out of it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from owa_bench.canonical import document_digest
from owa_bench.records.events import Revision
from owa_bench.skills.api_solver.skill_config import SkillConfig

FILE = "notebook.json"
# The revision space begins with every skill off: there is something to learn. The odds
# under which the supervisor is asked are no part of it.
BEGINNER = SkillConfig(
    waits=False,
    pages=False,
    repages=False,
    retries=False,
    searches=False,
    remembers=False,
    guesses=False,
    weighs=False,
    adds_up=False,
)
# The skills that may remove a sign, in the order in which they are proposed.
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "short": ("pages", "repages"),
    "limited": ("waits",),
    "refused": ("retries",),
    "bad request": ("repages",),
    "gone": ("searches",),
    "renamed": ("guesses", "weighs"),
    "off total": ("adds_up",),
    "met before": ("remembers",),
}
LEAST_SIGNS = 2  # episodes that show a sign before a skill is proposed
ALPHA = 0.2  # of a first proposal; a habit's n-th gets ALPHA / n
STAKE = 0.8  # share of the wealth that is bet on a pair
RUIN = 0.05  # wealth under which a trial is rejected
MOST_LOOKS = 8  # pairs on goals that show a sign, differing or not
MOST_IDLE = 6  # uninformative goals in a row, after which a trial is given up


class RevisionTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed change under test: one more skill, on goals after the proposal.

    `habit` names the skill. `wealth` is the e-value so far; `wins` and `losses` are
    pairs in which the changed configuration passed more or fewer checks, `ties` those
    without a difference; `idle` counts the uninformative goals in a row.
    """

    habit: str
    plan: str
    diff: str
    needed: float
    wealth: float = 1.0
    wins: int = 0
    losses: int = 0
    ties: int = 0
    idle: int = 0


class Notebook(msgspec.Struct, frozen=True, kw_only=True):
    """Memory between episodes, but for facts about providers.

    `habits` are the adopted skills. `signs` counts the episodes since the last decision
    that showed a sign, `tried` how often each skill was proposed, `resting` those
    rejected since the last adoption. `table` is the calibration table: own odds in
    tenths -> (answers that the supervisor confirmed, answers it was asked about).
    """

    habits: SkillConfig = BEGINNER
    signs: dict[str, int] = {}
    trial: RevisionTrial | None = None
    tried: dict[str, int] = {}
    resting: tuple[str, ...] = ()
    table: dict[str, tuple[int, int]] = {}


def load_notebook(folder: Path) -> Notebook:
    """Return the notebook in `folder`; a new one where there is none to be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Notebook)
    except (OSError, msgspec.MsgspecError):
        return Notebook()


def save_notebook(folder: Path, notebook: Notebook) -> None:
    """Write the notebook, complete or not at all.

    Args:
        folder: is made where it is missing.
        notebook: what is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{FILE}.tmp"
    draft.write_bytes(msgspec.json.encode(notebook, order="sorted") + b"\n")
    draft.replace(folder / FILE)


def count_signs(notebook: Notebook, signs: Iterable[str]) -> Notebook:
    """Return the notebook with one more episode's signs.

    Args:
        notebook: before the episode.
        signs: that it showed.

    Returns:
        The notebook after it.
    """
    counts = dict(notebook.signs)
    for sign in signs:
        counts[sign] = counts.get(sign, 0) + 1
    return msgspec.structs.replace(notebook, signs=counts)


def propose(notebook: Notebook) -> tuple[Notebook, Revision | None]:
    """Return the notebook with a trial opened, where a sign calls for one."""
    skill = None if notebook.trial else _next_skill(notebook)
    if skill is None:
        return notebook, None
    times = notebook.tried.get(skill, 0) + 1
    plan = {
        "hypothesis": f"with `{skill}` on, fetched goals pass more of their own checks",
        "statistic": "share of the checks of skills.clerk.audit, paired by goal",
        "rule": "bet on each pair that differs; adopt at wealth >= needed",
        "stake": STAKE,
        "needed": times / ALPHA,
        "most_looks": MOST_LOOKS,
        "most_idle": MOST_IDLE,
        "attempt": times,
    }
    trial = RevisionTrial(
        habit=skill,
        plan=document_digest(plan),
        diff=document_digest({"habits": {skill: [False, True]}}),
        needed=times / ALPHA,
    )
    opened = msgspec.structs.replace(
        notebook, trial=trial, tried={**notebook.tried, skill: times}
    )
    return opened, _event(trial, "proposed")


def adopted_count(notebook: Notebook) -> int:
    """Return how many skills have been adopted."""
    before, now = dataclasses.asdict(BEGINNER), dataclasses.asdict(notebook.habits)
    return sum(before[name] != now[name] for name in before)


def trial_config(notebook: Notebook) -> SkillConfig | None:
    """Return the configuration under trial, None when there is no trial."""
    if notebook.trial is None:
        return None
    return _with(notebook.habits, notebook.trial.habit)


def record_pair(
    notebook: Notebook, old: float, new: float, *, relevant: bool
) -> tuple[Notebook, Revision | None]:
    """Record one more pair of the open trial.

    Args:
        notebook: before the pair.
        old: share of checks that the adopted configuration passed.
        new: share that the changed one passed.
        relevant: whether the goal showed a sign that the change is to remove; a pair
            without a difference counts only then.

    Returns:
        The notebook after it, and the decision if it was the last.
    """
    trial = notebook.trial
    if trial is None or (old == new and not relevant):
        return record_uninformative(notebook)
    trial = msgspec.structs.replace(
        trial,
        idle=0,
        wealth=trial.wealth * (1.0 + STAKE * ((new > old) - (new < old))),
        wins=trial.wins + (new > old),
        losses=trial.losses + (new < old),
        ties=trial.ties + (new == old),
    )
    looks = trial.wins + trial.losses + trial.ties
    if trial.wealth >= trial.needed:
        adopted = msgspec.structs.replace(
            notebook,
            habits=_with(notebook.habits, trial.habit),
            signs={},
            trial=None,
            resting=(),
        )
        return adopted, _event(trial, "adopted")
    if trial.wealth < RUIN or looks >= MOST_LOOKS:
        return _reject(notebook, trial)
    return msgspec.structs.replace(notebook, trial=trial), None


def record_uninformative(notebook: Notebook) -> tuple[Notebook, Revision | None]:
    """Return the notebook after a goal that was uninformative for the trial.

    It showed no sign to remove, or the second run exceeded its share of the steps. A
    trial with many such goals in a row is rejected.
    """
    trial = notebook.trial
    if trial is None:
        return notebook, None
    trial = msgspec.structs.replace(trial, idle=trial.idle + 1)
    if trial.idle >= MOST_IDLE:
        return _reject(notebook, trial)
    return msgspec.structs.replace(notebook, trial=trial), None


def _reject(notebook: Notebook, trial: RevisionTrial) -> tuple[Notebook, Revision]:
    """Return the notebook without its trial, whose skill rests until an adoption."""
    rejected = msgspec.structs.replace(
        notebook, signs={}, trial=None, resting=(*notebook.resting, trial.habit)
    )
    return rejected, _event(trial, "rejected")


def may_remove(skill: str, signs: Iterable[str]) -> bool:
    """Return whether a skill may remove one of the signs.

    Args:
        skill: its name.
        signs: that an episode showed.

    Returns:
        True if `REMEDIES` names it for any of them.
    """
    return any(skill in REMEDIES[sign] for sign in signs)


def _next_skill(notebook: Notebook) -> str | None:
    """Return the skill that may remove the commonest sign, None if none may."""
    for sign in sorted(notebook.signs, key=lambda name: (-notebook.signs[name], name)):
        if notebook.signs[sign] < LEAST_SIGNS:
            break
        for skill in REMEDIES[sign]:
            if not getattr(notebook.habits, skill) and skill not in notebook.resting:
                return skill
    return None


def _with(config: SkillConfig, skill: str) -> SkillConfig:
    """Return the configuration with one more skill on."""
    return dataclasses.replace(config, **{skill: True})


def _event(
    trial: RevisionTrial, decision: Literal["proposed", "adopted", "rejected"]
) -> Revision:
    pairs = f"wins {trial.wins}, losses {trial.losses}, ties {trial.ties}"
    stake = f"wealth {trial.wealth:.6g} of {trial.needed:g}"
    return Revision(
        step=0,
        proposal=f"turn `{trial.habit}` on: {pairs}; {stake}",
        plan=trial.plan,
        diff=trial.diff,
        decision=decision,
    )
