"""Placements at their smallest: pools of two and three families, planted evidence, real runs."""

import functools
from importlib.resources import files
from pathlib import Path

from owa_bench.placement import place
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records import protocol
from owa_bench.runs.plan.request import Request, RunOptions, draft_plan
from owa_bench.runs.store import keys
from owa_bench.scoring.placement.kinds import KindUse
from owa_bench.scoring.placement.rule import PlacementRule
from owa_bench.scoring.placement.worlds import LOST, WorldValue

POOL = """
name = "small_place"
protocol = "PROTOCOL"

[placement]
level = 1
kappa_family = "toolquest/reconcile"

[[suite]]
name = "toolquest"
families = ["reconcile", "restock"]
tiers = [1, 2]
episodes = 20

[[suite]]
name = "recall"
families = ["literacy"]
tiers = [1]
episodes = 20
"""


# What agents play in the harness' own process.
QUICK = POOL[: POOL.index('[[suite]]\nname = "recall"')]


def pool_file(folder, text=POOL):
    """Write the battery of a small pool, and return its path."""
    rules, path = Path(folder) / "small_rules.toml", Path(folder) / "small_place.toml"
    rules.write_text(_small_rules())
    path.write_text(text.replace("PROTOCOL", str(rules)))
    return str(path)


def _small_rules():
    """Return the shipped protocol, but that one kind of tool is enough: its pools have no more."""
    rules = (files("owa_bench.protocols") / "default.toml").read_text()
    three = "count = 3          # kinds of tool used"
    assert rules.count(three) == 1
    return rules.replace(three, "count = 1").replace('name = "default', 'name = "small')


def small_rule(folder, **terms):
    """Return the rule of the small pool."""
    draft = _draft(POOL, str(folder))
    return PlacementRule(draft.plan, protocol.load(draft.protocol), **terms)


@functools.cache
def _draft(text, folder):
    return draft_plan(Request(agents=("agentic",), battery=pool_file(folder)))


class Played:
    """Evidence in which every gate reads one value, but where `values` says otherwise.

    `values` maps (gate, index) to a value or LOST; `upto` is how many entries were played: all
    that the first so many batches announce. `kinds` maps each kind of tool that is needed to the
    share of played entries with success in it; every entry needs all kinds.
    """

    def __init__(self, usual, values=None, answers=None, starts=None, kinds=None):
        self._usual, self._values = usual, values or {}
        self._kinds = {"browser": 1.0} if kinds is None else kinds
        self.answers = frozenset(range(10_000)) if answers is None else frozenset(answers)
        self.starts = self.answers if starts is None else frozenset(starts)

    def value(self, gate, index):
        """Return what a gate reads of an episode."""
        if index not in self.answers:
            return LOST
        value = self._values.get((gate, index), self._usual)
        value = value.get(gate, 0.0) if isinstance(value, dict) else value
        return value if isinstance(value, WorldValue) else WorldValue(value, value)

    def kinds(self, indices):
        """Return what is planted of each kind of tool."""
        n = len(indices)
        return {k: KindUse(n, int(n * share), "a suite") for k, share in self._kinds.items() if n}


def small_request(folder, agent="agentic"):
    """Return the request of a placement over the small pool."""
    return Request(agents=(agent,), battery=pool_file(folder, QUICK), name="small")


def options(home):
    """Return how a small placement is played: here and at once."""
    if not keys.key_names(home):
        keys.keygen(home)
    return RunOptions(home=home, in_process=True)


def small_placement(folder, agent="agentic", **limits):
    """Play a small placement, and return its folder, judgement and looks as they came."""
    looks = []
    request = small_request(folder, agent)
    out = Path(folder) / "run"
    made = place.place(
        request, out, options(Path(folder) / "home"), PlacementLimits(**limits), looks.append
    )
    return out, made, looks
