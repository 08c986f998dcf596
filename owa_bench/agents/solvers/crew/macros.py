"""Macro actions of a seat of a crew: each is the best call of one kind, with a mask.

What a seat may choose and what it is told in numbers come from the texts that it was shown, by the
reader that scripted players use: no number knows more than the seat.

Source: docs/multicrew.md#views-of-a-whole-crew
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import SeatConfig
from owa_bench.agents.solvers.planning import PlanCall
from owa_bench.interfaces import Brief

_EVERY = SeatConfig(tells=True, asks=True, answers=True, longest=True, helps=True, settles=True)
MACROS = (
    "wait",
    "merge",
    "work",
    "help",
    "read_own",
    "read_other",
    "tell",
    "ask",
    "answer",
    "settle",
    "decide",
    "finish",
)
_FAMILIES = ("contract", "schedule", "incident", "negotiate", "duties")
_SEATS, _FEW = 6, 8  # numbers are shares of these
_STATE = 16
FEATURES = _STATE + len(_FAMILIES) + len(MACROS)
SeatFeatures = npt.NDArray[np.float32]


class CrewMacros(CrewPlayer):
    """One seat whose next kind of call somebody else chooses.

    Args:
        brief: The task.
    """

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief, _EVERY)
        self._offer: dict[str, PlanCall] = {}

    def show(self, text: str) -> None:
        """Take in what the seat is shown; its macros are those of this turn."""
        self._note(text)
        self._last = PlanCall("", {})
        found = ((name, next(self._kind(name), None)) for name in MACROS)
        self._offer = {name: call for name, call in found if call is not None}

    def mask(self) -> npt.NDArray[np.bool_]:
        """Return which macros may be chosen now, (macros,); to wait always may."""
        return np.array([name in self._offer for name in MACROS], dtype=np.bool_)

    def choose(self, number: int) -> PlanCall:
        """Return the call of a macro; a masked one waits.

        Args: number: its place in `MACROS`.
        """
        name = MACROS[number] if MACROS[number] in self._offer else MACROS[0]
        self._last = next(self._kind(name))
        return self._last

    def features(self) -> SeatFeatures:
        """Return what the seat knows in numbers, (features,) in [0, 1]."""
        view = self.view
        items = list(view.items.values())
        mine = [item for item in items if item["role"] == view.seat]
        merged = [item for item in items if item["name"] in view.revisions]
        ready = view.ready()
        own = [item for item in ready if self._mine(item)]
        able = [item for item in own if not view.lacking(item)]
        seats = list(view.goal["seats"])
        needed = {name for item in mine for name in view.needed(item)}
        effort = sum(item["effort"] for item in items)
        unread = sum(role in self._held for role in self._unread.values())
        numbers = (
            view.tick / view.deadline,
            view.hours / (2 * effort),
            sum(item["effort"] for item in merged) / effort,
            sum(item in merged for item in mine) / max(1, len(mine)),
            len(self._own) / _FEW,
            len(view.drafts) / _FEW,
            len(ready) / len(items),
            len(own) / _FEW,
            len(able) / _FEW,
            unread / _FEW,
            (len(self._unread) - unread) / _FEW / 2,
            sum(bool(view.value(name)) for name in needed) / max(1, len(needed)),
            len(view.contested - view.settled.keys()) / _FEW,
            len(self._questions) / _FEW,
            seats.index(view.seat) / _SEATS,
            len(view.seen) / _SEATS,
        )
        family = str(view.goal["family"]).rpartition("/")[2]
        kinds = [name == family for name in _FAMILIES]
        row = np.array((*numbers, *kinds, *self.mask()), dtype=np.float32)
        return np.clip(row, 0.0, 1.0)

    def _kind(self, name: str) -> Iterator[PlanCall]:
        """Return the calls that a macro stands for, the best first."""
        own = [d for d, role in self._unread.items() if role in self._held]
        kinds: dict[str, Callable[[], Iterator[PlanCall]]] = {
            "wait": lambda: iter((PlanCall("pass_turn", {"ticks": 1}),)),
            "merge": self._merging,
            "work": lambda: self._work(mine=True),
            "help": lambda: self._work(mine=False),
            "read_own": lambda: self._reading(own),
            "read_other": lambda: self._reading(self._wanted_documents()),
            "tell": self._telling,
            "ask": self._asking,
            "answer": lambda: self._answering(own),
            "settle": self._settling,
            "decide": lambda: self._deciding(0),
            "finish": self._closing,
        }
        return kinds[name]()

    def _work(self, *, mine: bool) -> Iterator[PlanCall]:
        """Yield the work that comes first, if the item is this seat's, or is not."""
        call = next(self._working(), None)
        item = call and self.view.items.get(call.arguments.get("item", ""))
        if call is not None and mine == (not item or self._mine(item)):
            yield call

    def _closing(self) -> Iterator[PlanCall]:
        """Yield the end of the episode, which is the lead's to call."""
        if self.view.seat == self.view.goal["seats"][0]:
            yield from self._ending()
