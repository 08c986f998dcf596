"""Operators on the terms under which a crew works: time, roles, channel, board."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.drift.targets import named_part
from owa_bench.envs.multicrew.world import CrewWorld

_PULLED = 0.1  # of T, at intensity 1
_AWAY = 0.2  # of T, at intensity 1
_URGENT = 3  # factor of an item's effort
_WORDS = (("merged", "integrated"), ("revision", "build"))


@operator(announcement="D0", weight=0.5, targets="deadline")
def deadline_pulled(world: CrewWorld, intensity: float) -> CrewWorld:
    """End earlier, by a tenth of the time at most.

    Changes: T; a notice tells, and every turn shows it.
    Leaves alone: items, hours.
    Announcement: D0. Weight: 0.5.
    Raises: DriftError if `target` is another.
    Source: docs/multicrew.md#operators.
    """
    deadline = world.deadline - max(1, round(_PULLED * intensity * world.deadline))
    notice = f"The deadline is tick {deadline} now."
    return replace(world, deadline=deadline, notices=(*world.notices, notice))


@operator(
    announcement="D0",
    weight=0.5,
    targets=lambda world: tuple(f"urgent/{item.name}" for item in world.items[:2]),
)
def priority_inversion(world: CrewWorld, target: str) -> CrewWorld:
    """Let an item count three times its effort.

    Changes: what the item is worth; a notice tells.
    Leaves alone: what it takes.
    Announcement: D0 (nothing asked for changes). Weight: 0.5.
    Raises: DriftError if `target` names no item of the world.
    Source: docs/multicrew.md#operators.
    """
    name = named_part(target, "urgent", [item.name for item in world.items])
    items = tuple(
        replace(item, priority=_URGENT) if item.name == name else item for item in world.items
    )
    notice = f"{name} counts {_URGENT} times its effort from now on."
    return replace(world, items=items, notices=(*world.notices, notice))


@operator(
    announcement="D1",
    weight=0.5,
    targets=lambda world: tuple(f"keeper/{role}" for role in world.seats[1:3]),
)
def seat_swap(world: CrewWorld, target: str) -> CrewWorld:
    """Let the lead and another role exchange their first documents.

    Changes: who keeps two documents; a notice tells.
    Leaves alone: what they say.
    Announcement: D1 (a notice). Weight: 0.5.
    Raises: DriftError if `target` names no other role of the world.
    Source: docs/multicrew.md#operators.
    """
    role, lead = named_part(target, "keeper", world.seats[1:]), world.seats[0]
    firsts: dict[str, str] = {}
    for document in world.documents:
        firsts.setdefault(document.owner, document.name)
    keepers = {firsts.get(lead): role, firsts.get(role): lead}
    documents = tuple(replace(d, owner=keepers.get(d.name, d.owner)) for d in world.documents)
    moved = ", ".join(f"{d} by {r}" for d, r in keepers.items() if d)
    notice = f"Documents change hands: {moved}."
    return replace(world, documents=documents, notices=(*world.notices, notice))


@operator(announcement="D1", weight=0.4, targets="board")
def board_fields(world: CrewWorld) -> CrewWorld:
    """Let the board put two things in other words.

    Changes: the words for merged and revision; a notice tells.
    Leaves alone: what the board says.
    Announcement: D1 (a notice). Weight: 0.4.
    Raises: DriftError if `target` is another.
    Source: docs/multicrew.md#operators.
    """
    told = ", ".join(f"{other} for {word}" for word, other in _WORDS)
    notices = (*world.notices, f"The board says {told} from now on.")
    return replace(world, board_words=_WORDS, notices=notices)


@operator(
    announcement="D2",
    weight=0.8,
    targets=lambda world: tuple(f"away/{role}" for role in world.seats[1:3]),
)
def seat_outage(world: CrewWorld, target: str, intensity: float, rng: Generator) -> CrewWorld:
    """Let a role be away for up to a fifth of the time.

    Changes: when the role has turns.
    Leaves alone: its documents; the lead.
    Announcement: D2 (silence shows it). Weight: 0.8.
    Raises: DriftError if `target` names no other role of the world.
    Source: docs/multicrew.md#operators.
    """
    role = named_part(target, "away", world.seats[1:])
    first = int(rng.integers(world.deadline // 3, world.deadline // 2))
    until = first + max(1, round(_AWAY * intensity * world.deadline))
    return replace(world, away=(*world.away, (role, first, until)))


@operator(announcement="D2", weight=0.6, targets="channel")
def channel_cut(world: CrewWorld, intensity: float) -> CrewWorld:
    """Let fewer messages pass.

    Changes: ticks between messages, one to three more.
    Leaves alone: their length.
    Announcement: D2 (a refusal names the tick). Weight: 0.6.
    Raises: DriftError if `target` is another.
    Source: docs/multicrew.md#operators.
    """
    return replace(world, interval=world.interval + 1 + round(2 * intensity))
