"""Batched simulator of CartPole3D and its control rules: nothing, random and PD."""

import functools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched import kernels, records
from owa_bench.envs.cartpole3d.start import SceneState
from owa_bench.envs.cartpole3d.world import PhysicsWorld
from owa_bench.errors import FieldError

LANES_A_THREAD = (
    8192  # with fewer two threads are slower than one (benchmarks/cartpole3d_batched.py)
)
STARTS = 4096  # start states that are drawn for a world; episodes begin from these
LaneActions = npt.NDArray[np.int64]
LaneFlags = npt.NDArray[np.bool_]

_U64 = np.uint64
_LOG = logging.getLogger(__name__)


class TickEnd(NamedTuple):
    """Flags (lanes,): where the pole has fallen, and where the ticks are used up."""

    fallen: LaneFlags
    late: LaneFlags


@functools.cache
def _announce_compilation() -> None:
    """Say before the first compilation on a machine that it takes a while, and happens once."""
    changed = Path(kernels.__file__).stat().st_mtime
    folder = Path(str(kernels.play_hidden_tick.stats.cache_path))
    kept = folder.glob("kernels.play_hidden_tick-*.nbi")
    if not any(path.stat().st_mtime >= changed for path in kept):
        words = "CartPole3D's physics is compiled: once, about half a minute; kept in %s"
        _LOG.warning(words, folder)


class Simulator:
    """Lanes of one world, stepped by compiled kernels.

    Each lane has a seed; with its count of episodes it names the start (one of `starts` that the
    shared law drew) and all that is drawn later, so a lane's episodes do not depend on the other
    lanes, their number or the threads. `step` does not reset: `restart` does, for the lanes that
    its mask names.

    Args:
        world: The world that is played.
        count: Lanes, at least 1.
        seed: Of all of them.
        starts: Start states that are drawn.
        threads: That share the lanes of a step, as far as each has LANES_A_THREAD of them.
    Raises: FieldError: A number is below 1.
    Attributes:
        lanes: (count,) records, `records.LANE`.
        balls: (count, slots) records, `records.BALL`.
        episodes: (count,) episodes that each lane has begun.
    """

    def __init__(
        self, world: PhysicsWorld, count: int, *, seed: int, starts: int = STARTS, threads: int = 1
    ) -> None:
        for name, value in (("count", count), ("starts", starts), ("threads", threads)):
            if value < 1:
                raise FieldError(name, value, "must be at least 1")
        _announce_compilation()
        self.world = world
        self.count = count
        self.slots = records.most_balls(world)
        self._numbers = records.world_record(world)
        self._due = records.timetable(world)
        used = max(1, min(threads, count // LANES_A_THREAD))
        self._pool = ThreadPoolExecutor(used) if used > 1 else None
        shares = np.linspace(0, count, used + 1).astype(int)
        self._shares = [slice(a, b) for a, b in pairwise(shares)]
        self._rooms = [self._room() for _ in self._shares]
        self._first = records.lanes_of(records.draw_states(world, starts, seed), self.slots)
        self._first[0]["seed"] = np.arange(starts)
        kernels.play_hidden_tick(self._numbers, *self._first, self._due, *self._rooms[0])
        self.episodes = np.zeros(count, np.int64)
        self.seeds = _children(np.arange(count, dtype=_U64), seed)
        self.lanes = np.zeros(count, records.LANE)
        self.balls = np.zeros((count, self.slots), records.BALL)
        self._fallen, self._late = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self._begin(np.arange(count))

    def step(self, actions: LaneActions) -> TickEnd:
        """Play one action a lane.

        A lane that has fallen goes on falling until it is restarted.

        Args:
            actions: (count,), 0 to 4.
        Returns: Which lanes have fallen, and which are late; the next step writes over it.
        Raises: FieldError: There is not one action of 0 to 4 a lane.
        """
        actions = np.ascontiguousarray(actions, dtype=np.int64)
        if actions.shape != (self.count,):
            raise FieldError("actions", actions.shape, f"must be ({self.count},)")
        if actions.min() < 0 or actions.max() >= len(rules.DIRECTIONS):
            raise FieldError("actions", actions.tolist()[:8], "must be 0 to 4")
        self._share(lambda share, room: self._play(share, room, actions))
        return TickEnd(self._fallen, self._late)

    def restart(self, mask: LaneFlags | None = None) -> None:
        """Begin the next episode of the lanes of a mask, of all lanes without one."""
        at = np.arange(self.count) if mask is None else np.flatnonzero(mask)
        if at.size:
            self.episodes[at] += 1
            self._begin(at)

    def set_states(self, states: list[SceneState], *, hidden_tick: bool = False) -> None:
        """Put exact states into all lanes.

        Args:
            states: One a lane.
            hidden_tick: Whether the tick before an episode is played.
        Raises: FieldError: There is not one state a lane.
        """
        if len(states) != self.count:
            raise FieldError("len(states)", len(states), f"must be {self.count}, one a lane")
        self.lanes, self.balls = records.lanes_of(states, self.slots)
        self.lanes["seed"] = self.seeds
        if hidden_tick:
            kernels.play_hidden_tick(
                self._numbers, self.lanes, self.balls, self._due, *self._rooms[0]
            )

    def observe(self, slots: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Return the observations: cart and pole, then so many balls.

        A ball is presence, place and velocity; of more balls than slots the nearest to the pole's
        centre of mass.

        Args:
            slots: Balls that are shown.
            out: (count, 11 + 7 slots) to write into; float32 of its own without.
        Returns: (count, 11 + 7 slots).
        """
        if out is None:
            shape = (self.count, rules.CORE + rules.PER_BALL * slots)
            out = np.empty(shape, np.float32)
        rows = out
        self._share(
            lambda share, _: kernels.observe(
                self._numbers, self.lanes[share], self.balls[share], rows[share]
            )
        )
        return rows

    def parts(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Return what kernels of one lane take, as it is now, before the action."""
        return (self._numbers, self.lanes, self.balls, self._due, *self._rooms[0])

    def _share(self, work: Callable[[slice, tuple[Any, Any]], None]) -> None:
        """Do a piece of work on every share of the lanes, each in a thread."""
        if self._pool is None:
            work(self._shares[0], self._rooms[0])
            return
        for _ in self._pool.map(work, self._shares, self._rooms):
            pass

    def _play(self, share: slice, room: tuple[Any, Any], actions: LaneActions) -> None:
        """Play a share of the lanes."""
        kernels.play(
            self._numbers,
            self.lanes[share],
            self.balls[share],
            self._due,
            *room,
            actions[share],
            self._fallen[share],
            self._late[share],
        )

    def _room(self) -> tuple[Any, Any]:
        """Return a thread's room for contacts and forces."""
        contacts = np.zeros(records.most_contacts(self.slots), records.CONTACT)
        return contacts, np.zeros((self.slots, 3))

    def _begin(self, at: npt.NDArray[np.intp]) -> None:
        """Put the first states of their next episodes into the lanes `at`."""
        seeds = _children(self.seeds[at], self.episodes[at])
        chosen = (seeds >> _U64(1)) % _U64(len(self._first[0]))
        self.lanes[at] = self._first[0][chosen]
        self.balls[at] = self._first[1][chosen]
        self.lanes["seed"][at] = seeds


def _children(seeds: npt.NDArray[Any], path: Any) -> npt.NDArray[Any]:
    """Return each seed's child at a path: one for all, or one each."""
    made = np.empty(seeds.shape, _U64)
    kernels.child_seeds(seeds, np.broadcast_to(path, seeds.shape).astype(_U64), made)
    return made


# --- control rules --------------------------------------------------------------------


ControlRule = Callable[[Simulator], LaneActions]


def nothing(simulator: Simulator) -> LaneActions:
    """Return action 0 for every lane, (count,)."""
    return np.zeros(simulator.count, np.int64)


def random(simulator: Simulator) -> LaneActions:
    """Return an action drawn uniformly by each lane's own seed and tick, (count,)."""
    actions = np.empty(simulator.count, np.int64)
    kernels.random_actions(simulator.lanes, actions)
    return actions


def pd(simulator: Simulator) -> LaneActions:
    """Return (count,) pushes along the axis with the larger error, towards the lean."""
    actions = np.empty(simulator.count, np.int64)
    rows = np.empty((simulator.count, rules.CORE))
    kernels.pd_actions(simulator.observe(out=rows), actions)
    return actions


CONTROLS: dict[str, ControlRule] = {"nothing": nothing, "random": random, "pd": pd}


def episode_lengths(simulator: Simulator, rule: ControlRule) -> npt.NDArray[np.int64]:
    """Return how many steps the next episode of every lane lasts.

    Args:
        simulator: Its lanes are restarted.
        rule: Chooses the actions.
    Returns: (count,).
    """
    simulator.restart()
    steps = np.zeros(simulator.count, np.int64)
    alive = np.ones(simulator.count, np.bool_)
    for _ in range(simulator.world.ticks):
        fallen, _ = simulator.step(rule(simulator))
        steps += alive
        alive &= ~fallen
        if not alive.any():
            break
    return steps
