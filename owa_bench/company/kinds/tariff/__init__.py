"""The kind `tariff`: a rating engine departs from the published tariff; find how, and forecast."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from owa_bench.company.kinds.contract import (
    CaseKind,
    CasePart,
    CaseProposition,
    CaseSpec,
    CaseState,
    CaseTruth,
    CaseWorld,
    ItemTruth,
    JsonRow,
    NoWorldError,
    PostResult,
)
from owa_bench.company.kinds.judging import items_by_reason, plain_value
from owa_bench.company.kinds.tariff.draw import draw_world
from owa_bench.company.kinds.tariff.engine import PricedShipments, correction_of
from owa_bench.company.kinds.tariff.matter import TariffMatter
from owa_bench.company.kinds.tariff.propositions import KINDS, tariff_propositions
from owa_bench.company.kinds.tariff.quotes import quote_reply
from owa_bench.company.kinds.tariff.texts import brief_text
from owa_bench.company.language.tariff_form import FORM, tariff_of
from owa_bench.company.language.tariff_rules import NEW_TRAPS, Departure
from owa_bench.seeding import derive

FUEL, HISTORY, RELEASE, NEW = "fuel_correction", "history", "release", "new"
WEIGHTS = {"touched": 0.45, "plain": 0.2, "departures": 0.35}
_REDRAWS = 40


class TariffKind(CaseKind):
    """A hidden rating rule; the deliverable is a forecast and a list of departures."""

    name = "tariff"
    form = FORM
    classes = (
        *(name for name in FORM.sections if name != "rounding"),
        *NEW_TRAPS.values(),
        FUEL,
        HISTORY,
        RELEASE,
    )
    sources = (*classes, NEW)
    proposition_kinds = KINDS
    deliverables: Mapping[str, tuple[str, ...]] = {
        "totals": ("shipment", "total_cents"),
        "departures": ("clause", "shipments"),
    }

    def draw(self, spec: CaseSpec) -> CaseWorld:
        """Return a world; seeds of their own are tried until one has all that it needs.

        Args:
            spec: What it is drawn from.
        Raises: NoWorldError: No seed has.
        """
        for number in range(_REDRAWS):
            seed = derive(spec.seed, "tariff", "redraw", number)
            try:
                return draw_world(spec._replace(seed=seed))
            except NoWorldError:
                continue
        raise NoWorldError(f"no tariff case can be drawn from seed {spec.seed}")

    def brief(self, world: CaseWorld) -> str:
        """Return the task as the agent reads it."""
        return brief_text(world, WEIGHTS)

    def truth(
        self, world: CaseWorld, happened: Set[str] = frozenset(), blind: Set[str] = frozenset()
    ) -> CaseTruth:
        """Return the totals of next week's bills, and the departures.

        They do not depend on what has happened so far: next week's bills follow every event.

        Args:
            world: The one that is played.
            happened: Not used.
            blind: Classes or sources that are not looked at.
        """
        matter: TariffMatter = world.matter
        tariff = tariff_of(world.policy)
        rows = world.tables["planned"]
        departures = _seen(matter, blind)
        correction = None if FUEL in blind else correction_of(matter)
        priced = PricedShipments(tariff, rows, matter.fuel, correction)
        totals = priced.prices(departures)
        moved = {rule: priced.moved(rule, departures) for rule in departures}
        uncorrected = PricedShipments(tariff, rows, matter.fuel).prices(departures)
        items = []
        for place, row in enumerate(rows):
            reasons = [rule.trap for rule in departures if moved[rule][place]]
            if uncorrected[place] != totals[place]:
                reasons.append(FUEL)
            items.append(
                ItemTruth(
                    id=row.id,
                    answer={"shipment": row.id, "total_cents": int(totals[place])},
                    reasons=tuple(sorted(reasons)),
                    rows=frozenset({f"planned/{row.id}"}),
                )
            )
        told = tuple(
            {
                "clause": clause_name(world, rule),
                "shipments": tuple(r.id for r, hit in zip(rows, moved[rule], strict=True) if hit),
            }
            for rule in departures
        )
        return CaseTruth(
            items=tuple(items),
            deliverables={"totals": tuple(item.answer for item in items), "departures": told},
        )

    def post(self, world: CaseWorld, state: CaseState, call: str, body: Any) -> PostResult:
        """Return the reply of the rating engine.

        Args:
            world: The one that is played.
            state: Before the call.
            call: "quote".
            body: A list of shipments.
        """
        if call != "quote":
            return PostResult(404, {"error": f"the rating engine has no call {call!r:.40}"})
        return quote_reply(world, state, body)

    def parts(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> tuple[CasePart, ...]:
        """Return exact totals of touched and of plain shipments, and the departures.

        Args:
            world: The one that is played.
            truth: What is right.
            state: At the end.
        """
        told: dict[str, list[Any]] = {}
        for row in state.handed_in.get("totals", ()):
            if isinstance(row, Mapping):
                told.setdefault(str(row.get("shipment")), []).append(row.get("total_cents"))

        def exact(item: ItemTruth) -> float:
            answers = [plain_value(value) for value in told.get(item.id, [])]
            return float(answers == [item.answer["total_cents"]])

        touched = truth._replace(items=tuple(item for item in truth.items if item.reasons))
        plain = [exact(item) for item in truth.items if not item.reasons]
        values = {
            "touched": items_by_reason(touched, exact),
            "plain": sum(plain) / len(plain) if plain else float(bool(told)),
            "departures": departure_score(
                truth.deliverables["departures"], state.handed_in.get("departures", ())
            ),
        }
        return tuple(CasePart(name, WEIGHTS[name], values[name]) for name in WEIGHTS)

    def propositions(self, world: CaseWorld) -> tuple[CaseProposition, ...]:
        """Return statements on totals, clauses and shipments."""
        return tariff_propositions(world)


def clause_name(world: CaseWorld, rule: Departure) -> str:
    """Return the number of the section that a departure changes, or "new".

    Args:
        world: Gives the order of the sections.
        rule: The departure.
    """
    if rule.section == NEW:
        return NEW
    return str(world.policy.sections.index(rule.section) + 1)


def departure_score(wanted: Sequence[JsonRow], told: Iterable[Any]) -> float:
    """Return F1 of departures; a pair of one clause counts the overlap of its shipments.

    Args:
        wanted: The true rows.
        told: Rows of the agent; each one that matches nothing counts against it.
    Returns: 2 x sum of overlaps / (true rows + told rows).
    """
    rows = list(told)
    pairs = []
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            continue
        clause, named = plain_value(row.get("clause")), _names(row.get("shipments"))
        for number, true in enumerate(wanted):
            if clause == plain_value(true["clause"]):
                mine = set(true["shipments"])
                overlap = len(mine & named) / max(1, len(mine | named))
                pairs.append((-overlap, place, number))
    used: tuple[set[int], set[int]] = (set(), set())
    hits = 0.0
    for overlap, place, number in sorted(pairs):
        if place not in used[0] and number not in used[1]:
            used[0].add(place)
            used[1].add(number)
            hits -= overlap
    return 2.0 * hits / (len(wanted) + len(rows)) if wanted or rows else 1.0


def _names(value: Any) -> set[str]:
    if isinstance(value, str):
        return set(value.replace(",", " ").replace(";", " ").split())
    return {str(one) for one in value} if isinstance(value, list | tuple) else set()


def _seen(matter: TariffMatter, blind: Set[str]) -> tuple[Departure, ...]:
    """Return the departures that somebody finds who does not look at some sources."""
    found = matter.departures
    if HISTORY in blind and matter.has_history:
        found = (*matter.earlier, *matter.late)
    if RELEASE in blind:
        found = tuple(rule for rule in found if rule not in matter.late)
    return tuple(
        rule
        for rule in found
        if rule.trap not in blind and not (NEW in blind and rule.section == NEW)
    )


KIND = TariffKind()
__all__ = ["KIND", "TariffKind", "departure_score"]
