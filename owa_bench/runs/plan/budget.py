"""Budgets: meters of an episode and of a run against the ceilings of the plan.

A ceiling is reached when the amount used is no longer below it. An episode that a wall, CPU or GPU
ceiling ends, or one of the whole run, is `timed`: which episode that falls on differs from machine
to machine, so it stays out of the replay root.

Money (`usd`) is a ceiling of the run alone: what env and harness measured, by the run's price card,
but for minutes of the supervisor, which is simulated and paid by nobody.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from owa_bench.errors import PlanError, one_of
from owa_bench.interfaces import Sink
from owa_bench.records.events import METERS, VOLATILE_METERS, Action, ControlBlock, Event, Resource
from owa_bench.records.plan import MOST, Budget
from owa_bench.records.price_card import CACHED, INPUT, PER_UNITS, PriceCard

MICRO = 10**6  # micro-USD in a USD
_YEAR_S = 366 * 86_400  # no clock of the harness reaches much further
WALL = "wall_s"
USD = "usd"
SUPERVISOR = "supervisor_min"
STEPS = "steps"


class Exhausted(NamedTuple):
    """The ceiling that was reached, and whether that depends on the machine."""

    meter: str
    limit: float
    spent: float
    timed: bool

    @property
    def reason(self) -> str:
        """The reason an episode that ends so carries."""
        return f"budget:{self.meter}"


class EpisodeTally:
    """The steps, meters and wall clock of one episode.

    `clock` returns seconds from any fixed point; the tally begins when it is made. Without `prices`
    no money is counted.
    """

    def __init__(
        self,
        budget: Budget,
        clock: Callable[[], float],
        run: "RunTally | None" = None,
        prices: PriceCard | None = None,
    ) -> None:
        check(budget)
        self._prices = prices
        self._budget = budget
        self._run = run
        self._clock = clock
        self._began = clock()
        self._steps = 0
        self.accepted = 0  # acts that the env could carry out
        self.spent: dict[str, float] = {}

    def take(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, Action):
            self._steps += 1
            self.accepted += event.error is None
        elif isinstance(event, ControlBlock):
            self._steps += event.ticks
            self.accepted += event.ticks - event.unreadable
        elif isinstance(event, Resource):
            used = _amounts_of(event, self._prices)
            for meter, amount in used.items():
                _add(self.spent, meter, amount)
            if self._run is not None:
                self._run.add(used)

    def wall_left(self) -> float | None:
        """Return the seconds left of the wall clock, None where it has no ceiling."""
        if self._budget.episode_wall_s is None:
            return None
        return self._budget.episode_wall_s - (self._clock() - self._began)

    def exhausted(self) -> Exhausted | None:
        """Return the first ceiling reached: steps, meters, the run's, the clock."""
        limit = self._budget.steps
        if limit is not None and self._steps >= limit:
            return Exhausted(STEPS, limit, self._steps, timed=False)
        reached = _reached_ceiling(self._budget.episode_meters, self.spent)
        if reached is None and self._run is not None:
            reached = self._run.exhausted()
        if reached is not None:
            return reached
        left = self.wall_left()
        if left is not None and left <= 0:
            wall = self._budget.episode_wall_s or 0.0
            return Exhausted(WALL, wall, wall - left, timed=True)
        return None


class RunTally:
    """The meters of a whole run; may be added to from any thread."""

    def __init__(self, budget: Budget, spent: Mapping[str, float] | None = None) -> None:
        check(budget)
        self._limits = budget.run_meters
        self._lock = threading.Lock()
        self.spent: dict[str, float] = dict(spent or {})

    def add(self, amounts: Mapping[str, float]) -> None:
        """Count what an event or a whole episode used."""
        with self._lock:
            for meter, amount in amounts.items():
                _add(self.spent, meter, amount)

    def exhausted(self) -> Exhausted | None:
        """Return the first ceiling of the run reached, None while all hold."""
        with self._lock:
            reached = _reached_ceiling(self._limits, self.spent)
        return reached and reached._replace(timed=True)


def totals(events: Iterable[Event], prices: PriceCard | None = None) -> dict[str, float]:
    """Return what recorded events used; a resumed run begins with it.

    Args:
        events: Of any episodes.
        prices: The run's price card; None: no money is counted.
    Returns: Amounts by meter, and `usd`.
    """
    spent: dict[str, float] = {}
    for event in events:
        if isinstance(event, Resource):
            for meter, amount in _amounts_of(event, prices).items():
                _add(spent, meter, amount)
    return spent


def _amounts_of(event: Resource, prices: PriceCard | None) -> dict[str, float]:
    """Return the meter of an event with its amount, and the money that it costs."""
    used = {event.meter: event.amount}
    if event.meter == CACHED:  # a ceiling on input holds wherever it was read
        used[INPUT] = event.amount
    price = prices.price(event.meter) if prices else None
    if price and event.source != "agent" and event.meter != SUPERVISOR:
        used[USD] = event.amount * price / PER_UNITS / MICRO
    return used


def check(budget: Budget) -> None:
    """Refuse a ceiling on no meter, or one that is not above 0.

    Raises: PlanError: Naming field, value and rule.
    """
    if budget.steps is not None and not 1 <= budget.steps <= MOST:
        rule = "must be at least 1" if budget.steps < 1 else f"must be at most {MOST}"
        raise PlanError("budget.steps", budget.steps, rule)
    for field in ("act_s", "episode_wall_s"):
        seconds = getattr(budget, field)
        if seconds is not None:
            _check_amount(f"budget.{field}", seconds)
            if seconds > _YEAR_S:
                raise PlanError(f"budget.{field}", seconds, f"must be at most {_YEAR_S} s, a year")
    for field in ("episode_meters", "run_meters"):
        limits: tuple[tuple[str, float], ...] = getattr(budget, field)
        meters = [meter for meter, _ in limits]
        if len(set(meters)) < len(meters):
            raise PlanError(f"budget.{field}", meters, "must name each meter once")
        for meter, limit in limits:
            if meter == USD and field == "run_meters":
                _check_amount(f"budget.{field}.{meter}", limit)
                continue
            if "/" not in meter and meter not in METERS:
                rule = one_of(meter, (*METERS, USD))
                raise PlanError(f"budget.{field}", meter, rule)
            _check_amount(f"budget.{field}.{meter}", limit)


def _check_amount(field: str, amount: float) -> None:
    if not 0 < amount < math.inf:
        raise PlanError(field, amount, "must be above 0 and finite")


def _add(spent: dict[str, float], meter: str, amount: float) -> None:
    """Add to what is spent on a meter."""
    spent[meter] = spent.get(meter, 0.0) + amount


def _reached_ceiling(
    limits: Iterable[tuple[str, float]], spent: Mapping[str, float]
) -> Exhausted | None:
    """Return the first of `limits` that `spent` has reached."""
    for meter, limit in limits:
        if spent.get(meter, 0.0) >= limit:
            return Exhausted(meter, limit, spent[meter], meter in VOLATILE_METERS)
    return None


# --- the sink that counts -------------------------------------------------------------


class EpisodeSink:
    """Sink that counts what passes; always active, so that nothing is skipped.

    With `evaluation` every cost is put into the evaluation stream: checkpoints and attempt sets of
    a campaign are no practice.
    """

    active = True

    def __init__(self, inner: Sink, tally: EpisodeTally | None = None, *, evaluation: bool) -> None:
        self._tally = tally
        self._evaluation = evaluation
        self._inner = inner

    def emit(self, event: Event) -> None:
        """Count one event and pass it on."""
        if self._tally is not None:
            self._tally.take(event)
        if self._evaluation and isinstance(event, Resource):
            event = msgspec.structs.replace(event, stream="evaluation")
        self._inner.emit(event)

    def blob(self, data: bytes) -> str:
        """Pass a blob on and return its digest."""
        return self._inner.blob(data)

    def secret(self, name: str, value: str) -> None:
        """Pass a secret on.

        Args:
            name: What stands in records in its place.
            value: The secret.
        """
        self._inner.secret(name, value)
