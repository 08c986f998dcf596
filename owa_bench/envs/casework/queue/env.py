"""A credit case as a queue of requests, for training: which look-ups pay, and when to stop.

The agent stands at one request. It makes look-ups, which take minutes of the desk's day, settles
the request as computed from what it has looked at, or goes on. The time does not allow every
look-up for every request. Rewards are changes of the quality by the judge of the suite: those of an
episode sum to its quality. No run records it; the suite's own episodes are `owa_bench/Casework-v1`.
"""

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.company.kinds.contract import LEVELS, CaseState
from owa_bench.envs.casework.judge import quality_by
from owa_bench.envs.casework.queue.case import Events, QueueCase, queue_case
from owa_bench.envs.casework.queue.features import ANSWER_SIZE, CreditAnswer
from owa_bench.envs.casework.queue.look_ups import LOOK_UPS, SHARED, THREAD
from owa_bench.envs.casework.queue.marks import QueueMark, QueueMarks, answer_row
from owa_bench.errors import FieldError, UsageError, one_of
from owa_bench.shells.action_forms import discrete_action

_COUNT = len(LOOK_UPS)
SETTLE, NEXT, LOOK_AGAIN, HAND_IN = range(_COUNT, _COUNT + 4)
ACTIONS = (*(one.name for one in LOOK_UPS), "settle", "next", "look_again", "hand_in")
MINUTES = (*(one.minutes for one in LOOK_UPS), 1, 1, 2, 3)  # of each action [D]
FEATURES = 39  # of a request before any look-up
_OF_CASE = 9
SIZE = FEATURES + 2 * _COUNT + ANSWER_SIZE + _OF_CASE + _COUNT
_OPTIONS = ("case", "world")
_BITS = np.array([[m >> n & 1 for n in range(_COUNT)] for m in range(1 << _COUNT)], np.float32)
QueueNumbers = npt.NDArray[np.float32]


class CaseQueueEnv(gym.Env[QueueNumbers, int]):
    """A queue of credit requests.

    Args:
        level: 1 to 3.
        minutes: Of the day, for each request; all look-ups of one take 16.
        cases: How many cases an env plays; each is drawn when it is first met.
        first: Seed of the first case, the others follow.
    Raises:
        FieldError: A number is out of its range.
        TypeError: A render mode is given.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        *,
        level: int = 2,
        minutes: int = 6,
        cases: int = 64,
        first: int = 0,
        render_mode: None = None,
    ) -> None:
        if render_mode is not None:
            # As a parameter that is not there: `make_vec_env` of Stable-Baselines3 asks for
            # pictures, and after a TypeError goes on without.
            raise TypeError(f"`render_mode` must be None: nothing draws, got {render_mode!r}.")
        if level not in LEVELS:
            raise FieldError("level", level, f"must be one of {LEVELS}")
        for name, value, least in (
            ("minutes", minutes, 1),
            ("cases", cases, 1),
            ("first", first, 0),
        ):
            if value < least:
                raise FieldError(name, value, f"must be at least {least}")
        self._level, self._minutes, self._cases, self._first = level, minutes, cases, first
        self.observation_space = spaces.Box(0.0, 1.0, (SIZE,), np.float32)
        self._actions = spaces.Discrete(len(ACTIONS))
        self.action_space = cast(spaces.Space[int], self._actions)
        self._case: QueueCase | None = None
        self._left = 0
        self._quality = 0.0

    # --- one episode ------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[QueueNumbers, dict[str, Any]]:
        """Begin a case.

        Args:
            seed: Of `np_random`, which draws the case.
            options: "case" is the seed of a case, "world" a world of the kind `credits`.
        Returns: The first observation and an empty info.
        Raises: FieldError: Another option.
        """
        super().reset(seed=seed)
        given = options or {}
        for name in given:
            if name not in _OPTIONS:
                raise FieldError("options", name, one_of(name, _OPTIONS))
        if "world" in given:
            self._begin(QueueCase(given["world"]))
        else:
            drawn = self._first + int(self.np_random.integers(self._cases))
            self._begin(queue_case(self._level, int(given.get("case", drawn))))
        return self._observe(), {}

    def step(self, action: Any) -> tuple[QueueNumbers, float, bool, bool, dict[str, Any]]:
        """Play an action.

        Args:
            action: 0 to 13, in any form of `shells.action_forms`; a malformed one plays 0. One that
                is masked costs a minute and does nothing else.
        Returns: Gymnasium's five; the info holds "error" for a malformed or masked action alone.
        Raises: UsageError: No episode has begun, or it is over.
        """
        if self._left <= 0:
            raise UsageError("No episode has begun, or it is over: call reset first.")
        number, error = discrete_action(action, self._actions)
        if not self._allowed(number):
            error = error or f"`{ACTIONS[number]}` is masked now: see `action_masks`"
            self._left -= 1
        else:
            self._left -= MINUTES[number]
            self._play(number)
        if self._left > 0:
            self._happen()
        before, self._quality = self._quality, self._judge()
        over = self._left <= 0
        info: dict[str, Any] = {} if error is None else {"error": error}
        return self._observe(), self._quality - before, over, False, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are open: those that are not done yet and fit into the time.

        Returns: (14,).
        """
        made, left = self._mask(), self._left
        found = [not made >> n & 1 and MINUTES[n] <= left for n in range(_COUNT)]
        found += [self._allowed(n) for n in range(_COUNT, len(ACTIONS))]
        return np.array(found, np.bool_)

    # --- what fixed rules and tests ask -----------------------------------------------------

    @property
    def case(self) -> QueueCase:
        """The case that is played."""
        if self._case is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._case

    @property
    def minutes_left(self) -> int:
        """Minutes until the desk closes."""
        return self._left

    @property
    def place(self) -> int:
        """The request at which the agent stands."""
        return self._place

    @property
    def unread(self) -> int:
        """Mails that came during the case and were not looked at."""
        return self._unread

    @property
    def unsettled(self) -> int:
        """Requests without a decision."""
        return len(self._standing) - self._settled

    def looked(self, place: int) -> int:
        """Return the look-ups that were made for a request, a bit for each.

        Args:
            place: Of the request.
        """
        return self._looked[place] | self._shared

    @property
    def waiting(self) -> bool:
        """Whether a request has no decision, or another one than what is known gives."""
        case, known, shared = self.case, self._known, self._shared
        return any(
            standing is None or standing != case.answer(n, known, self._looked[n] | shared)
            for n, standing in enumerate(self._standing)
        )

    def state(self) -> CaseState:
        """Return the case as the judge of the suite reads it."""
        requests = self.case.requests
        settled = {
            request.id: answer_row(request.id, answer)
            for request, answer in zip(requests, self._standing, strict=True)
            if answer is not None
        }
        return CaseState(settled=settled, handed_in=self._handed_in, happened=self._happened)

    # --- inside -----------------------------------------------------------------------------

    def _begin(self, case: QueueCase) -> None:
        count = len(case.requests)
        self._case, self._day = case, self._minutes * count
        self._left, self._minute = self._day, 0
        self._place = self._settled = self._shared = self._unread = 0
        self._looked = [0] * count
        self._moved = [0] * count
        self._standing: list[CreditAnswer | None] = [None] * count
        self._pending = list(case.world.events)
        self._happened: Events = frozenset()
        self._known: Events = frozenset()
        self._handed_in: dict[str, tuple[Any, ...]] = {}
        self._marks: QueueMarks = case.marks(self._happened)
        self._mark, self._quality = QueueMark(), 0.0
        self._tries = np.zeros(_COUNT, np.float32)
        self._paid = np.zeros(_COUNT, np.float32)
        self._now = case.answer(0, self._known, 0)

    def _mask(self) -> int:
        return self._looked[self._place] | self._shared

    def _allowed(self, number: int) -> bool:
        if MINUTES[number] > self._left:
            return False
        if number < _COUNT:
            return not self._mask() >> number & 1
        if number == SETTLE:
            return self._standing[self._place] != self._now
        return number != NEXT or len(self._standing) > 1

    def _play(self, number: int) -> None:
        if number < _COUNT:
            self._look(number)
        elif number == SETTLE:
            self._settle()
        elif number == NEXT:
            self._go_on()
        elif number == LOOK_AGAIN:
            self._look_again()
        else:
            self._hand_in()

    def _look(self, number: int) -> None:
        """Make a look-up, and note whether it changes the answer as it was known."""
        bit, place, before = 1 << number, self._place, self._now
        if bit & SHARED:
            self._shared |= bit
        else:
            self._looked[place] |= bit
        self._arrive(place)
        self._tries[number] += 1.0
        if self._now != before:
            self._moved[place] |= bit
            self._paid[number] += 1.0

    def _arrive(self, place: int) -> None:
        """Stand at a request; its answer is computed from what is known."""
        self._place = place
        self._now = self.case.answer(place, self._known, self._mask())

    def _settle(self) -> None:
        """Post the answer, unless a colleague has decided the request, and go on."""
        place, answer = self._place, self._now
        taken = self.case.requests[place].other_desk
        if taken in self._happened and answer[0] != "close":
            self._known |= {taken}
            self._arrive(place)
            return
        old = self._standing[place]
        if old is None:
            self._settled += 1
        else:
            self._marks.add(self._mark, place, old, -1.0)
        self._standing[place] = answer
        self._marks.add(self._mark, place, answer)
        self._go_on()

    def _go_on(self) -> None:
        """Go to the next request that is not settled as it is known, else to the next one."""
        count, case, known, shared = len(self._standing), self.case, self._known, self._shared
        for step in range(1, count):
            place = (self._place + step) % count
            standing = self._standing[place]
            if standing is None or standing != case.answer(
                place, known, self._looked[place] | shared
            ):
                break
        else:
            place = (self._place + 1) % count
        self._arrive(place)

    def _look_again(self) -> None:
        """Read new mails and the queue again."""
        self._unread = 0
        for place, request in enumerate(self.case.requests):
            if request.withdrawn in self._happened - self._known:
                self._looked[place] |= THREAD  # its mail was read
        self._known = self._happened
        self._arrive(self._place)

    def _hand_in(self) -> None:
        """Hand in what follows from what is known; it ends the case."""
        masks = [looked | self._shared for looked in self._looked]
        self._handed_in = self.case.deliverables(self.state().settled, masks)
        self._left = 0

    def _happen(self) -> None:
        """Let happen what is due, by time or by the share that is settled."""
        if not self._pending:
            return
        minute, case = self._day - self._left, self.case
        tenths = 10 * self._settled // len(case.requests)
        before = self._happened
        for event in list(self._pending):
            barred = event.unless_settled
            if barred and self._standing[case.places[barred]] is not None:
                self._pending.remove(event)
            elif event.minute <= minute or tenths >= event.tenths:
                self._pending.remove(event)
                self._happened |= {event.name}
                self._unread += len(event.mails)
        if self._happened != before:
            self._marks, self._mark = case.marks(self._happened), QueueMark()
            for place, answer in enumerate(self._standing):
                if answer is not None:
                    self._marks.add(self._mark, place, answer)

    def _judge(self) -> float:
        if self._handed_in:
            return quality_by(self.case.world, self._marks.truth, self.state())
        return self._marks.quality(self._mark)

    def _observe(self) -> QueueNumbers:
        place, case, count = self._place, self.case, len(self._standing)
        mask, standing = self._mask(), self._standing[place]
        shown = self._moved[place]
        row = np.empty(SIZE, np.float32)
        at = FEATURES
        row[:at] = case.features[place]
        row[at : at + _COUNT] = _BITS[mask]
        row[at + _COUNT : at + 2 * _COUNT] = _BITS[shown]
        at += 2 * _COUNT
        row[at : at + ANSWER_SIZE] = case.answer_features(self._now)
        at += ANSWER_SIZE
        waiting = count - self._settled
        row[at : at + _OF_CASE] = (
            standing is not None,
            standing is not None and standing != self._now,
            self._left / self._day,
            min(1.0, self._left / (20.0 * waiting)) if waiting else 1.0,
            min(1.0, self._left / 10.0),
            min(1.0, max(0.0, (self._left - MINUTES[HAND_IN] - waiting) / 20.0)),
            self._settled / count,
            min(1.0, self._unread / 4),
            place / count,
        )
        row[at + _OF_CASE :] = self._paid / (self._tries + 2.0)
        return row
