"""The robot's world: a task on a table, and the numbers of the body that does it.

A body's numbers are what separates an arm from its drawing: offsets of its hinges, friction, dead
time, what its camera gets wrong. A world states those that everybody may know and drift changes
them; a unit of the device adds numbers of its own that nobody is told (`units`). Lengths are
metres, angles radians, masses kilograms, times seconds.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from owa_bench.canonical import record_digest

Vector = tuple[float, float, float]
BoxTurn = tuple[float, float, float, float]  # w, x, y, z
ThingShape = Literal["box", "cylinder"]
SEVEN = (0.0,) * 7
FAMILIES = ("reach", "push", "pick_place", "drawer", "insert")
TIERS = (1, 2, 3)


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm does other than its drawing says; the defaults are the drawing.

    `zeros` are added to what the encoders read, `links` to where each hinge stands on the one
    before. `friction` is Nm at the large hinges (.4 of it at the small ones), `stiffness` the share
    of the gains, `payload` a mass on the flange, `camera` an offset of all that the camera sees and
    `camera_yaw` a turn about the table's middle. A command takes `dead_time` (+- `jitter`) to
    arrive and is lost with the probability `loss`; of what arrives `filter` is taken on a tick and
    the rest stays. `backlash` is half of the play of a hinge. `quantum` is the encoders' step,
    `noise` bounds the camera's error, `old` is the age of what it shows. `mass` and `grip` are
    factors of the objects' mass and friction. `pace` is the share of the asked speed that the
    firmware lets the tool have; where `exchanged` is 1 it takes x for y, and where `reversed` is 1
    it takes open for shut.

    The last four have no counterpart in simulation: `stiction` Nm at rest that fades with speed,
    `sag` rad per Nm that a hinge gives slowly, `wander` of the dead time over minutes, `dropout`,
    the probability that the camera shows nothing new.
    """

    zeros: tuple[float, ...] = SEVEN
    links: tuple[Vector, ...] = ((0.0, 0.0, 0.0),) * 7
    friction: float = 0.0
    stiffness: float = 1.0
    payload: float = 0.0
    camera: Vector = (0.0, 0.0, 0.0)
    camera_yaw: float = 0.0
    dead_time: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    filter: float = 1.0
    backlash: float = 0.0
    quantum: float = 0.0
    noise: float = 0.0
    old: float = 0.0
    mass: float = 1.0
    grip: float = 1.0
    pace: float = 1.0
    exchanged: float = 0.0
    reversed: float = 0.0
    stiction: float = 0.0
    sag: float = 0.0
    wander: float = 0.0
    dropout: float = 0.0


_FACTORS = ("stiffness", "filter", "mass", "grip", "pace")


def joined(world: Body, unit: Body) -> Body:
    """Return the body of a unit in a world: factors multiply, all else adds.

    Args:
        world: The published body.
        unit: The hidden numbers.
    """
    found: dict[str, object] = {}
    for name in Body.__struct_fields__:
        first, second = getattr(world, name), getattr(unit, name)
        if name == "links":
            rows = zip(first, second, strict=True)
            found[name] = tuple(tuple(a + b for a, b in zip(*row, strict=True)) for row in rows)
        elif isinstance(first, tuple):
            found[name] = tuple(a + b for a, b in zip(first, second, strict=True))
        else:
            found[name] = first * second if name in _FACTORS else first + second
    return Body(**found)  # type: ignore[arg-type]  # of the fields' own types


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """An object that lies on the table; `size` are half lengths (a cylinder's: radius twice)."""

    shape: ThingShape = "box"
    size: Vector = (0.025, 0.025, 0.025)
    mass: float = 0.1
    grip: float = 0.8
    place: Vector = (0.5, 0.0, 0.025)
    yaw: float = 0.0


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """A fixed box on the table, or a part of a fixture; `size` are half lengths."""

    place: Vector
    size: Vector
    turn: BoxTurn = (1.0, 0.0, 0.0, 0.0)
    grip: float = 1.0


class Slider(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a fixture that slides one way: a drawer by its handle, or a latch.

    `shape`, `size` and `place` are those of the handle when the part is shut; the camera shows the
    handle as an object. `panels` move with it. The part slides along the unit vector `axis` from 0
    to `travel`; friction of `drag` N holds it.
    """

    shape: ThingShape
    size: Vector
    place: Vector
    axis: Vector
    travel: float
    drag: float
    mass: float = 0.5
    panels: tuple[Obstacle, ...] = ()


class GoalPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tool (`reach`) or an object is to be, how near, and held for how long."""

    place: Vector
    tolerance: float
    hold: float = 1.0


class RobotWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A task and the published body.

    `limit` is the time that an episode has. `start` are the hinges at its beginning. A person comes
    to the table `visits` times an hour. `notices` are release notes and work orders, which the
    agent is given with the task. An observation's objects are the handles of `sliders`, then
    `things`.
    """

    family: str
    tier: int
    limit: float
    start: tuple[float, ...]
    goals: tuple[GoalPlace, ...]
    things: tuple[Thing, ...] = ()
    blocks: tuple[Obstacle, ...] = ()
    sliders: tuple[Slider, ...] = ()
    visits: float = 2.0
    notices: tuple[str, ...] = ()
    body: Body = Body()

    @property
    def objects(self) -> int:
        """How many objects the camera shows."""
        return len(self.sliders) + len(self.things)

    def digest(self) -> str:
        """Return the SHA-256 that names this world in traces."""
        return record_digest(self)

    def with_body(self, **numbers: object) -> "RobotWorld":
        """Return the world with other numbers of the body."""
        return replace(self, body=replace(self.body, **numbers))
