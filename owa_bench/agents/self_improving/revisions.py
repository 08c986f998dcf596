"""Self-revision: one skill at a time for a sign, decided by a sequential paired test.

A proposal answers the sign that showed up most. From then on a new goal that shows the sign is
worked on twice, as before and with the change, and both runs are held to the same checks
(`skills.api_solver.self_checks`): a pair is won, lost or tied. The goals come after the proposal,
so none of them led to it; which trial a goal serves is settled before its second run. The test is a
bet against "the change wins no more than half of the pairs that differ", valid whenever it is
stopped, so trials of other signs may stay open beside it. Neither the checks nor this rule can be
revised, and the supervisor's answers stay out of it. A connector that was worked out is tried in
the same way.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from owa_bench.agents.solvers.api_solver.authentication import Connector
from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.canonical import document_digest
from owa_bench.records.events import Revision

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
MOST_LOOKS = 8  # pairs that differ
MOST_TIES = 16  # pairs that do not: other skills may have to come first


class RevisionTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed change under test: one more skill, on goals after the proposal.

    `habit` names the skill, or the vendor family of `connector`. `wealth` is the e-value so far;
    `wins` and `losses` are pairs in which the changed configuration passed more or fewer checks,
    `ties` those without a difference.
    """

    habit: str
    plan: str
    diff: str
    needed: float
    wealth: float = 1.0
    wins: int = 0
    losses: int = 0
    ties: int = 0
    connector: Connector | None = None


class Notebook(msgspec.Struct, frozen=True, kw_only=True):
    """Memory between episodes, but for facts about providers.

    `habits` are the adopted skills. `signs` counts the episodes since the last adoption that showed
    a sign, `trials` are the open ones, the one longest unused first, `tried` is how often each
    skill was proposed, `resting` those rejected since the last adoption. `table` is the calibration
    table: own odds in tenths -> (answers that the supervisor confirmed, answers it was asked
    about).
    """

    habits: SkillConfig = BEGINNER
    signs: dict[str, int] = {}
    trials: tuple[RevisionTrial, ...] = ()
    tried: dict[str, int] = {}
    resting: tuple[str, ...] = ()
    table: dict[str, tuple[int, int]] = {}


def load_notebook(folder: Path, start: SkillConfig = BEGINNER) -> Notebook:
    """Return the notebook in a folder; a new one where there is none to be read.

    Args:
        folder: Where it was saved.
        start: The skills of a new one.
    """
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Notebook)
    except (OSError, msgspec.MsgspecError):
        return Notebook(habits=start)


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
    Returns: The notebook after it.
    """
    counts = dict(notebook.signs)
    for sign in signs:
        counts[sign] = counts.get(sign, 0) + 1
    return msgspec.structs.replace(notebook, signs=counts)


def propose(notebook: Notebook) -> tuple[Notebook, Revision | None]:
    """Return the notebook with a trial opened, where a sign calls for one."""
    skill = _next_skill(notebook)
    if skill is None:
        return notebook, None
    return _with_trial(notebook, skill, {"habits": {skill: [False, True]}})


def propose_connector(notebook: Notebook, connector: Connector) -> tuple[Notebook, Revision]:
    """Return the notebook with a trial of a connector opened.

    Args:
        notebook: has no open trial of a connector of that name.
        connector: was worked out.
    Returns: The notebook, and the proposal.
    """
    built = msgspec.to_builtins(connector)
    return _with_trial(notebook, connector.name, {"connector": built}, connector)


def _with_trial(
    notebook: Notebook, habit: str, diff: Mapping[str, Any], connector: Connector | None = None
) -> tuple[Notebook, Revision]:
    times = notebook.tried.get(habit, 0) + 1
    plan = {
        "hypothesis": f"with `{habit}` on, fetched goals pass more of their own checks",
        "statistic": "share of the checks of skills.clerk.audit, paired by goal",
        "rule": "bet on each pair that differs; adopt at wealth >= needed",
        "stake": STAKE,
        "needed": times / ALPHA,
        "most_looks": MOST_LOOKS,
        "most_ties": MOST_TIES,
        "attempt": times,
    }
    trial = RevisionTrial(
        habit=habit,
        plan=document_digest(plan),
        diff=document_digest(diff),
        needed=times / ALPHA,
        connector=connector,
    )
    opened = msgspec.structs.replace(
        notebook, trials=(*notebook.trials, trial), tried={**notebook.tried, habit: times}
    )
    return opened, _event(trial, "proposed")


def adopted_count(notebook: Notebook, start: SkillConfig = BEGINNER) -> int:
    """Return how many skills have been adopted.

    Args:
        notebook: The notebook.
        start: The skills that the agent began with.
    """
    before, now = dataclasses.asdict(start), dataclasses.asdict(notebook.habits)
    return sum(before[name] != now[name] for name in before)


def relevant_trial(notebook: Notebook, signs: Iterable[str]) -> RevisionTrial | None:
    """Return the open trial longest unused that may remove one of the signs.

    Args:
        notebook: has the trials.
        signs: of an episode; `closed_sign(TEXT)` for a vendor that refused it, by the description
            of one of its collections.
    Returns: The trial, None without one.
    """
    shown = frozenset(signs)
    return next((t for t in notebook.trials if _may_remove(t, shown)), None)


def closed_sign(collection: str) -> str:
    """Return the sign that the vendor of a collection, by its description, refused."""
    return f"closed: {collection}"


def changed_config(notebook: Notebook, trial: RevisionTrial) -> SkillConfig:
    """Return the adopted skills and the one under trial; a connector changes none.

    Args:
        notebook: The notebook.
        trial: One of its open trials.
    """
    if trial.connector is not None:
        return notebook.habits
    return dataclasses.replace(notebook.habits, **{trial.habit: True})


def record_pair(
    notebook: Notebook, trial: RevisionTrial, old: float, new: float
) -> tuple[Notebook, Revision | None]:
    """Record one more pair of an open trial.

    Args:
        notebook: before the pair.
        trial: one of its open trials.
        old: share of checks that the adopted configuration passed.
        new: share that the changed one passed.
    Returns: The notebook after it, and the decision if it was the last.
    """
    others = tuple(other for other in notebook.trials if other.habit != trial.habit)
    trial = msgspec.structs.replace(
        trial,
        wealth=trial.wealth * (1.0 + STAKE * ((new > old) - (new < old))),
        wins=trial.wins + (new > old),
        losses=trial.losses + (new < old),
        ties=trial.ties + (new == old),
    )
    if trial.wealth >= trial.needed:
        adopted = msgspec.structs.replace(
            notebook, habits=changed_config(notebook, trial), signs={}, trials=others, resting=()
        )
        return adopted, _event(trial, "adopted")
    looked = trial.wins + trial.losses >= MOST_LOOKS or trial.ties >= MOST_TIES
    if trial.wealth < RUIN or looked:
        rejected = msgspec.structs.replace(
            notebook, trials=others, resting=(*notebook.resting, trial.habit)
        )
        return rejected, _event(trial, "rejected")
    return msgspec.structs.replace(notebook, trials=(*others, trial)), None


def _may_remove(trial: RevisionTrial, signs: frozenset[str]) -> bool:
    """Return whether what is under trial may remove one of the signs."""
    if trial.connector is not None:
        return not signs.isdisjoint(map(closed_sign, trial.connector.serves))
    return any(trial.habit in REMEDIES.get(sign, ()) for sign in signs)


def _next_skill(notebook: Notebook) -> str | None:
    """Return the skill that may remove the commonest sign that has no open trial."""
    open_trials = {trial.habit for trial in notebook.trials}
    for sign in sorted(notebook.signs, key=lambda name: (-notebook.signs[name], name)):
        left = (
            skill
            for skill in REMEDIES[sign]
            if not getattr(notebook.habits, skill) and skill not in notebook.resting
        )
        skill = next(left, None)
        if notebook.signs[sign] >= LEAST_SIGNS and skill and skill not in open_trials:
            return skill
    return None


def _event(trial: RevisionTrial, decision: Literal["proposed", "adopted", "rejected"]) -> Revision:
    pairs = f"wins {trial.wins}, losses {trial.losses}, ties {trial.ties}"
    stake = f"wealth {trial.wealth:.6g} of {trial.needed:g}"
    what = f"turn `{trial.habit}` on"
    if trial.connector is not None:
        how = msgspec.json.encode(trial.connector, order="sorted").decode()
        what = f"open vendors of `{trial.habit}` by {how}"
    return Revision(
        step=0,
        proposal=f"{what}: {pairs}; {stake}",
        plan=trial.plan,
        diff=trial.diff,
        decision=decision,
    )
