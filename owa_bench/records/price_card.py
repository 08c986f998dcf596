"""The price card: what each meter costs, in whole micro-USD per million units.

A card is a small TOML file, copied into the run beside the protocol; its digest is the SHA-256 of
its bytes. Money stays an integer: an episode's meter is priced once and rounded half to even. A
meter without a price is *unknown*, never free.

Source: `docs/traces.md#resources-and-prices`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Literal, get_args

import msgspec

from owa_bench.errors import ProtocolError
from owa_bench.records.events import (
    METERS,
    Egress,
    EpisodeStart,
    Event,
    Meter,
    ModelCall,
    Resource,
    Stream,
)
from owa_bench.records.toml import decode

STREAMS: tuple[Stream, ...] = get_args(Stream)
# Hostings (docs/isolation.md) whose processes the harness cannot count.
UNMEASURED = frozenset({"docker", "local address", "remote", "client", "person", "reader"})
INPUT, CACHED, OUTPUT = "tokens_in", "tokens_cached", "tokens_out"
PER_UNITS = 10**6  # prices are micro-USD per this many units
Price = Annotated[int, msgspec.Meta(ge=0)]


class PriceCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices by meter; `date` is the day the currency and the prices are of."""

    schema: Literal["owa-price-card-1"]
    name: str
    currency: Literal["USD"]
    date: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    micro_usd_per_million: Mapping[Meter, Price]

    def price(self, meter: str) -> int | None:
        """Return the price of 10^6 units of `meter`, None when the card has none.

        Input that the provider had cached costs as other input does where the card has no price of
        its own for it.
        """
        prices = self.micro_usd_per_million
        return prices.get(meter, prices.get(INPUT) if meter == CACHED else None)

    def cost(self, meter: str, amount: float) -> int | None:
        """Return the cost of an amount; zero costs nothing under any card.

        Args:
            meter: Its name.
            amount: In the meter's unit.
        Returns: Whole micro-USD, None when the card has no price.
        """
        if amount == 0:
            return 0
        price = self.price(meter)
        if price is None:
            return None
        exact = Decimal(repr(float(amount))) * price / PER_UNITS
        return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def usd_of(micro: float | None) -> float | None:
    """Return micro-USD as USD, None where it is unknown."""
    return None if micro is None else micro / 10**6


def load(data: bytes) -> PriceCard:
    """Return the card that TOML bytes hold; ProtocolError names a bad field."""
    card = decode(data, PriceCard)
    for meter in card.micro_usd_per_million:
        if "/" not in meter and meter not in METERS:
            known = ", ".join(METERS)
            rule = f"must name a suite's meter (SUITE/NAME) or one of {known}"
            raise ProtocolError("micro_usd_per_million", meter, rule)
    if wall := card.price("wall_s"):
        rule = "must be 0: seconds of the wall are printed, never priced"
        raise ProtocolError("micro_usd_per_million.wall_s", wall, rule)
    return card


def episode_cost(prices: PriceCard, events: Iterable[Event]) -> Mapping[Stream, int | None]:
    """Return the cost of one episode by stream.

    Amounts of one meter are added first (`math.fsum`: any order, same sum), then priced once. What
    an agent declares is not priced: the gateway counts what it saw itself.

    Args:
        prices: The run's card.
        events: Those of the episode; only Resource events count.
    Returns: Whole micro-USD by stream, None where a price or an amount is unknown.
    """
    episode = usage_events(events)
    costs: dict[Stream, int | None] = dict.fromkeys(STREAMS, 0)
    for (stream, meter), amount in amounts_used(episode).items():
        cost, before = prices.cost(meter, amount), costs[stream]
        costs[stream] = None if cost is None or before is None else before + cost
    if unknown_usage(episode):
        costs |= {"agent": None, "evaluation": None}
    return costs


def usage_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events, in order, that the functions below read: few of an episode's."""
    return tuple(event for event in events if type(event) in _USAGE)


def amounts_used(events: Iterable[Event]) -> dict[tuple[Stream, str], float]:
    """Return what an episode used that costs, by stream and meter."""
    amounts: dict[tuple[Stream, str], list[float]] = defaultdict(list)
    for event in counted_resources(events):
        amounts[event.stream, event.meter].append(event.amount)
    return {key: math.fsum(parts) for key, parts in amounts.items()}


def counted_resources(events: Iterable[Event]) -> Iterator[Resource]:
    """Yield the resources that cost: those that the env or the harness measured."""
    for event in events:
        if isinstance(event, Resource) and event.source != "agent":
            yield event


_USAGE: frozenset[type[Event]] = frozenset({Resource, EpisodeStart, ModelCall, Egress})
_UNLISTED = "a model was asked with, or did, what the gateway does not know: {}"


def unwatched_channel(events: Iterable[Event]) -> str:
    """Return by what an episode may have kept or told something unseen, "" for nothing.

    Axes M and S read what an agent keeps over a restart and what its seats tell each other. A
    provider's store, a hosted tool and an allowed host would do both.
    """
    for event in events:
        if isinstance(event, ModelCall) and event.unlisted:
            return _UNLISTED.format(event.unlisted)
        if isinstance(event, Egress) and not event.refused:
            return "an allowed host may keep what an agent told it"
    return ""


def unknown_usage(events: Iterable[Event]) -> str:
    """Return why what an episode used is unknown, "" if it is known."""
    declared: dict[str, float] = defaultdict(float)
    seen: dict[str, float] = defaultdict(float)
    for event in events:
        if isinstance(event, Resource):
            meters = declared if event.source == "agent" else seen
            meters[event.meter] += event.amount
        elif isinstance(event, EpisodeStart) and event.hosting in UNMEASURED:
            return f"the CPU of an agent on `{event.hosting}` hosting is not measured"
        elif isinstance(event, ModelCall) and not event.metered:
            return "a model's provider did not say what a reply used"
        elif isinstance(event, ModelCall) and event.unlisted:
            return _UNLISTED.format(event.unlisted)
        elif isinstance(event, Egress) and not event.refused:
            return "what an allowed host charges has no meter"
    seen[INPUT] += seen[CACHED]
    if any(amount > seen[meter] for meter, amount in declared.items()):
        return "an agent declared usage that no gateway saw"
    return ""
