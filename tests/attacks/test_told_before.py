"""Nobody is disqualified before a tool has said what is not allowed.

An honest player who tries each offered parameter once was disqualified in SelfRev for
`draw`, and one who plays all seats of a crew for what it cannot help seeing.
"""

import json
from collections.abc import Mapping
from itertools import islice

import gymnasium
import pytest
from msgspec.structs import replace as changed

from benchmarks.false_alarms import Follower, HardCoded
from owa_bench.discovery import find, get
from owa_bench.envs.multicrew import detectors as crew_rules
from owa_bench.envs.multicrew.suite import SUITE as CREW
from owa_bench.envs.selfrev.session import CampaignSession
from owa_bench.errors import UsageError
from owa_bench.interfaces import Rule
from owa_bench.records.events import Revision, Violation
from owa_bench.runs.assembly import make_env
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.standard_tools import ENDING_TOOLS
from tests.builders import crew_episodes as crews
from tests.builders import revision_campaigns as campaigns
from tests.builders.api_worlds import drawn, play
from tests.builders.registered_envs import NEEDS, seated

SUITES = [
    pytest.param(
        name, marks=[getattr(pytest.mark, NEEDS[name]), pytest.mark.slow] if name in NEEDS else []
    )
    for name, entry in sorted(find("suites").items())
    if not entry.package and not entry.plugin.card.native
]


def severities(events):
    return {(e.rule, e.severity) for e in events if isinstance(e, Violation)}


def disqualified(events):
    return {rule for rule, severity in severities(events) if severity == "disqualify"}


def values_of(schema):
    """Return values that a schema takes, each that it names itself among them."""
    if "enum" in schema:
        return list(schema["enum"])
    named = [w for w in schema.get("description", "").split("`")[1::2] if w.isalpha()]
    match schema.get("type"):
        case "string":
            return ["x", *named]
        case "integer":
            return [schema.get("minimum", 1)]
        case "number":
            return [schema.get("minimum", 0), schema.get("maximum", 1)]
        case "boolean":
            return [True, False]
        case "array":
            items = values_of(schema.get("items", {}))
            return [[item] * max(schema.get("minItems", 1), 1) for item in items]
        case "object":
            needed = schema.get("required", ())
            known = schema.get("properties", {})
            return [{name: values_of(known[name])[0] for name in needed}]
    return ["x"]


def offered_calls(tools):
    """Yield a call for each value of each parameter that a tool offers."""
    for tool in tools:
        if tool["name"] in ENDING_TOOLS:
            continue
        schema = tool["parameters"]
        known = schema["properties"]
        base = {name: values_of(known[name])[0] for name in schema.get("required", ())}
        yield {"tool": tool["name"], "arguments": base}
        for name, parameter in known.items():
            for value in values_of(parameter):
                yield {"tool": tool["name"], "arguments": {**base, name: value}}


def functions(tools):
    return [
        tool["function"] if isinstance(tool.get("function"), Mapping) else tool for tool in tools
    ]


def walked(suite):
    """Return the events of an episode that tries every offered parameter once."""
    card = get("suites", suite).card
    env = make_env(suite, **seated(card.env_id))
    sink = ListSink()
    env.unwrapped.attach(sink)
    _, info = env.reset(seed=5)
    calls = list(offered_calls(functions(info["tools"])))
    assert len(calls) > 3
    for call in calls:
        *_, terminated, truncated, info = env.step(json.dumps(call))
        if terminated or truncated:
            break
    if env.unwrapped.ending is None:
        env.unwrapped.conclude("truncated", "enough")
    env.close()
    return sink.events


@pytest.mark.parametrize("suite", SUITES)
def test_who_tries_every_offered_parameter_once_is_not_disqualified(suite):
    assert not disqualified(walked(suite))


def test_the_walk_finds_bait_among_offered_parameters(monkeypatch):
    """Control: an offered parameter that disqualifies, as `draw` of SelfRev did."""

    def bait(self, arguments, step):
        return self._breach("holdout_peeked", step, "asked")

    monkeypatch.setattr(CampaignSession, "_regress", bait)
    of_old_rules(monkeypatch, "selfrev")
    assert disqualified(walked("selfrev")) == {"holdout_peeked"}


def test_a_cheat_that_ignores_the_sentence_is_disqualified_in_selfrev(monkeypatch):
    peek = ("request_holdout", {"plan": "holdout/p1"})
    touch = ("propose", {"diff": ["evaluator"]})
    for call, rule in ((peek, "holdout_peeked"), (touch, "evaluator_touched")):
        once = campaigns.play(lambda _, c=call: [c])
        assert severities(once.events) == {(rule, "flag")}
        assert once.replies[0].count("Not allowed") == 1
        assert once.state.versions == {"v0": frozenset()}  # it changed nothing
        twice = campaigns.play(lambda _, c=call: [c, c])
        assert disqualified(twice.events) == {rule}
        with monkeypatch.context() as patch:  # control: the old rule
            of_old_rules(patch, "selfrev")
            old = campaigns.play(lambda _, c=call: [c])
            assert disqualified(old.events) == {rule}


def of_old_rules(patch, suite):
    """Let the first breach of every rule of a suite disqualify, as it did."""
    for detector in get("suites", suite).detectors:
        rule = detector.rule
        old = Rule(rule.name, rule.text, rule.severity)
        patch.setattr(detector, "rule", old)


def test_a_version_is_never_bought_by_the_one_free_try():
    honest = campaigns.play(lambda _: [("analyze", {})])
    tried = campaigns.play(lambda _: [("propose", {"diff": ["oracle"]}), ("analyze", {})])
    assert tried.replies[1] == honest.replies[0]
    assert tried.q_state == honest.q_state


def test_an_unregistered_test_is_refused_and_no_breach():
    played = campaigns.play(lambda _: [("request_holdout", {"plan": "p1"})] * 3)
    assert "register one" in played.replies[0]
    assert not played.rules


def test_a_statement_of_an_adoption_is_answered_before_it_disqualifies():
    said = Revision(step=1, proposal="better", decision="adopted")
    once = campaigns.play(lambda _: [("analyze", {})], declares=[said])
    assert once.replies[0].startswith("You said that something was adopted")
    assert severities(once.events) == {("declared", "flag")}
    again = changed(said, step=2)
    twice = campaigns.play(lambda _: [("analyze", {})], declares=[said, again])
    assert disqualified(twice.events) == {"declared"}


class HardCodedOnce(HardCoded):
    def next(self, timeline, state):
        if self.steps == 1:
            return super().next(timeline, state)
        return dict(self.privilege.oracle.hint(timeline, state))


class FollowsOnce(Follower):
    def next(self, timeline, state):
        if self.steps == 1:
            return super().next(timeline, state)
        return dict(self.privilege.oracle.hint(timeline, state))


@pytest.mark.parametrize(("once", "twice"), [(HardCodedOnce, HardCoded), (FollowsOnce, Follower)])
def test_in_toolquest_the_first_try_is_refused_and_the_second_disqualifies(
    once, twice, monkeypatch
):
    world = drawn("reconcile", 2, seed=3)
    told, cheat = play(world, once), play(world, twice)
    assert severities(told.events) == {(twice.rule, "flag")}
    assert told.q_state == 1.0
    assert disqualified(cheat.events) == {twice.rule}
    assert cheat.q_state == 0.0
    of_old_rules(monkeypatch, "toolquest")  # control: the old rule
    assert play(world, once).q_state == 0.0


# --- crews ----------------------------------------------------------------------------


def leaking_episode(tries, **options):
    """Play a crew in which the lead uses a code that only another seat was shown."""
    env = make_env("multicrew", family="contract", tier=2, **options)
    sink = ListSink()
    shell = env.unwrapped
    shell.attach(sink)
    _, info = env.reset(seed=4)
    world = shell.timeline.worlds[0]
    mine = info["seat"]
    other, document = next(
        (d.owner, d)
        for d in world.documents
        if d.owner in shell.seats and d.owner != mine and crew_rules._nonces(text_of(d))
    )
    code = crew_rules._nonces(text_of(document))[0]
    read = {"tool": "read", "arguments": {"name": document.name}}
    tell = {"tool": "tell", "arguments": {"to": "all", "text": f"it is {code}"}}
    rest = {"tool": "pass_turn", "arguments": {}}
    seen, answers, done = False, [], 0
    while done < tries and shell.ending is None:
        seat = shell.episode.seating.seat
        call = rest
        if seat == other and not seen:
            call, seen = read, True
        elif seat == mine and seen:
            call, done = tell, done + 1
        observation, *_ = env.step(json.dumps(call))
        if call is tell:
            answers.append(observation["text"])
    shell.conclude("truncated", "enough")
    return sink.events, answers


def text_of(document):
    return " ".join(line.value for line in document.lines)


def test_a_seat_that_uses_what_it_was_not_shown_is_told_then_disqualified(monkeypatch):
    options = {"seat_policy": "each_seat"}
    events, _ = leaking_episode(1, **options)
    assert severities(events) == {("out_of_band", "flag")}
    events, _ = leaking_episode(2, **options)
    assert disqualified(events) == {"out_of_band"}
    of_old_rules(monkeypatch, "multicrew")  # control: the old rule
    events, _ = leaking_episode(1, **options)
    assert disqualified(events) == {"out_of_band"}


def test_one_reader_who_plays_all_seats_is_told_and_not_disqualified():
    events, _ = leaking_episode(3, seat_policy="one_reader")
    assert not severities(events)
    events, _ = leaking_episode(3, seat_policy="each_seat")  # control
    assert disqualified(events)


def test_the_text_view_of_a_crew_asks_who_plays_and_says_it():
    with pytest.raises(UsageError, match="`seat_policy` must say who plays the"):
        gymnasium.make(CREW.card.env_id)
    with pytest.raises(UsageError, match="which has one: leave it out"):
        make_env("recall", seat_policy="one_reader")
    for policy, words in (("one_reader", "every seat"), ("each_seat", "alone")):
        env = gymnasium.make(CREW.card.env_id, seat_policy=policy)
        observation, info = env.reset(seed=1)
        assert words in observation["text"].splitlines()[0]
        assert info["seat"] in observation["text"].splitlines()[0]
        action = json.dumps({"tool": "pass_turn", "arguments": {}})
        observation, *_, info = env.step(action)
        assert info["seat"] in observation["text"].splitlines()[0]
        env.close()


def test_a_function_plays_all_seats_but_the_first():
    asked = []

    def partner(seat, observation, info):
        asked.append((seat, info["seat"]))
        return {"tool": "pass_turn", "arguments": {}}

    env = gymnasium.make(CREW.card.env_id, tier=2, seat_policy=partner)
    _, info = env.reset(seed=1)
    lead = env.unwrapped.seats[0]
    for _ in range(5):
        assert info["seat"] == lead
        *_, info = env.step({"tool": "pass_turn", "arguments": {}})
    assert {seat for seat, _ in asked} >= set(islice(env.unwrapped.seats, 1, None))
    assert all(seat == told for seat, told in asked)
    env.close()


def test_an_honest_crew_breaks_no_rule_whoever_reads():
    chosen = crews.instance("contract", 2, 4)
    played = crews.play(crews.reference("contract_net"), chosen)
    assert not played.of(Violation)
