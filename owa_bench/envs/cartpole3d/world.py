"""The physics world: a cart with a pole in a box of flying balls, all its numbers.

Level 0 is what the defaults say; a drift operator replaces some of them. Two variants share the
type: `released` is the published generator as measured, defects included, `table1` is what the
paper's table of novelties says. Lengths are metres, times seconds, masses kilograms, forces
newtons, z points up and the cart's centre of mass is at z = 0.

Worlds of this kind hold floats. They come from stated decimals by exact arithmetic and `graded`
rounds what it interpolates, so equal worlds still have equal bytes.

Source: docs/cartpole3d.md (measured on the released generator).
"""

from typing import Any, Literal

import msgspec

from owa_bench.canonical import record_digest
from owa_bench.errors import FieldError

Spec = Literal["table1", "released"]
SPECS: tuple[Spec, ...] = ("table1", "released")
Target = Literal["centroid", "origin", "middle", "tip"]
BallKind = Literal["free", "fixed", "point", "cart", "rail"]

PRESETS = {"easy": 1 / 3, "medium": 2 / 3, "hard": 1.0}
DECIMALS = 9  # of every interpolated number
_RIM = 0.006  # m, what the engine adds to a shape's sides when it takes its inertia


def _box_inertia(mass: float, radius: float, height: float) -> tuple[float, float]:
    """Return a cylinder's moments by the engine's rule for the released model.

    They are those of its bounding box.

    Args:
        mass: kg.
        radius: m.
        height: along the axis, m.
    Returns: Moments across and along the axis, kg m2.
    """
    tall, wide = height + _RIM, 2.0 * radius + _RIM
    return mass * (tall * tall + wide * wide) / 12.0, mass * wide * wide / 6.0


class Cart(msgspec.Struct, frozen=True, kw_only=True):
    """The cart: a disc that slides along x and y; `push` is the force of an action.

    It occupies `bottom` to `bottom + height`; the pole's joint is at `joint`.
    """

    mass: float = 1.0
    radius: float = 0.5
    height: float = 0.2
    bottom: float = 0.1
    joint: float = 0.2
    push: float = 10.0

    @property
    def inertia(self) -> tuple[float, float]:
        """Moments about the centre of mass, across and along the axis, in kg m2."""
        return _box_inertia(self.mass, self.radius, self.height)


class Pole(msgspec.Struct, frozen=True, kw_only=True):
    """The pole: a cylinder from `foot` to `foot + length` above its joint.

    Its centre of mass lies `centre` above the joint (not at the middle: as released). An episode
    ends when its roll or pitch exceeds `fall` degrees.
    """

    mass: float = 0.1
    radius: float = 0.03
    length: float = 1.0
    foot: float = 0.05
    centre: float = 1.0
    fall: float = 10.0

    @property
    def inertia(self) -> tuple[float, float]:
        """Moments about the centre of mass, across and along the pole, in kg m2."""
        return _box_inertia(self.mass, self.radius, self.length)


class Ball(msgspec.Struct, frozen=True, kw_only=True):
    """A ball; `weighs`: gravity acts on it (at level 0 it does not).

    An episode has between `fewest` and `most` of them. Restitution, of balls and walls alike, is
    drawn per episode; the engine multiplies the two of a contact.
    """

    mass: float = 1.0
    radius: float = 0.5
    fewest: int = 2
    most: int = 4
    weighs: bool = False
    restitution: tuple[float, float] = (1.0, 1.0)


class Arena(msgspec.Struct, frozen=True, kw_only=True):
    """The box: inner faces at x, y = +-half, and the floor's and ceiling's height."""

    half: float = 4.95
    floor: float = -0.05
    ceiling: float = 9.95
    thickness: float = 0.1


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The laws of the start; every range is uniform.

    `cart` and `ball` bound |x| and |y|, `heights` the balls' z, `clearance` is the least horizontal
    distance of a ball from the cart's axis. `speeds` is the size of each velocity component, its
    sign is a coin's. `push` bounds a force per axis on the cart during the hidden first tick.
    `tilt` bounds the first three parts of the pole's quaternion before it is normalised (the fourth
    is 1), `rate` its joint rates.
    """

    cart: float = 3.0
    push: float = 1.0
    tilt: float = 0.01
    rate: float = 0.01
    ball: float = 4.0
    heights: tuple[float, float] = (1.0, 9.0)
    clearance: float = 1.0
    speeds: tuple[float, float] = (6.0, 10.0)


class BallLaw(msgspec.Struct, frozen=True, kw_only=True):
    """Another start for a `share` of the balls; of several laws the last one holds.

    "fixed": cannot be moved, at `heights`. "point": flies at a speed of `speeds` to a point common
    to the episode; `alike`: the speed is common to it, too. "cart": flies to the cart at height
    `aim`. "rail": on a horizontal axis that passes the cart at `distances`, without drag; `bent`:
    heading and height are distorted as in the released generator.
    """

    kind: BallKind
    share: float
    speeds: tuple[float, float] = (0.0, 0.0)
    heights: tuple[float, float] = (1.0, 9.0)
    distances: tuple[float, float] = (0.0, 0.0)
    aim: float = 0.5
    bent: bool = False
    alike: bool = False


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A force on every ball along the line to a target; a negative size pushes away.

    "centroid": the balls' mean position. "origin": (0, 0, 0). "middle": half a metre above the
    cart. "tip": the pole's tip. The size is uniform in `size`, redrawn for each ball at each tick
    (equal bounds: constant).
    """

    target: Target
    size: tuple[float, float]


class Spawn(msgspec.Struct, frozen=True, kw_only=True):
    """A further ball every `every` ticks (need not be whole: a rate).

    "reset": placed as at reset with velocity components of `speeds`. "ahead": at rest at height 1
    along the cart's mean recent travel, `distances` from `around`. `clearance` is kept from the
    cart and other balls (for "reset" the start's own holds, from the cart alone). `around` "start"
    is the cart's first place, "cart" its present one; "origin" measures distances from the world's
    origin and clearance from the cart's first place.
    """

    every: float
    placement: Literal["reset", "ahead"]
    around: Literal["start", "cart", "origin"]
    speeds: tuple[float, float] = (0.0, 0.0)
    distances: tuple[float, float] = (0.0, 10.0)
    clearance: float = 0.75


class Wind(msgspec.Struct, frozen=True, kw_only=True):
    """A horizontal wind of a heading drawn per episode; `speed` at mid-height in m/s.

    `bent`: forces on cart and balls as measured on the released generator.
    """

    speed: float
    bent: bool = False


class PhysicsWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Every number of a CartPole3D world.

    `lag`: poses are observed (and the fall is judged) as they were before the last integration, as
    in the released generator. `damping` is (a, b) of the engine's drag dv/dt = -(a + b |v|) v on
    every body. Reward per step is 1 / `ticks`.
    """

    spec: Spec = "table1"
    lag: bool = False
    tick: float = 0.02
    ticks: int = 200
    gravity: float = 9.8
    damping: tuple[float, float] = (0.04, 0.04)
    cart: Cart = Cart()
    pole: Pole = Pole()
    ball: Ball = Ball()
    arena: Arena = Arena()
    start: Start = Start()
    laws: tuple[BallLaw, ...] = ()
    pulls: tuple[Pull, ...] = ()
    spawns: tuple[Spawn, ...] = ()
    wind: Wind | None = None

    def digest(self) -> str:
        """Return the SHA-256 that names this world in traces."""
        return record_digest(self)


def base(spec: Spec) -> PhysicsWorld:
    """Return level 0 of a variant.

    Raises: FieldError: there is no such variant.
    """
    if spec not in SPECS:
        raise FieldError("spec", spec, f"must be one of {', '.join(SPECS)}")
    return PhysicsWorld(spec=spec, lag=spec == "released")


def graded(magnitude: float, zero: float, easy: float, medium: float, hard: float) -> float:
    """Return the number that a magnitude stands for, linear between the presets.

    Args:
        magnitude: in [0, 1]; 0 is level 0, the presets are at 1/3, 2/3 and 1.
        zero: the number of level 0.
        easy: that of the preset easy.
        medium: that of the preset medium.
        hard: that of the preset hard.
    Returns: The number, rounded to DECIMALS.
    Raises: FieldError: the magnitude is outside [0, 1].

    >>> graded(2 / 3, 1.0, 3.0, 5.0, 8.0)
    5.0
    >>> graded(0.5, 1.0, 3.0, 5.0, 8.0)
    4.0
    """
    if not 0 <= magnitude <= 1:
        raise FieldError("magnitude", magnitude, "must be in [0, 1]")
    points = (zero, easy, medium, hard)
    place = 3 * magnitude
    left = min(int(place), 2)
    share = place - left
    return round(points[left] + share * (points[left + 1] - points[left]), DECIMALS)


def spread(magnitude: float, *bands: tuple[float, float]) -> tuple[float, float]:
    """Return a range between four others, as `graded` does for numbers.

    Args:
        magnitude: in [0, 1].
        bands: (low, high) of level 0, easy, medium and hard.
    Returns: (low, high).
    Raises: FieldError: the magnitude is outside [0, 1].
    """
    zero, easy, medium, hard = bands
    low = graded(magnitude, zero[0], easy[0], medium[0], hard[0])
    return low, graded(magnitude, zero[1], easy[1], medium[1], hard[1])


def distance(a: PhysicsWorld, b: PhysicsWorld) -> float:
    """Return the mean difference of two worlds over all that either states.

    Args:
        a: one world.
        b: the other.
    Returns: A mean in [0, 1]: each number counts |x - y| / (|x| + |y|), everything else 1 where it
        differs.
    """
    first, second = dict(_atoms("", a)), dict(_atoms("", b))
    paths = first.keys() | second.keys()
    gaps = [_gap(first.get(path), second.get(path)) for path in sorted(paths)]
    return round(sum(gaps) / len(gaps), DECIMALS)


def _gap(x: Any, y: Any) -> float:
    if x == y:
        return 0.0
    if isinstance(x, float) and isinstance(y, float):
        return abs(x - y) / (abs(x) + abs(y))
    return 1.0


def _atoms(path: str, value: Any) -> list[tuple[str, Any]]:
    """Return (path, value) of every leaf of a record; integers as floats."""
    if isinstance(value, msgspec.Struct):
        parts = [(name, getattr(value, name)) for name in value.__struct_fields__]
    elif isinstance(value, tuple):
        parts = [(str(i), part) for i, part in enumerate(value)]
    else:
        number = isinstance(value, int) and not isinstance(value, bool)
        return [(path, float(value) if number else value)]
    return [atom for name, part in parts for atom in _atoms(f"{path}/{name}", part)]
