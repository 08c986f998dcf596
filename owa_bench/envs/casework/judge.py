"""Judges a case: quality, and the names of all that an agent needs to have been served."""

import math
from typing import NamedTuple

from owa_bench.company.kinds.contract import CaseState, CaseTruth, CaseWorld
from owa_bench.company.kinds.judging import frame
from owa_bench.company.kinds.keeping import kept_per_world
from owa_bench.envs.casework.kinds import KINDS
from owa_bench.records.events import fixed


class NeededTexts(NamedTuple):
    """What a case needs to be served.

    Attributes:
        names: "table/key", "mail/key", "page/slug".
        items: How many there are to settle.
    """

    names: frozenset[str]
    items: int


@kept_per_world(8)
def needed_texts(world: CaseWorld) -> NeededTexts:
    """Return what a case needs to be served.

    Args:
        world: The one that is played.
    """
    kind = KINDS[world.kind]
    items = kind.truth(world).items
    names = {name for item in items for name in item.rows}
    names.add(f"page/{kind.policy_slug}")
    names |= {f"mail/{mail.id}" for event in world.events for mail in event.mails}
    return NeededTexts(frozenset(names), len(items))


def case_truth(world: CaseWorld, state: CaseState) -> CaseTruth:
    """Return what is right in a state: after the events that have happened.

    Args:
        world: The one that is played.
        state: Of the case.
    """
    return KINDS[world.kind].truth(world, state.happened)


def case_quality(world: CaseWorld, state: CaseState) -> float:
    """Return the quality of a state: parts times frame, 0 if the first part, the work, is 0.

    Args:
        world: The one that is played.
        state: Of the case.
    """
    return quality_by(world, case_truth(world, state), state)


def quality_by(world: CaseWorld, truth: CaseTruth, state: CaseState) -> float:
    """Return the quality of a state by a truth that was found before.

    Args:
        world: The one that is played.
        truth: After the events that have happened.
        state: Of the case.
    """
    kind = KINDS[world.kind]
    main, *others = kind.parts(world, truth, state)
    if not main.value:
        return 0.0
    harms = (*state.harms, *kind.standing_harms(world, truth, state))
    total = math.fsum(part.weight * part.value for part in (main, *others))
    return fixed(total * frame(harms))


def right_items(world: CaseWorld, state: CaseState) -> frozenset[str]:
    """Return the items whose standing answer is right.

    Args:
        world: The one that is played.
        state: Of the case.
    """
    return KINDS[world.kind].right(world, case_truth(world, state), state)
