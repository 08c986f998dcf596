"""The quality of a queue's decisions in closed form, so that a step costs nothing."""

import math

from owa_bench.company.kinds.contract import CaseState, CaseTruth, CaseWorld, Harm
from owa_bench.company.kinds.credits.kind import KIND, decision_score
from owa_bench.company.kinds.judging import frame, items_by_reason
from owa_bench.envs.casework.queue.features import CreditAnswer


class QueueMark:
    """Sums over the standing decisions, from which the quality follows.

    Attributes:
        total: Of score times the request's weight.
        score: Of scores.
        severity: Of harms.
    """

    __slots__ = ("score", "severity", "total")

    def __init__(self) -> None:
        self.total = self.score = self.severity = 0.0


class QueueMarks:
    """Marks decisions by the judge's own rules, after the events that have happened.

    `items_by_reason` is a weighted mean of the scores times the root of their plain mean: each
    request's weight is found once, and a decision changes three sums.

    Args:
        world: Of the kind `credits`.
        truth: After the events.
    """

    def __init__(self, world: CaseWorld, truth: CaseTruth) -> None:
        self.truth, self._world = truth, world
        count = len(truth.items)
        root = math.sqrt(count)
        self._root = root
        self._weights = [
            items_by_reason(truth, lambda item, one=one: float(item is one)) * root  # type: ignore[misc]
            for one in truth.items
        ]
        main, *others = KIND.parts(world, truth, CaseState())
        self._main = main.weight
        self._rest = math.fsum(part.weight * part.value for part in others)
        self._found: dict[tuple[int, CreditAnswer], tuple[float, float]] = {}

    def add(self, mark: QueueMark, place: int, answer: CreditAnswer, sign: float = 1.0) -> None:
        """Add a decision to the sums.

        Args:
            mark: It is changed.
            place: Of the request.
            answer: The decision.
            sign: -1 takes it away.
        """
        score, severity = self._found.get((place, answer)) or self._judge(place, answer)
        mark.total += sign * self._weights[place] * score
        mark.score += sign * score
        mark.severity += sign * severity

    def quality(self, mark: QueueMark) -> float:
        """Return the quality while nothing is handed in.

        Args:
            mark: Of the standing decisions.
        """
        if mark.score < 1e-9 or mark.total < 1e-9:  # sums of what was taken away again
            return 0.0
        items = mark.total * math.sqrt(mark.score) / self._root
        return (self._main * items + self._rest) * frame((Harm("", max(0.0, mark.severity)),))

    def _judge(self, place: int, answer: CreditAnswer) -> tuple[float, float]:
        item = self.truth.items[place]
        row = answer_row(item.id, answer)
        only = CaseTruth((item,), {})
        harms = KIND.standing_harms(self._world, only, CaseState(settled={item.id: row}))
        found = decision_score(item, row), math.fsum(harm.severity for harm in harms)
        self._found[place, answer] = found
        return found


def answer_row(key: str, answer: CreditAnswer) -> dict[str, str | int]:
    """Return an answer as it is posted.

    Args:
        key: Of the request.
        answer: The decision.
    """
    decision, code, cents, approver = answer
    return {
        "request": key,
        "decision": decision,
        "code": code,
        "amount_cents": cents,
        "approver": approver,
    }
