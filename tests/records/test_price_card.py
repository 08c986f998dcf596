"""Prices: whole micro-USD, half to even, unknown is not free."""

import pytest

from owa_bench.errors import ProtocolError
from owa_bench.records.events import Egress, EpisodeStart, ModelCall, Resource
from owa_bench.records.instance import Instance
from owa_bench.records.price_card import episode_cost, load, unknown_usage
from tests.builders.episodes import PRICE_BYTES, PRICES

CARD = b"""
schema = "owa-price-card-1"
name = "x"
currency = "USD"
date = "2026-01-01"
[micro_usd_per_million]
api_calls = 500_000
tokens_in = 3
"""


def spend(meter: str, amount: float, stream: str = "agent", source: str = "env") -> Resource:
    return Resource(step=1, meter=meter, amount=amount, stream=stream, source=source)


def asked(**more: object) -> ModelCall:
    return ModelCall(step=1, source="harness", model="m", prompt="", reply="", status=200, **more)


def started(schema: str) -> EpisodeStart:
    return EpisodeStart(
        schema=schema,
        index=0,
        attempt=0,
        arm="a",
        pair="p",
        repeat=0,
        env_id="owa_bench/Toy-v1",
        instance=Instance(suite="toy", version=1, family="f", tier=1, seed=7),
        delta=0.0,
        realised=0.0,
        world="0" * 64,
        agent="noop",
        fingerprint="f" * 64,
        interventions=None,
        horizon=3,
        depth=2,
        theta=0.95,
    )


@pytest.mark.parametrize(("amount", "cost"), [(0, 0), (1, 0), (2, 1), (3, 2), (5, 2), (7, 4)])
def test_half_a_micro_dollar_goes_to_the_even_one(amount: int, cost: int) -> None:
    assert load(CARD).cost("api_calls", amount) == cost


def test_a_meter_is_priced_once_an_episode() -> None:
    events = [spend("api_calls", 1)] * 4
    assert episode_cost(load(CARD), events)["agent"] == 2


def test_the_meters_of_a_stream_are_added() -> None:
    events = [spend("api_calls", 4), spend("tokens_in", 10**6), spend("api_calls", 2, "human")]
    assert episode_cost(load(CARD), events) == {"agent": 5, "human": 1, "evaluation": 0}


def test_a_meter_without_a_price_is_unknown_in_its_stream_only() -> None:
    events = [spend("gpu_s", 2.0), spend("api_calls", 4, "human")]
    assert episode_cost(load(CARD), events) == {"agent": None, "human": 2, "evaluation": 0}


def test_nothing_used_costs_nothing_under_any_card() -> None:
    assert episode_cost(load(CARD), [spend("gpu_s", 0.0)])["agent"] == 0


def test_a_supervisors_hour_costs_sixty_dollars() -> None:
    assert PRICES.cost("supervisor_min", 60) == 60_000_000


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b"api_calls", b"phone_calls", "micro_usd_per_million"),
        (b"500_000", b"-1", "micro_usd_per_million.api_calls"),
        (b"500_000", b"0.5", "micro_usd_per_million.api_calls"),
        (b"2026-01-01", b"yesterday", "date"),
        (b'"USD"', b'"EUR"', "currency"),
    ],
)
def test_a_bad_field_is_named(old: bytes, new: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load(CARD.replace(old, new, 1))
    assert caught.value.field.startswith(field)


def test_the_default_card_prices_every_meter() -> None:
    assert load(PRICE_BYTES) == PRICES
    assert all(PRICES.price(m) is not None for m in ("api_calls", "bytes", "cpu_s"))


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([spend("tokens_in", 5.0, source="agent")], "no gateway saw"),
        ([spend("cpu_s", 5.0, source="agent")], "no gateway saw"),
        ([Egress(step=1, host="a:1")], "has no meter"),
        ([Egress(step=1, host="a:1", refused=True)], ""),
        ([asked(metered=False)], "did not say"),
        ([asked()], ""),
        ([spend("tokens_in", 5.0, source="agent"), spend("tokens_in", 5.0, source="harness")], ""),
    ],
)
def test_usage_that_is_unknown_under_any_card(events, reason) -> None:
    events = [started("owa-trace-2"), *events]
    assert reason in unknown_usage(events)
    cost = episode_cost(load(CARD), events)
    assert (cost["agent"] is None) == bool(reason)


def test_what_an_agent_declares_is_not_priced() -> None:
    spent = [spend("tokens_in", 5.0e9, source=who) for who in ("agent", "harness")]
    once = episode_cost(load(CARD), spent[1:])["agent"]
    assert once
    events = [started("owa-trace-2"), *spent]
    assert unknown_usage(events) == ""
    assert episode_cost(load(CARD), events)["agent"] == once
