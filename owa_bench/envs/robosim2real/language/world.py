"""Worlds of the language view: a task of the arm with the unit that does it."""

from msgspec.structs import asdict

from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.world import Body, RobotWorld, joined
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive, stream

TIMES_REFERENCE, CALIBRATION_S = 4.0, 12.0  # time limit: so many references, and s to calibrate


class ArmToolWorld(RobotWorld, frozen=True, kw_only=True):
    """A task with a unit of its own: no two instances share one."""

    unit: Body

    @property
    def whole_body(self) -> Body:
        """The body that plays: the published numbers and the unit's."""
        return joined(self.body, self.unit)


def draw_world(instance: Instance) -> ArmToolWorld:
    """Return an instance's world before drift: the task of the control view, with more time.

    Args:
        instance: Its seed draws task and unit, by streams of their own.
    """
    task = tasks.draw(instance.family, instance.tier, stream(instance.seed, "base"))
    limit = round(TIMES_REFERENCE * tasks.reference_seconds(task) + CALIBRATION_S, 1)
    fleet = derive(instance.seed, "arm unit", instance.family, instance.tier)
    unit = units.unit(fleet, 0)
    return ArmToolWorld(**(asdict(task) | {"limit": limit, "unit": unit}))
