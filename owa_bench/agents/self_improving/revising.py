"""Proposes one change of habit at a time and decides it by a paired test.

A proposal answers the sign that showed up most. From then on every new goal is worked
on twice, as before and with the change, and both are held to the same checks
(`skills.api_solver.self_checks`): a pair is won, lost or tied. The goals come after the
proposal, so none of them led to it. The test is a bet against "the change wins no more
than half of the pairs that differ", valid whenever it is stopped. Neither the checks
nor this rule can be revised, and the supervisor's answers stay out of it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from owa_bench.agents.self_improving.notebook import Notebook, Trial
from owa_bench.canonical import document_digest
from owa_bench.records.events import Revision
from owa_bench.skills.api_solver.skill_config import SkillConfig

# Which habit may cure which sign, in the order in which they are proposed.
CURES: Mapping[str, tuple[str, ...]] = {
    "short": ("pages", "repages"),
    "limited": ("waits",),
    "refused": ("retries",),
    "bad request": ("repages",),
    "gone": ("searches",),
    "renamed": ("guesses", "weighs"),
    "off total": ("adds_up",),
    "met before": ("remembers",),
}
LEAST_SIGNS = 2  # episodes that show a sign before a cure is proposed
ALPHA = 0.2  # of a first proposal; a habit's n-th gets ALPHA / n
STAKE = 0.8  # share of the wealth that a pair is bet with
RUIN = 0.05  # wealth under which a trial is given up
MOST_LOOKS = 8  # pairs on goals that show a sign, differing or not
MOST_IDLE = 6  # goals in a row that tell nothing: its sign is gone, so is the trial
AUTOMATIC = (1.0, 1.0, 1.0)  # proposed, made and tested without a person


def note_signs(notebook: Notebook, signs: Iterable[str]) -> Notebook:
    """Return the notebook with one more episode's signs."""
    counts = dict(notebook.signs)
    for sign in signs:
        counts[sign] = counts.get(sign, 0) + 1
    return msgspec.structs.replace(notebook, signs=counts)


def propose(notebook: Notebook) -> tuple[Notebook, Revision | None]:
    """Return the notebook with a trial opened, where a sign calls for one."""
    habit = None if notebook.trial else _next_habit(notebook)
    if habit is None:
        return notebook, None
    times = notebook.tried.get(habit, 0) + 1
    plan = {
        "hypothesis": f"with `{habit}` on, fetched goals pass more of their own checks",
        "statistic": "share of the checks of skills.clerk.audit, paired by goal",
        "rule": "bet on each pair that differs; adopt at wealth >= needed",
        "stake": STAKE,
        "needed": times / ALPHA,
        "most_looks": MOST_LOOKS,
        "most_idle": MOST_IDLE,
        "attempt": times,
    }
    trial = Trial(
        habit=habit,
        plan=document_digest(plan),
        diff=document_digest({"habits": {habit: [False, True]}}),
        needed=times / ALPHA,
    )
    opened = msgspec.structs.replace(
        notebook, trial=trial, tried={**notebook.tried, habit: times}
    )
    return opened, _event(trial, "proposed")


def candidate(notebook: Notebook) -> SkillConfig | None:
    """Return the habits under trial, None when there is no trial."""
    if notebook.trial is None:
        return None
    return _with(notebook.habits, notebook.trial.habit)


def learn(
    notebook: Notebook, old: float, new: float, *, looked: bool
) -> tuple[Notebook, Revision | None]:
    """Return the notebook after one more pair, and the decision if it was the last.

    A pair without a difference counts only if it `looked`: its goal showed a sign that
    the change is to cure.
    """
    trial = notebook.trial
    if trial is None or (old == new and not looked):
        return pass_over(notebook)
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


def pass_over(notebook: Notebook) -> tuple[Notebook, Revision | None]:
    """Return the notebook after a goal that told the trial nothing.

    It showed no sign to cure, or the second look did not end in its share of the steps.
    A trial that many goals tell nothing makes room for the next one.
    """
    trial = notebook.trial
    if trial is None:
        return notebook, None
    trial = msgspec.structs.replace(trial, idle=trial.idle + 1)
    if trial.idle >= MOST_IDLE:
        return _reject(notebook, trial)
    return msgspec.structs.replace(notebook, trial=trial), None


def _reject(notebook: Notebook, trial: Trial) -> tuple[Notebook, Revision]:
    """Return the notebook without its trial, whose habit rests until an adoption."""
    rejected = msgspec.structs.replace(
        notebook, signs={}, trial=None, resting=(*notebook.resting, trial.habit)
    )
    return rejected, _event(trial, "rejected")


def is_cured_by(habit: str, signs: Iterable[str]) -> bool:
    """Return whether one of the signs is what a habit is to cure."""
    return any(habit in CURES[sign] for sign in signs)


def _next_habit(notebook: Notebook) -> str | None:
    """Return the habit that may cure the commonest sign, None if none may."""
    for sign in sorted(notebook.signs, key=lambda name: (-notebook.signs[name], name)):
        if notebook.signs[sign] < LEAST_SIGNS:
            break
        for habit in CURES[sign]:
            if not getattr(notebook.habits, habit) and habit not in notebook.resting:
                return habit
    return None


def _with(habits: SkillConfig, habit: str) -> SkillConfig:
    """Return the habits with one more on."""
    return dataclasses.replace(habits, **{habit: True})


def _event(
    trial: Trial, decision: Literal["proposed", "adopted", "rejected"]
) -> Revision:
    pairs = f"wins {trial.wins}, losses {trial.losses}, ties {trial.ties}"
    return Revision(
        step=0,
        proposal=f"turn `{trial.habit}` on",
        plan=trial.plan,
        diff=trial.diff,
        fractions=AUTOMATIC,
        decision=decision,
        evidence=(pairs, f"wealth {trial.wealth:.6g} of {trial.needed:g}"),
        filters=("logged diff", "no human labels", "holdout after proposal"),
    )
