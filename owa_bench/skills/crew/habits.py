"""Habits of a seat of a crew: whether it tells, asks, waits, helps and settles."""

from dataclasses import dataclass

CREWS = "hand_off"  # the tool of crews


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How a seat works.

    `tells` what it knows that others' items need; `asks` for what it lacks;
    `answers` what it was asked; `patience`
    ticks it waits for a message before it looks into others' documents; `longest`:
    takes the item that most others wait for, else the first; `helps`: takes items of
    other roles too; `settles` by proposals, else by arbitration alone; `hub`: tells the
    lead alone, who passes it on; `checks`: in the last seat, reads what others merged
    and does anew what is wrong by what it knows.
    """

    tells: bool = False
    asks: bool = False
    answers: bool = False
    patience: int = 0
    longest: bool = False
    helps: bool = True
    settles: bool = False
    hub: bool = False
    checks: bool = False


ALONE = Habits(longest=True)
IN_ORDER = Habits(asks=True, answers=True, patience=4, helps=False)
ASKING = Habits(asks=True, answers=True, patience=4, longest=True)
TEAM = Habits(tells=True, answers=True, longest=True, patience=6, settles=True)
STAR = Habits(
    tells=True,
    answers=True,
    longest=True,
    patience=6,
    settles=True,
    hub=True,
    checks=True,
)
# Partners that no policy of ours is trained with.
QUIET = Habits(patience=2, helps=False)
ANSWERING = Habits(answers=True, patience=8, helps=False)
