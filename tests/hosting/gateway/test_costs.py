"""What each form of usage costs, in USD by hand under the default price card.

A million tokens cost 3 USD read, 0.30 read from the provider's cache, 15 written.
"""

import json
from importlib import resources

import httpx
import pytest
from starlette.responses import Response

from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.session import ModelRequest
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.records import price_card
from owa_bench.records.events import EpisodeStart, ModelCall, Resource
from owa_bench.records.plan import Budget
from owa_bench.reports import statement
from owa_bench.runs.plan.budget import totals
from owa_bench.runs.store import files, keys
from tests.builders.stub_server import completion, serving
from tests.field.server import as_stream

pytestmark = pytest.mark.part(2)

CARD = price_card.load((resources.files("owa_bench.protocols") / "price_card.toml").read_bytes())
PLAIN = {"prompt_tokens": 1000, "completion_tokens": 100}
CACHED = {**PLAIN, "prompt_tokens_details": {"cached_tokens": 800}}
# Usage, and its micro-USD: 3 * read + .3 * cached + 15 * written; None: unknown.
FORMS = {
    "plain": (PLAIN, 3000 + 1500),
    "floats": ({"prompt_tokens": 1000.0, "completion_tokens": 100.0}, 3000 + 1500),
    "texts": ({"prompt_tokens": "1000", "completion_tokens": "100"}, 3000 + 1500),
    "cached": (CACHED, 600 + 240 + 1500),
    "cached, as DeepSeek": ({**PLAIN, "prompt_cache_hit_tokens": 800}, 600 + 240 + 1500),
    "cached, as Anthropic": (
        {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 100},
        600 + 240 + 1500,
    ),
    "reasoning in the completion": (
        {**PLAIN, "completion_tokens_details": {"reasoning_tokens": 60}},
        3000 + 1500,
    ),
    "reasoning beside it, by the total": ({**PLAIN, "total_tokens": 1500}, 3000 + 7500),
    "reasoning beside it, by the details": (
        {**PLAIN, "completion_tokens_details": {"reasoning_tokens": 400}},
        3000 + 7500,
    ),
    "no output": ({"prompt_tokens": 1000, "completion_tokens": None}, 3000),
    "missing": (None, None),
    "negative": ({"prompt_tokens": -5, "completion_tokens": 100}, None),
    "zeros": ({"prompt_tokens": 0, "completion_tokens": 0}, None),
    "not a number": ({"prompt_tokens": float("nan"), "completion_tokens": 1}, None),
}


class Sink:
    """Keeps nothing."""

    def blob(self, data):
        return "0" * 64


def events_of(reply, *, stream=False):
    """Return the events of one request to a server that answers so."""
    with serving(lambda _: reply) as url:
        provider = ModelProvider(url=url, timeout_s=20)
        with ModelGateway(provider, frozenset()) as gateway:
            session = gateway.open()
            headers = {"authorization": f"Bearer {session.token}"}
            address = f"http://127.0.0.1:{gateway.port}/v1/chat/completions"
            body = {"model": "m", "messages": [], "stream": stream}
            sent = httpx.post(address, json=body, headers=headers, timeout=20)
            assert sent.is_success
            (record,) = session.close()
    assert isinstance(record, ModelRequest)
    return [*record.events(1, "", Sink())]


def usd_micro(events):
    return price_card.episode_cost(CARD, events)["agent"]


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_reply(form):
    usage, cost = FORMS[form]
    body = json.dumps({**completion(("finish", {})), "usage": usage}).encode()
    events = events_of(Response(body, media_type="application/json"))
    assert usd_micro(events) == cost
    spent = totals(events, CARD).get("usd", 0.0)  # what --budget usd counts
    assert spent == pytest.approx((cost or 0) / 1e6)


@pytest.mark.parametrize("form", ["plain", "cached", "missing"])
def test_a_stream(form):
    usage, cost = FORMS[form]
    whole = {"id": "x", "created": 1, "model": "m", **completion(("finish", {}))}
    assert usd_micro(events_of(as_stream(whole, usage=usage), stream=True)) == cost


def test_a_card_without_a_price_for_cached_input_charges_input():
    prices = {n: p for n, p in CARD.micro_usd_per_million.items() if n != price_card.CACHED}
    card = price_card.PriceCard(
        schema=CARD.schema, name="old", currency="USD", date=CARD.date, micro_usd_per_million=prices
    )
    assert card.cost("tokens_cached", 1000) == card.cost("tokens_in", 1000) == 3000


def test_a_ceiling_on_input_counts_what_the_provider_had_cached():
    cached = Resource(step=1, source="harness", meter="tokens_cached", amount=800.0)
    assert totals([cached])["tokens_in"] == 800.0


def test_what_an_agent_declares_is_compared_with_both_kinds_of_input():
    declared = Resource(step=1, source="agent", meter="tokens_in", amount=1000.0)
    seen = [
        Resource(step=1, source="harness", meter="tokens_in", amount=200.0),
        Resource(step=1, source="harness", meter="tokens_cached", amount=800.0),
    ]
    assert price_card.unknown_usage([declared, *seen]) == ""
    assert "no gateway saw" in price_card.unknown_usage([declared, seen[1]])


@pytest.mark.part(2)
def test_axis_and_budget_follow_a_run(played, small, run_options):
    reply = {**completion(("note", {"text": "on"})), "usage": CACHED}
    with serving(lambda _: reply) as url:
        request = small(
            "odd_agents:AsksModelForever",
            sandbox="none",
            budget=Budget(run_meters=(("usd", 0.01),)),
            interventions=(0,),
        )
        reach = GatewayOptions(model_url=url)
        layout = played(request, in_process=False, gateway=reach)
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    assert (trace.end.outcome, trace.end.reason) == ("truncated", "budget:usd")
    calls = [*trace.of(ModelCall)]
    assert {(c.tokens_in, c.tokens_cached, c.tokens_out) for c in calls} == {(1000, 800, 100)}
    # 2,340 micro-USD a call: the fifth takes the run beyond 10,000.
    assert len(calls) == 5
    key = keys.load(run_options.home, run_options.key)
    (verdict,) = statement.write(layout.root, key).verdicts
    own = [e for e in trace.events if not isinstance(e, EpisodeStart)]
    others = [e for e in own if not getattr(e, "meter", "").startswith("tokens")]
    rest = price_card.episode_cost(CARD, others)["agent"]
    assert verdict.cost_micro_usd["agent"] == 5 * 2340 + rest
