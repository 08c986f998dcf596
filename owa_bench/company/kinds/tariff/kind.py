"""The kind `tariff`: what the agent is asked, what it may post, how it is judged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from typing_extensions import override

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

FUEL, HISTORY, RELEASE, NEW = "fuel_correction", "history", "release", "new"
_NONE: frozenset[str] = frozenset()
WEIGHTS = {"totals": 0.37, "plain": 0.35, "departures": 0.28}


class TariffKind(CaseKind):
    """A hidden rating rule; the deliverable is a forecast and a list of departures."""

    name = "tariff"
    form = FORM
    policy_slug = "freight-tariff"
    policy_owner = "Pricing Manager"
    sources = (
        *(name for name in FORM.sections if name != "rounding"),
        *NEW_TRAPS.values(),
        FUEL,
        HISTORY,
        RELEASE,
    )
    proposition_kinds = KINDS
    deliverables: Mapping[str, tuple[str, ...]] = {
        "totals": ("shipment", "total_cents"),
        "departures": ("clause", "shipments"),
    }

    @override
    def draw(self, spec: CaseSpec) -> CaseWorld:
        return draw_world(spec)

    @override
    def brief(self, world: CaseWorld) -> str:
        return brief_text(world, WEIGHTS)

    @override
    def truth(
        self, world: CaseWorld, happened: Set[str] = _NONE, blind: Set[str] = _NONE
    ) -> CaseTruth:
        """Return next week's totals, whatever has happened so far: they follow every event."""
        matter: TariffMatter = world.matter
        departures, priced = _priced(world, blind)
        rows, totals = world.tables["planned"], priced.prices(departures)
        moved = {rule: priced.moved(rule, departures) for rule in departures}
        causes = [(rule.trap, moved[rule]) for rule in departures]
        for name in (FUEL, HISTORY, RELEASE):
            rules, other = _priced(world, blind | {name})
            causes.append((name, other.prices(rules) != totals))
        shown: dict[str, frozenset[str]] = defaultdict(frozenset)
        for name, bills in matter.shown_by.items():
            shown[name] = frozenset(f"bills/{key}" for key in bills)
        items = []
        for place, row in enumerate(rows):
            reasons = tuple(sorted({name for name, hits in causes if hits[place]}))
            items.append(
                ItemTruth(
                    id=row.id,
                    answer={"shipment": row.id, "total_cents": int(totals[place])},
                    reasons=reasons,
                    rows=frozenset({f"planned/{row.id}"}.union(*(shown[r] for r in reasons))),
                )
            )
        told = tuple(
            {
                "clause": clause_name(world, rule),
                "shipments": [r.id for r, hit in zip(rows, moved[rule], strict=True) if hit],
            }
            for rule in departures
        )
        return CaseTruth(
            items=tuple(items),
            deliverables={"totals": tuple(item.answer for item in items), "departures": told},
        )

    @override
    def post(self, world: CaseWorld, state: CaseState, call: str, body: Any) -> PostResult:
        if call != "quote":
            return PostResult(404, {"error": f"the rating engine has no call {call!r:.40}"})
        return quote_reply(world, state, body)

    @override
    def parts(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> tuple[CasePart, ...]:
        right = self.right(world, truth, state)

        def exact(item: ItemTruth) -> float:
            return float(item.id in right)

        touched = truth._replace(items=tuple(item for item in truth.items if item.reasons))
        plain = [exact(item) for item in truth.items if not item.reasons]
        values = {
            "totals": items_by_reason(touched, exact),
            "plain": sum(plain) / len(plain) if plain else float(bool(right)),
            "departures": departure_score(
                truth.deliverables["departures"], state.handed_in.get("departures", ())
            ),
        }
        return tuple(CasePart(name, WEIGHTS[name], values[name]) for name in WEIGHTS)

    @override
    def propositions(self, world: CaseWorld) -> tuple[CaseProposition, ...]:
        return tariff_propositions(world)

    @override
    def solution(
        self, world: CaseWorld, truth: CaseTruth
    ) -> tuple[tuple[tuple[str, Any], ...], Mapping[str, tuple[JsonRow, ...]]]:
        return (), truth.deliverables

    @override
    def right(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> frozenset[str]:
        """Return the shipments whose handed-in total is exact; two totals of one are wrong."""
        told: dict[str, list[Any]] = defaultdict(list)
        for row in state.handed_in.get("totals", ()):
            if isinstance(row, Mapping):
                told[str(row.get("shipment"))].append(plain_value(row.get("total_cents")))
        return frozenset(
            item.id for item in truth.items if told[item.id] == [item.answer["total_cents"]]
        )


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


def _priced(world: CaseWorld, blind: Set[str]) -> tuple[tuple[Departure, ...], PricedShipments]:
    """Return the departures that somebody finds, and the planned shipments with their fuel."""
    matter: TariffMatter = world.matter
    correction = None if FUEL in blind else correction_of(matter)
    tariff = tariff_of(world.policy)
    priced = PricedShipments(tariff, world.tables["planned"], matter.fuel, correction)
    return _visible(matter, blind), priced


def _visible(matter: TariffMatter, blind: Set[str]) -> tuple[Departure, ...]:
    """Return the departures that somebody finds who does not look at some sources."""
    found = matter.departures
    if HISTORY in blind and matter.has_history:
        found = (*matter.earlier, *matter.late)
    if RELEASE in blind and matter.release_event:
        found = tuple(rule for rule in found if rule not in matter.late)
    return tuple(
        rule
        for rule in found
        if rule.trap not in blind and not (NEW in blind and rule.section == NEW)
    )


KIND = TariffKind()
