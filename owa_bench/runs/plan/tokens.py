"""Tokens and price of a chat agent's episodes: an estimate from the suites' cards.

The shipped chat agent resends the tools, the brief and the conversation at each step. What the
answer key was shown and wrote is measured (`EpisodeWork`); a chat model takes more steps, thinks
before it calls, and each provider has a tokenizer of its own: these three are set here.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from owa_bench import discovery
from owa_bench.interfaces import SuiteCard
from owa_bench.records.plan import PlanEntry
from owa_bench.records.price_card import CACHED, INPUT, OUTPUT, PriceCard

CHARACTERS = 4.0  # a token [D]: texts of these suites have 3 to 5
DETOURS = 1.5  # [D] steps of a chat model for each of the answer key's
THOUGHT = 100.0  # [D] tokens that it writes before a call


class EpisodeTokens(NamedTuple):
    """Tokens of an episode: read in all, of these from a cache at best, written; steps."""

    input: float
    cached: float
    output: float
    steps: float


def episode_tokens(suite: str, tier: int) -> EpisodeTokens | None:
    """Return what an episode takes a chat agent, by the suite's card.

    Formula:
        n = DETOURS steps / c actions in each of c conversations
        head = (brief + tools) / CHARACTERS
        turn = (shown + typed) / (steps CHARACTERS) + THOUGHT
        input = c (n head + turn n (n - 1) / 2), fresh = c (head + turn (n - 1))
        cached = input - fresh, output = c n (typed / (steps CHARACTERS) + THOUGHT)
    Args:
        suite: Its name.
        tier: One of its tiers.
    Returns: The tokens, None where the card does not say.
    """
    card: SuiteCard = discovery.get("suites", suite).card
    work = card.work.get(tier)
    if work is None:
        return None
    count = work.conversations
    actions = max(DETOURS * work.steps / count, 1.0)
    head = (work.brief + work.tools) / CHARACTERS
    call = work.typed / work.steps / CHARACTERS + THOUGHT
    turn = work.shown / work.steps / CHARACTERS + call
    whole = count * (actions * head + turn * actions * (actions - 1) / 2)
    fresh = count * (head + turn * (actions - 1))
    return EpisodeTokens(whole, max(whole - fresh, 0.0), count * actions * call, count * actions)


class TokenUse(NamedTuple):
    """Episodes of a suite and tier, the tokens of one, and what all cost a chat agent.

    `cached_micro_usd` is with the provider's cache, `plain_micro_usd` without; None without a price
    or where the card does not say.
    """

    suite: str
    tier: int
    episodes: int
    each: EpisodeTokens | None
    cached_micro_usd: int | None
    plain_micro_usd: int | None


def token_use(entries: Iterable[PlanEntry], prices: PriceCard) -> tuple[TokenUse, ...]:
    """Return what entries would use if their agents were chat models, by suite and tier.

    Args:
        entries: Of a plan.
        prices: The price card.
    """
    counts = Counter((entry.suite, entry.tier) for entry in entries)
    uses = []
    for (suite, tier), episodes in sorted(counts.items()):
        each = episode_tokens(suite, tier)
        uses.append(
            TokenUse(
                suite,
                tier,
                episodes,
                each,
                _cost(prices, each, episodes, each.cached if each else 0.0),
                _cost(prices, each, episodes, 0.0),
            )
        )
    return tuple(uses)


def total(costs: Iterable[int | None]) -> int | None:
    """Return the sum of costs, None if one is unknown."""
    parts = list(costs)
    known = [cost for cost in parts if cost is not None]
    return sum(known) if len(known) == len(parts) else None


def _cost(
    prices: PriceCard, each: EpisodeTokens | None, episodes: int, cached: float
) -> int | None:
    """Return the micro-USD of episodes of which so many tokens are read from a cache."""
    if each is None:
        return None
    amounts = {INPUT: each.input - cached, CACHED: cached, OUTPUT: each.output}
    return total(
        prices.cost(meter, math.floor(amount * episodes)) for meter, amount in amounts.items()
    )
