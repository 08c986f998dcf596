"""Tokens and prices of a chat agent, by hand."""

import dataclasses

import pytest

from owa_bench import discovery
from owa_bench.interfaces import EpisodeWork
from owa_bench.records import price_card
from owa_bench.runs.plan import tokens
from owa_bench.runs.plan.request import draft_plan, estimate
from owa_bench.runs.plan.tokens import episode_tokens, token_use, total

# 4 steps of the answer key in one conversation, 6 of a chat model; 4 characters a token.
WORK = EpisodeWork(
    steps=4,
    brief=400,
    tools=1200,
    shown=1600,
    typed=800,
    conversations=1,
    read=0,
    decisions=0,
    written=0,
)
PRICES = price_card.PriceCard(
    schema="owa-price-card-1",
    name="t",
    currency="USD",
    date="2026-01-01",
    micro_usd_per_million={
        "tokens_in": 4_000_000,
        "tokens_cached": 1_000_000,
        "tokens_out": 10_000_000,
    },
)


@pytest.fixture
def stated(monkeypatch):
    """Return a function that gives ToolQuest's card another `work` at tier 1."""

    def state(work):
        suite = discovery.get("suites", "toolquest")
        card = dataclasses.replace(suite.card, work={1: work} if work else {})
        monkeypatch.setattr(type(suite), "card", card)

    return state


def test_one_conversation_by_hand(stated):
    """Head 400 tokens; a turn shows 100 and writes 50 + 100 of thought: 250.

    Read: 6 x 400 + 250 (0 + 1 + .. + 5) = 6150, new of it 400 + 5 x 250 = 1650.
    """
    assert (tokens.CHARACTERS, tokens.DETOURS, tokens.THOUGHT) == (4.0, 1.5, 100.0)
    stated(WORK)
    assert episode_tokens("toolquest", 1) == (6150.0, 4500.0, 900.0, 6.0)


def test_a_conversation_that_begins_anew_resends_less(stated):
    """Two of 3 actions: 2 (3 x 400 + 250 x 3) = 3900, new of it 2 (400 + 500) = 1800."""
    stated(WORK._replace(conversations=2))
    assert episode_tokens("toolquest", 1) == (3900.0, 2100.0, 900.0, 6.0)


def test_a_card_that_says_nothing_gives_nothing(stated):
    stated(None)
    assert episode_tokens("toolquest", 1) is None


def test_two_prices_and_no_supervisor_in_them(stated, small, run_options):
    """Two episodes: (1650 x 4 + 4500 x 1 + 900 x 10) x 2 and (6150 x 4 + 9000) x 2 micro-USD."""
    stated(WORK)
    draft = draft_plan(small("noop", interventions=(0, 3)))
    (use,) = token_use(draft.plan.entries, PRICES)
    assert (use.suite, use.tier, use.episodes) == ("toolquest", 1, 2)
    assert (use.cached_micro_usd, use.plain_micro_usd) == (2 * 20_100, 2 * 33_600)
    free = estimate(draft_plan(small("noop", interventions=(0, 1))), run_options)
    helped = estimate(draft, run_options)
    assert [one.cached_micro_usd for one in free.tokens] == [
        one.cached_micro_usd for one in helped.tokens
    ]
    assert helped.supervisor_min > free.supervisor_min > 0


def test_one_unknown_cost_leaves_the_sum_unknown():
    assert total([1, None]) is None
    assert total([1, 2]) == 3


def test_every_suite_with_tools_says_what_its_episodes_are():
    cards = [discovery.get("suites", name).card for name in discovery.find("suites")]
    silent = [
        (card.name, tier)
        for card in cards
        for tier in card.tiers
        if not card.native and episode_tokens(card.name, tier) is None
    ]
    assert silent == []
