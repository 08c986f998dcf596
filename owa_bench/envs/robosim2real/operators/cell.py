"""Operators on the cell around the arm: people, and things that lie about."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.robosim2real.world import RobotWorld, Thing

_MOST_THINGS = 5
_APART = 0.12  # m


@operator(announcement="D1", weight=0.5, targets="people", group="cell")
def more_people(world: RobotWorld, intensity: float) -> RobotWorld:
    """Let people come to the table more often: up to 12 times an hour more.

    Changes: visits; a work order says how many.
    Leaves alone: the task. Announcement: D1. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    visits = world.visits + round(12.0 * intensity, 1)
    notice = f"Work order: people now come to the table {visits:g} times an hour."
    return replace(world, visits=visits, notices=(*world.notices, notice))


@operator(
    announcement="D3",
    weight=0.5,
    targets="things",
    where=lambda world: bool(world.things) and len(world.things) < _MOST_THINGS,
    group="cell",
)
def thing_left(world: RobotWorld, rng: Generator) -> RobotWorld:
    """Leave one more thing on the table.

    Changes: what lies there; the camera shows it. Leaves alone: the task's own thing.
    Announcement: D3. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    taken = [thing.place for thing in world.things] + [goal.place for goal in world.goals]
    while True:
        x, y = 0.36 + 0.32 * float(rng.random()), 0.6 * float(rng.random()) - 0.3
        if all((x - p[0]) ** 2 + (y - p[1]) ** 2 > _APART**2 for p in taken):
            break
    thing = Thing(place=(round(x, 4), round(y, 4), Thing().size[2]))
    return replace(world, things=(*world.things, thing))
