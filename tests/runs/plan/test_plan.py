"""The plan: order, pairing, what it refuses, and what is written before episode 0."""

import dataclasses
import json

import msgspec
import pytest

from owa_bench import discovery
from owa_bench.canonical import canonical_json, document_digest, unseal
from owa_bench.errors import PlanError, RunDirectoryError, UsageError
from owa_bench.hosting.spec import load_agent
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan import plan
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.store import keys
from tests.builders.plan_terms import terms

FAMILIES = len(discovery.get("suites", "toolquest").card.families)
TERMS = terms()


def made(*agents, **draw):
    fields = {"name": "toolquest", "tiers": (1,), "deltas": (0.0,), **draw}
    drawn = Draw(**fields)
    handles = [load_agent(name) for name in agents or ("fixed", "noop")]
    return plan.plan_draws([drawn], handles, TERMS)


def test_every_arm_plays_the_same_pairs_side_by_side():
    entries = made(deltas=(0.0, 0.5), episodes=2, repeats=2).entries
    assert [entry.index for entry in entries] == list(range(len(entries)))
    assert len(entries) == FAMILIES * 2 * 2 * 2 * 2
    for first, second in zip(entries[::2], entries[1::2], strict=True):
        assert (first.arm, second.arm) == ("fixed", "noop")
        assert msgspec.structs.replace(first, index=0, arm="") == (
            msgspec.structs.replace(second, index=0, arm="")
        )


def test_pair_ids_name_suite_version_family_tier_and_number():
    entry = made(families=("restock",), tiers=(2,), episodes=8).entries[-1]
    assert entry.pair == "toolquest@3/restock/T2/0007"


def test_magnitudes_budgets_and_repeats_share_their_pair():
    entries = made("noop", deltas=(0.0, 1.0), repeats=2, interventions=(0, "unlimited"))
    of_first = [e for e in entries.entries if e.pair == entries.entries[0].pair]
    assert len(of_first) == 8
    assert {entry.interventions for entry in of_first} == {0, None}


def test_crews_share_their_pair():
    entries = made("noop", crews=("1", "4", "4:muted")).entries
    of_first = [entry for entry in entries if entry.pair == entries[0].pair]
    told = {(entry.role_cap, entry.muted) for entry in of_first}
    assert told == {(1, False), (4, False), (4, True)}
    assert made("noop").entries[0].role_cap is None


def test_base_rows_have_the_ceiling_1_in_one_half_and_the_highest_in_the_other():
    crews = ("1", "2", "4", "4:muted")
    entries = made("noop", crews=crews, repeats=2, episodes=6, deltas=(0.0, 1.0))
    base = [e for e in entries.entries if not e.control]
    tasks = {(e.pair, e.repeat, e.delta) for e in entries.entries}
    assert {(e.pair, e.repeat, e.delta) for e in base} == tasks
    assert len(base) == len(tasks)
    assert not any(e.muted for e in base)
    ceilings = {}
    for entry in base:
        ceilings.setdefault((entry.pair, entry.delta), []).append(entry.role_cap)
    assert all(sorted(pair) == [1, 4] for pair in ceilings.values())
    firsts = {tuple(pair) for pair in ceilings.values()}
    assert firsts == {(1, 4), (4, 1)}  # which repeat is drawn by the pair


def test_without_a_ceiling_of_1_the_largest_crew_is_the_base_row():
    entries = made("noop", crews=("2", "open", "2:muted")).entries
    assert {e.role_cap for e in entries if not e.control} == {None}
    assert not any(e.control for e in made("noop").entries)


def test_equal_episodes_of_two_draws_are_played_once():
    drawn = [
        Draw(name="toolquest", tiers=(1,), deltas=deltas, interventions=(0,))
        for deltas in ((0.0, 0.25), (0.25,))
    ]
    agents = [load_agent("noop")]
    assert len(plan.plan_draws(drawn, agents, TERMS).entries) == 2 * FAMILIES


def test_an_agent_given_twice_is_two_arms():
    assert [arm.name for arm in made("noop", "noop").arms] == ["noop", "noop#2"]


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        ({"name": "toolqest"}, "did you mean `toolquest`"),
        ({"families": ("reconsile",)}, "did you mean `reconcile`"),
        ({"tiers": (9,)}, "`suite.tiers` must be one of 1, 2, 3"),
        ({"deltas": (1.5,)}, r"`suite.deltas` must lie in \[0, 1\], got 1.5"),
        ({"deltas": ()}, "`suite.deltas` must list at least one value, each once"),
        ({"interventions": (1, 1)}, "`suite.interventions` must list at least one"),
        ({"interventions": (-1,)}, "`suite.interventions` must be a count"),
        ({"crews": ("0",)}, '`suite.crews` must be "open", a count of roles >= 1'),
        ({"crews": ("loud",)}, '`suite.crews` must be "open", a count of roles >= 1'),
        ({"episodes": 0}, "`suite.episodes` must be at least 1, got 0"),
        ({"weight": 0.0}, "`suite.weight` must be above 0"),
    ],
)
def test_refusals_name_field_value_and_rule(draw, words):
    with pytest.raises(PlanError, match=words):
        made(**draw)


def test_no_agent_is_refused():
    with pytest.raises(PlanError, match="`arms` must hold at least one agent"):
        plan.plan_draws([Draw(name="toolquest")], [], TERMS)


def test_a_control_policy_must_be_the_suites():
    handle = load_agent("oracle")
    origin = msgspec.structs.replace(handle.origin, target="nobody")
    stranger = dataclasses.replace(handle, origin=origin)
    with pytest.raises(PlanError, match=r"a control policy of `toolquest` \(.*oracle"):
        plan.plan_draws([Draw(name="toolquest")], [stranger], TERMS)


def test_a_changed_entry_is_found():
    good = made()
    wrong = msgspec.structs.replace(good.entries[1], arm="nobody")
    bad = msgspec.structs.replace(good, entries=(good.entries[0], wrong))
    with pytest.raises(PlanError, match="`arm` must be one of"):
        plan.check_plan(bad)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"delta": None}, "`delta` or `day` must be given"),
        ({"day": 3}, "`delta` must not stand beside `day`"),
        ({"phase": "practice"}, "`pair` must start with practice/"),
        ({"index": 7}, "`index` must be its place 0"),
        ({"suite": "other"}, "`suite` must be one of"),
        ({"family": "other"}, "`family` must be one of"),
    ],
)
def test_contradictions(changes, words):
    good = made()
    wrong = msgspec.structs.replace(good.entries[0], **changes)
    with pytest.raises(PlanError, match=words):
        plan.check_plan(msgspec.structs.replace(good, entries=(wrong,)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": Budget(steps=0)}, "`budget.steps` must be at least 1, got 0"),
        ({"calendar": "nonsense"}, "`calendar` must be nested"),
        ({"budget": Budget(steps=10**7)}, "`budget.steps` must be at most 1000000"),
        ({"budget": Budget(act_s=1e300)}, "`budget.act_s` must be at most 31622400 s"),
        ({"calendar": "nested:D9"}, "`calendar nested:D9: classes` must be one of D0"),
        ({"calendar": "single:web/id_churn"}, "operator` must be one of domain api"),
        ({"calendar": "single:api/silent_unit@1"}, "Did you mean `api/silent_units`"),
        ({"calendar": "nested^inf"}, "`calendar` must end in a finite number"),
        ({"verifier_nonce": ""}, "`verifier_nonce` must have at least 8 characters"),
    ],
)
def test_terms_that_cannot_be_played_are_refused_before_they_are_signed(changes, words):
    terms = msgspec.structs.replace(TERMS, **changes)
    with pytest.raises(UsageError, match=words):
        plan.plan_draws([Draw(name="toolquest")], [load_agent("noop")], terms)


def test_written_signed_and_read_back(tmp_path):
    layout = RunLayout(tmp_path / "run")
    key = keys.ensure(tmp_path / "home")
    good = made()
    digest = plan.write_plan(layout, good, key, protocol=b"p", price_card=b"c")
    assert plan.read_plan(layout) == good
    assert digest == document_digest(good)
    public = bytes.fromhex(keys.public_hex(key))
    signed = unseal(layout.plan_envelope.read_bytes(), public, PLAN_TYPE)
    assert signed == canonical_json(good) == layout.plan.read_bytes()
    assert (layout.protocol.read_bytes(), layout.price_card.read_bytes()) == (b"p", b"c")


def test_no_plan_is_no_run(tmp_path):
    with pytest.raises(RunDirectoryError, match="is no run directory: it holds"):
        plan.read_plan(RunLayout(tmp_path))
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="must be a plan"):
        plan.read_plan(RunLayout(tmp_path))


def test_a_plan_holds_no_path_of_this_machine(tmp_path):
    text = json.dumps(msgspec.to_builtins(made()))
    assert str(tmp_path.home()) not in text
