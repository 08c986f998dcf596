"""A scripted human colleague of a crew: reads and answers at a fixed cadence.

It holds no seat and no item, and its answers are no messages of the crew. Every so many
ticks it takes the oldest questions that were put to all, and answers each by a
sentence. Its minutes are the human stream's; it is a term of the world and no
intervention.

Source: docs/multicrew.md#human-colleague
"""

from owa_bench.envs.multicrew.wording import sentence
from owa_bench.records.events import ColleagueLook, Event, Resource
from owa_bench.shells.fabric import Fabric
from owa_bench.worlds.crew import CrewWorld, DocumentLine

HUMAN = "human"
ANSWERS = 2  # questions that it answers at a look
_LOOK_MIN, _ANSWER_MIN = 1.0, 2.0  # minutes [D]


class HumanColleague:
    """The colleague of one episode.

    Args:
        fabric: Carries its answers; of a muted crew none.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._asked: list[tuple[str, str]] = []  # who asks, for which clause
        self._looked = 0  # tick of the last look

    def hear(self, seat: str, clause: str) -> None:
        """Take a question that was put to all.

        Args:
            seat: Who asks.
            clause: For what.
        """
        self._asked.append((seat, clause))

    def until(self, world: CrewWorld, tick: int, step: int) -> tuple[Event, ...]:
        """Return the events of the looks that are due, their answers sent.

        Args:
            world: The world that holds now; its `human` is the cadence, 0: nobody.
            tick: Now.
            step: Number of the action.
        Returns: Each look, and what it cost.
        """
        events: list[Event] = []
        while world.human and self._looked + world.human <= tick:
            self._looked += world.human
            due, self._asked = self._asked[:ANSWERS], self._asked[ANSWERS:]
            for seat, name in due:
                clause = world.clause_of[name]
                line = DocumentLine(
                    subject=clause.subject,
                    attribute=clause.attribute,
                    value=clause.value,
                )
                self._fabric.send(
                    *(HUMAN, (seat,), sentence(line)),
                    tick=self._looked - 1,
                    step=step,
                    interval=0,
                )
            minutes = _LOOK_MIN + _ANSWER_MIN * len(due)
            cost = Resource(
                step=step, meter="supervisor_min", amount=minutes, stream="human"
            )
            look = ColleagueLook(step=step, minutes=minutes, answers=tuple(due))
            events += [look, cost]
        return tuple(events)
