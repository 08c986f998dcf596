"""Placements at their smallest: pools of two and three families, planted evidence, real runs."""

import functools
from importlib.resources import files
from pathlib import Path

from owa_bench.placement import place
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records import protocol
from owa_bench.records.placement import GateLine
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

# With stages of AAI-2, of which the small protocol asks for five gates beside the pool's.
STAGES = (
    QUICK.replace("level = 1", "level = 2")
    + """
[[stage]]
name = "shares"
gates = ["T", "W", "$"]
spread = true

[[stage.suite]]
name = "toolquest"
families = ["reconcile", "restock"]
tiers = [1, 2]
episodes = 6

[[stage]]
name = "days"
gates = ["kappa", "maintenance"]

[[stage.suite]]
name = "toolquest"
families = ["reconcile"]
tiers = [1]
deltas = [0.5]
episodes = 2

[stage.campaign]
days = 2
practice = 2
maintenance = 2
dynamics = ["P", "W", "$"]
"""
)


# Gates that are left out: what the small stages do not play for, and G, which asks for families.
_LEFT_OUT = (
    *(f'level = 2\ngate = "axis"\nof = "{symbol}"' for symbol in "GMRS"),
    'level = 2\ngate = "cognitive"',
    'level = 1\ngate = "axis"\nof = "G"',
)


def pool_file(folder, text=POOL):
    """Write the battery of a small pool, and return its path."""
    rules, path = Path(folder) / "small_rules.toml", Path(folder) / "small_place.toml"
    rules.write_text(_small_rules(_LEFT_OUT if "[[stage]]" in text else ()))
    path.write_text(text.replace("PROTOCOL", str(rules)))
    return str(path)


def planned(folder, text):
    """Return the draft of a placement of `agentic` over a pool of this text."""
    return draft_plan(Request(agents=("agentic",), battery=pool_file(folder, text)))


def _small_rules(left_out):
    """Return the shipped protocol, but that one kind of tool is enough: its pools have no more."""
    rules = (files("owa_bench.protocols") / "default.toml").read_text()
    three = "count = 3          # kinds of tool used"
    assert rules.count(three) == 1
    rules = rules.replace(three, "count = 1").replace('name = "default', 'name = "small')
    head, *gates = rules.split("[[gates]]")
    kept = [gate for gate in gates if not any(line in gate for line in left_out)]
    assert len(kept) == len(gates) - len(left_out)
    return "[[gates]]".join([head, *kept])


def small_rule(folder, text=POOL, **terms):
    """Return the rule of the small pool."""
    draft = _draft(text, str(folder))
    return PlacementRule(draft.plan, protocol.load(draft.protocol), **terms)


@functools.cache
def _draft(text, folder):
    return draft_plan(Request(agents=("agentic",), battery=pool_file(folder, text)))


class Played:
    """Evidence in which every gate reads one value, but where `values` says otherwise.

    `values` maps (gate, index) to a value or LOST; `upto` is how many entries were played: all
    that the first so many batches announce. `kinds` maps each kind of tool that is needed to the
    share of played entries with success in it; every entry needs all kinds.
    """

    def __init__(self, usual, values=None, answers=None, starts=None, kinds=None, stages=None):
        self._usual, self._values = usual, values or {}
        self._kinds = {"browser": 1.0} if kinds is None else kinds
        self._stages = stages or {}
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

    def stage(self, stage):
        """Return a line a gate of a stage: what `stages` plants for it, else PASS."""
        planted = {gate: self._stages.get(gate, "PASS") for gate in stage.gates}
        planted |= self._stages.get(stage.name, {})
        return tuple(stage_line(gate, stage.name, status) for gate, status in planted.items())


def stage_line(gate, stage, status):
    """Return the line of a gate that a stage decided."""
    return GateLine(
        gate=gate,
        worlds=12,
        mean=0.7,
        required=0.6,
        low=0.6,
        high=0.8,
        log_pass=0.0,
        log_below=0.0,
        bar=0.0,
        status=status,
        note="0.700",
        level=2,
        stage=stage,
    )


def small_request(folder, agent="agentic", text=QUICK):
    """Return the request of a placement over the small pool."""
    return Request(agents=(agent,), battery=pool_file(folder, text), name="small")


def options(home):
    """Return how a small placement is played: here and at once."""
    if not keys.key_names(home):
        keys.keygen(home)
    return RunOptions(home=home, in_process=True)


def small_placement(folder, agent="agentic", text=QUICK, **limits):
    """Play a small placement, and return its folder, judgement and looks as they came."""
    looks = []
    request = small_request(folder, agent, text)
    out = Path(folder) / "run"
    made = place.place(
        request, out, options(Path(folder) / "home"), PlacementLimits(**limits), looks.append
    )
    return out, made, looks
