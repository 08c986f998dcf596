"""Bounds of documents: what a run writes lies within them."""

from owa_bench.canonical import canonical_json
from owa_bench.records.bounds import LARGEST_LIST, MOST_VALUES
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, draft_plan

EPISODES = 100_000


def test_the_plan_of_a_hundred_thousand_episodes_may_be_read():
    """By what an entry more takes: a plan of that length takes a minute to make."""
    few, many = (_weight(episodes) for episodes in (1, 11))
    entries = many[0] - few[0]
    for place, bound in ((1, MOST_VALUES), (2, LARGEST_LIST)):
        each = (many[place] - few[place]) / entries
        assert few[place] + each * EPISODES < bound


def _weight(episodes: int) -> tuple[int, int, int]:
    """Return the entries of a plan, and the values and bytes of its file."""
    draws = (Draw(name="toolquest", tiers=(1,), episodes=episodes),)
    plan = draft_plan(Request(agents=("fixed",), draws=draws)).plan
    text = canonical_json(plan)
    return len(plan.entries), sum(map(text.count, (b",", b"[", b"{"))), len(text)
