"""A battery of easy tasks and a protocol whose gates ask for nothing give no level."""

import json
from importlib.resources import files

import pytest
from msgspec.structs import replace

from benchmarks import battery_digests
from owa_bench.canonical import sha256
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import PlacementTerms
from owa_bench.records.plan import NO_TERMS, Plan, arm_terms
from owa_bench.reports.read.terms import own_terms
from owa_bench.runs.plan.draws import battery_names, load_battery
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, draft_plan
from tests.builders.episodes import PROTOCOL_BYTES

pytestmark = pytest.mark.part(2)

BATTERY = """\
name = "{name}"
protocol = "{protocol}"
underpowered = true

[[suite]]
name = "toolquest"
families = ["restock"]
tiers = [1]
episodes = 1
interventions = [0, "protocol"]
"""


def reported(owa, place, name, protocol):
    (place / "mine.toml").write_text(BATTERY.format(name=name, protocol=protocol))
    flags = "--battery mine.toml --agent noop --sandbox none --out x"
    assert owa(f"run {flags}").code == 0
    said = owa("report x --json")
    assert said.code == 0, said.err
    [verdict] = json.loads(said.out)["verdicts"]
    return verdict


@pytest.mark.parametrize("name", ["mine", "toolquest"])
def test_a_protocol_and_a_battery_of_ones_own_give_no_level(owa, place, name):
    text = PROTOCOL_BYTES.decode().replace('name = "default', 'name = "mine', 1)
    (place / "protocol.toml").write_text(text)
    verdict = reported(owa, place, name, place / "protocol.toml")
    assert verdict["level"] is None
    start = f"not placed (own terms: protocol and battery {name}); by them "
    assert verdict["level_text"].startswith(start)
    assert owa("verify x").code == 0
    assert owa("recompute x").code == 0


def test_a_battery_under_the_name_of_a_shipped_one_is_told_by_its_digest(owa, place):
    """The attack: the package's protocol, and easy tasks called `toolquest`."""
    verdict = reported(owa, place, "toolquest", "default")
    assert verdict["level_text"].startswith("not placed (own terms: battery toolquest)")
    plan = read_plan(RunLayout(place / "x"))
    assert own_terms(plan) == "battery toolquest"


def test_the_packages_terms_are_nobodys_own(owa, place):
    assert owa("run --battery demo --agent noop --out x --plan-only").code == 0
    assert own_terms(read_plan(RunLayout(place / "x"))) == ""


def test_easy_tasks_under_the_digest_of_a_shipped_battery_give_no_level(owa, place):
    """The attack: a patched program writes the digest of the package's battery."""
    (place / "mine.toml").write_text(BATTERY.format(name="demo", protocol="default"))
    flags = "--battery mine.toml --agent noop --out x --plan-only"
    assert owa(f"run {flags}").code == 0
    plan = read_plan(RunLayout(place / "x"))
    shipped = sha256((files("owa_bench.batteries") / "demo.toml").read_bytes())
    words = own_terms(replace(plan, battery_digest=shipped))
    assert words.startswith("what is asked under the name of battery demo: arm noop")


@pytest.mark.parametrize(
    "flags",
    [
        "--steps 400",
        "--act-seconds 86400",
        "--budget api_calls=100000",
        "--run-budget tokens_in=1000000",
        "--price-card cheap.toml",
    ],
)
def test_ceilings_deadlines_and_prices_are_terms(owa, place, flags):
    """The attack: a shipped battery, played with more time, steps or cheaper calls."""
    card = (files("owa_bench.protocols") / "price_card.toml").read_text()
    (place / "cheap.toml").write_text(card.replace("100_000_000", "1"))
    run = f"run --battery demo --agent noop --out x --plan-only {flags}"
    assert owa(run).code == 0
    words = own_terms(read_plan(RunLayout(place / "x")))
    assert "under other terms (budgets, deadlines, prices" in words


def test_worlds_of_another_run_are_terms(owa, place):
    assert owa("run --battery demo --agent noop --out x --plan-only").code == 0
    again = "run --battery demo --agent noop --out y --plan-only --worlds-of x"
    assert owa(again).code == 0
    assert "worlds of another run" in own_terms(read_plan(RunLayout(place / "y")))


def test_each_field_of_a_plan_is_a_term_or_named_as_none(campaign):
    """A field that is added later is a term by default."""
    [arm, *_] = campaign.arms
    asked = arm_terms(campaign, arm)
    terms = PlacementTerms(level=1, rule="owa", rule_digest="", depth=4, kappa_family="restock")
    for field in set(Plan.__struct_fields__) - NO_TERMS:
        changed = replace(campaign, **{field: terms if field == "placement" else "something else"})
        assert arm_terms(changed, arm) != asked, field
    for field in NO_TERMS - {"suites", "arms", "entries"}:
        changed = replace(campaign, **{field: "something else"})
        assert arm_terms(changed, arm) == asked, field


@pytest.fixture
def campaign():
    """The plan of a battery with days, by two agents."""
    asked = Request(agents=("noop", "agentic"), battery="full_small")
    return draft_plan(asked).plan


def test_two_agents_of_a_campaign_are_asked_for_the_packages_entries(campaign):
    assert own_terms(campaign) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"delta": 0.0},
        {"interventions": None},
        {"family": "sla_report"},
        {"tools_off": ("search",)},
        {"lane": None},
        {"version": 1},
    ],
)
def test_no_field_of_an_entry_can_be_made_easier(campaign, change):
    last = max(
        (e for e in campaign.entries if e.lane == "agentic" and e.delta == 1.0),
        key=lambda entry: entry.index,
    )
    entries = list(campaign.entries)
    entries[last.index] = replace(last, **change)
    assert "arm agentic" in own_terms(replace(campaign, entries=tuple(entries)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: {"entries": p.entries[:-1]}, "arm agentic"),
        (lambda p: {"entries": p.entries[::-1]}, "arm noop"),
        (lambda p: {"dynamics": ("A",)}, "arm noop"),
        (lambda p: {"help_share": 1.0}, "arm noop"),
        (lambda p: {"calendar": "daily:0.01"}, "arm noop"),
        (lambda p: {"underpowered": False}, "arm noop"),
        (lambda p: {"suites": p.suites[1:]}, "arm noop"),
        (lambda p: {"arms": tuple(a for a in p.arms if not a.frozen)}, "has no frozen control"),
        (lambda p: {"arms": tuple(a for a in p.arms if not a.baseline)}, "no baseline"),
    ],
)
def test_no_term_of_a_plan_can_be_made_easier(campaign, change, words):
    assert words in own_terms(replace(campaign, **change(campaign)))


def test_the_digests_that_ship_are_of_the_batteries_that_ship():
    written = json.loads(battery_digests.FILE.read_text())
    levels = [n for n in battery_names() if load_battery(n).gives_level]
    assert sorted(written) == sorted(levels)
    for name in levels:
        if name != "full":  # 238,000 entries: the fast ones alone
            assert written[name] == battery_digests.digests(name), name


@pytest.mark.slow
def test_the_digests_of_full_are_of_full():
    written = json.loads(battery_digests.FILE.read_text())
    assert written["full"] == battery_digests.digests("full")
