"""A credit case as the queue view plays it: the answer of every set of look-ups."""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from owa_bench.company.kinds.contract import CaseTruth, CaseWorld
from owa_bench.company.kinds.credits.records import CreditRecords
from owa_bench.company.kinds.credits.truth import (
    by_customer,
    credit_truth,
    decide,
    policy_in_force,
    request_exceptions,
)
from owa_bench.envs.casework.kinds import draw_case
from owa_bench.envs.casework.queue.features import CreditAnswer, answer_features, request_features
from owa_bench.envs.casework.queue.look_ups import blind_sources
from owa_bench.envs.casework.queue.marks import QueueMarks

_CASES = 1_024  # that are kept
_KEPT: Mapping[str, str] = {  # tables of customers: the column that names the customer
    "customers": "id",
    "contacts": "customer",
    "orders": "customer",
    "shipments": "customer",
    "invoices": "customer",
    "credit_notes": "customer",
    "contracts": "customer",
}
Events = frozenset[str]


class QueueCase:
    """A case, its answers made when they are first asked for.

    An answer depends on the look-ups that were made for the request and on the events that the
    reader knows: it is the answer of a reader who looks at these sources alone. Requests of a
    customer share a limit, so they are decided together.

    Args:
        world: Of the kind `credits`.
        seed: The one that it was drawn from, None for any other world.
    """

    def __init__(self, world: CaseWorld, seed: int | None = None) -> None:
        self._made_of = world if seed is None else seed
        self.world = small_world(world)
        self.records = CreditRecords(self.world)
        self.requests = self.world.matter.requests
        self.places = {request.id: place for place, request in enumerate(self.requests)}
        customers: dict[str, list[int]] = {}
        for place, request in enumerate(self.requests):
            key = self.records.orders[request.order].customer
            customers.setdefault(key, []).append(place)
        self._groups = [tuple(self.requests[n] for n in places) for places in customers.values()]
        self._home = {n: k for k, places in enumerate(customers.values()) for n in places}
        news = {a.event for a in world.policy.amendments if a.event}
        self._relevant = [
            frozenset(news | {e for r in group for e in (r.withdrawn, r.other_desk) if e})
            for group in self._groups
        ]
        self._answers: dict[tuple[int, int, Events], dict[str, CreditAnswer]] = {}
        self._features: dict[CreditAnswer, npt.NDArray[np.float32]] = {}
        self._marks: dict[Events, QueueMarks] = {}
        self._exceptions: dict[tuple[int, int], tuple[str, ...]] = {}
        self._desk = world.policy.terms["desk"]["amount"]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the seed or the world, no answers."""
        if isinstance(self._made_of, int):
            return queue_case, (self.world.level, self._made_of)
        return QueueCase, (self._made_of,)

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """What is known of the requests before any look-up, (requests, n)."""
        return request_features(self.world, self.records)

    def answer(self, place: int, known: Events, mask: int) -> CreditAnswer:
        """Return the answer of a reader of some sources alone.

        Args:
            place: Of the request.
            known: Events that the reader knows.
            mask: Look-ups that were made.
        """
        home = self._home[place]
        told = known & self._relevant[home]
        found = self._answers.get((home, mask, told))
        if found is None:
            rows = decide(
                self.world,
                told,
                blind_sources(mask),
                among=self._groups[home],
                records=self.records,
            )
            found = {key: _answer(row) for key, row in rows.items()}
            self._answers[home, mask, told] = found
        return found[self.requests[place].id]

    def answer_features(self, answer: CreditAnswer) -> npt.NDArray[np.float32]:
        """Return an answer as numbers, made once.

        Args:
            answer: As far as it is known.
        Returns: (ANSWER_SIZE,), in [0, 1].
        """
        found = self._features.get(answer)
        if found is None:
            found = self._features[answer] = answer_features(answer, self._desk)
        return found

    def marks(self, happened: Events) -> QueueMarks:
        """Return how decisions are marked after some events.

        Args:
            happened: Names of the events so far.
        """
        found = self._marks.get(happened)
        if found is None:
            found = self._marks[happened] = QueueMarks(self.world, self.truth(happened))
        return found

    def truth(self, happened: Events) -> CaseTruth:
        """Return what is right after some events."""
        return credit_truth(self.world, happened)

    def deliverables(
        self, standing: Mapping[str, Any], masks: list[int]
    ) -> dict[str, tuple[dict[str, Any], ...]]:
        """Return what a reader of some sources hands in.

        Args:
            standing: Decisions by the key of the request.
            masks: Look-ups that were made for each request.
        """
        rows = [
            {"request": request.id, "what": what}
            for place, request in enumerate(self.requests)
            for what in self.exceptions(place, masks[place])
        ]
        return {"table": by_customer(self.world, standing), "exceptions": tuple(rows)}

    def exceptions(self, place: int, mask: int) -> tuple[str, ...]:
        """Return the exceptions that a reader of some sources finds.

        Args:
            place: Of the request.
            mask: Look-ups that were made.
        """
        found = self._exceptions.get((place, mask))
        if found is None:
            blind = blind_sources(mask)
            policy = policy_in_force(self.world.policy, frozenset(), blind)
            request, level = self.requests[place], self.world.level
            found = request_exceptions(self.records, request, policy, level, blind)
            self._exceptions[place, mask] = found
        return found


def _answer(row: Mapping[str, Any]) -> CreditAnswer:
    return row["decision"], row["code"], row["amount_cents"], row["approver"]


def small_world(world: CaseWorld) -> CaseWorld:
    """Return a world with the rows of customers who ask for something, and no texts.

    Args:
        world: Of the kind `credits`.
    """
    orders = {row.id: row for row in world.tables["orders"]}
    asking = {orders[request.order].customer for request in world.matter.requests}
    tables = dict(world.tables)
    for name, column in _KEPT.items():
        tables[name] = tuple(row for row in tables[name] if getattr(row, column) in asking)
    kept = {row.id for row in tables["orders"]}
    sent = {row.id for row in tables["shipments"]}
    tables["order_lines"] = tuple(row for row in tables["order_lines"] if row.order in kept)
    for name in ("proofs", "delays"):
        tables[name] = tuple(row for row in tables[name] if row.shipment in sent)
    listed = {row.product for row in tables["order_lines"]}
    tables["prices"] = tuple(row for row in tables["prices"] if row.product in listed)
    tables["products"] = ()
    return replace(world, tables=tables, pages=(), mails=(), facts=(), hosts=())


@lru_cache(maxsize=_CASES)
def queue_case(level: int, seed: int) -> QueueCase:
    """Return the case of a seed, drawn once in a process.

    Args:
        level: 1 to 3.
        seed: Draws everything, as it does in the suite.
    """
    return QueueCase(draw_case("credits", level, seed), seed)
