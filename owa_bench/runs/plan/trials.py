"""Trials: plans of episodes in which a novelty comes in at a drawn place.

Trials follow SAIL-ON: a lane of episodes, plain ones first, then novel ones. Each trial draws the
episode at which the novelty comes in; it stays to the end. The agent is not told and keeps its
memory over the whole trial, so that it may notice and adapt; every arm plays the same trials on the
same pairs. With `given`, each trial is followed by one of Given Detection: as long, novel from the
same place, and there the brief's goal says in each episode whether the novelty has come, with as
many hints as are asked for. What an agent believes it declares with a Move: beliefs `novelty` and
`novelty_threshold`, the last of an episode counts.

Source of trials: docs/cartpole3d.md.
"""

from collections.abc import Iterator, Sequence

import msgspec

from owa_bench.errors import PlanError
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import SuiteCard
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import arms_of, assemble_plan
from owa_bench.seeding import stream


class Trials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Trials: `count` of them per family and tier of `draw`.

    A trial has `draw.episodes` episodes; the first novel one is drawn between the two `before`
    (episodes before it, both ends included) from `seed`. `draw.deltas` is the one magnitude of the
    novelty. `given` adds trials whose agent is told; `hints` of them: -1 none, 0 to 3 what kind of
    novelty, more and more exactly.
    """

    draw: Draw
    count: int = 1
    before: tuple[int, int] = (5, 10)
    seed: int = 0
    given: bool = False
    hints: int = -1


def plan_trials(trials: Trials, agents: Sequence[AgentHandle], terms: Plan) -> Plan:
    """Return the plan of trials.

    Args:
        trials: The trials.
        agents: Who plays them.
        terms: What the plan says beside its episodes.
    Raises: PlanError: Naming field, value and rule.
    """
    card = draws.check(trials.draw, PlanError).card
    _check_trials(trials, card)
    arms = arms_of(agents)
    entries = (
        entry
        for tier in draws.tiers(trials.draw, card)
        for family in draws.families(trials.draw, card)
        for number in range(trials.count)
        for arm in arms
        for told in ((False, True) if trials.given else (False,))
        for entry in _trial(trials, card, family, tier, number, arm, told=told)
    )
    return assemble_plan((trials.draw,), agents, arms, entries, terms)


def _trial(
    trials: Trials, card: SuiteCard, family: str, tier: int, number: int, arm: Arm, *, told: bool
) -> Iterator[PlanEntry]:
    """Yield one arm's episodes of one trial, in order."""
    pair = draws.pair_id(card, family, tier, number)
    low, high = trials.before
    first = int(stream(trials.seed, f"trial/{pair}").integers(low, high + 1))
    name = f"trial/given/{pair}" if told else f"trial/{pair}"
    (magnitude,) = trials.draw.deltas
    for place in range(trials.draw.episodes):
        yield PlanEntry(
            index=0,
            arm=arm.name,
            pair=f"{name}/{place:04d}",
            suite=card.name,
            version=card.version,
            family=family,
            tier=tier,
            delta=float(magnitude) if place >= first else 0.0,
            lane=f"{arm.name}/{name}",
            told=trials.hints if told else msgspec.UNSET,
        )


def _check_trials(trials: Trials, card: SuiteCard) -> None:
    """Refuse trials that hold no novelty, or nothing before it."""
    low, high = trials.before
    if trials.count < 1:
        raise PlanError("trials", trials.count, "must be at least 1")
    if not 1 <= low <= high < trials.draw.episodes:
        raise PlanError(
            "before",
            trials.before,
            "must be two counts, 1 <= A <= B, below the "
            f"{trials.draw.episodes} `episodes` of a trial: give more `episodes`",
        )
    if not -1 <= trials.hints <= 3 or (trials.hints >= 0 and not trials.given):
        raise PlanError("hints", trials.hints, "must be -1 to 3, above -1 with `given` alone")
    if len(trials.draw.deltas) != 1 or not trials.draw.deltas[0] > 0.0:
        raise PlanError(
            "deltas",
            trials.draw.deltas,
            f"must be one magnitude above 0 in a trial of `{card.name}`",
        )
