"""Seats, sittings, offers and terms in the shell, without agents or processes."""

import json
from dataclasses import replace

import msgspec
import pytest

from owa_bench import contract_checks
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order
from owa_bench.errors import CheckFailure
from owa_bench.interfaces import Setting, Terms, ToolResult
from owa_bench.records.events import (
    Action,
    Belief,
    Drift,
    Observation,
    Resolution,
    Sitting,
    ToolOffer,
)
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import ListSink
from tests.builders import toy_crew, toy_suite

RELAY = Instance(suite="relay", version=1, family="doors", tier=1, seed=3)
SKIP = call_text("skip", {})


def begun(suite, timeline, **setting):
    episode = Episode(
        suite, timeline, sink=ListSink(), terms=EpisodeTerms(), setting=Setting(**setting)
    )
    episode.text = episode.begin()
    return episode


def alone(suite, instance=RELAY):
    worlds = (suite.generate(instance),)
    return Timeline(instance=instance, starts=(0,), worlds=worlds, changes=((),), realised=0.0)


def relay(**setting):
    return begun(toy_crew.SUITE, alone(toy_crew.SUITE), **setting)


def corridor(suite=toy_suite.SUITE, **setting):
    instance = toy_suite.corridor()._instances(0)
    return begun(suite, toy_suite.still(instance), **setting)


def of(episode, kind):
    return [event for event in episode._sink.events if isinstance(event, kind)]


def shown(episode, event):
    return episode._sink.blobs[event.blob].decode()


def test_seats_act_in_turn_and_each_sees_its_own_answer():
    crew = relay()
    assert "You are the opener." in crew.text
    first = crew.step(call_text("dig", {}))
    assert "You are the scout." in first.text  # its first turn
    second = crew.step(call_text("read", {}))
    assert second.text.startswith("digit 0 is")  # what the opener's action gave
    third = crew.step(SKIP)
    assert third.text.startswith("code ")
    assert [a.role for a in of(crew, Action)] == ["opener", "scout", "opener"]


def test_each_sitting_begins_with_the_task_and_without_the_notes_of_before():
    crew = relay(role_cap=1)
    crew.step(call_text("note", {"text": "red"}))
    for _ in range(toy_crew.TURNS - 1):
        crew.step(SKIP)
    recalled = crew.step(call_text("recall", {}))
    assert "red" in recalled.text
    tomorrow = crew.step(SKIP)
    assert tomorrow.text.startswith("You are the opener.")
    assert "No note matches." in crew.step(call_text("recall", {})).text
    assert [event.number for event in of(crew, Sitting)] == [0, 1]


def test_the_session_ends_the_episode():
    crew = relay(role_cap=1)
    for _ in range(toy_crew.DAYS * toy_crew.TURNS):
        last = crew.step(SKIP)
    assert last.terminated
    assert (crew.ending.outcome, crew.ending.reason) == ("finished", "the last day is over")


def test_only_the_first_seat_ends_the_episode_and_another_retires():
    crew = relay()
    crew.step(SKIP)
    crew.step(call_text("finish", {"p": 1.0}))
    assert crew.ending is None
    assert crew.seating.seat == "opener"
    crew.step(SKIP)
    assert crew.seating.seat == "opener"  # the scout has no turn any more
    assert crew.step(call_text("finish", {"p": 0.2})).terminated
    assert crew.ending.stated == 0.2


@pytest.mark.parametrize("setting", [{"role_cap": 1}, {"muted": True}, {}])
def test_the_fabric_enforces_what_nobody_is_told(setting):
    crew = relay(**setting)
    assert crew.text == relay().text
    told = crew.step(call_text("tell", {"to": "scout", "text": "hello"}))
    assert crew.last_failed == bool(setting)
    assert ("hello" in told.text) == (not setting)


def test_tools_of_another_seat_and_tools_taken_away_are_refused_by_name():
    crew = relay(tools_off=("note",))
    refused = crew.step(call_text("read", {}))
    assert "`tool` must be one of those on offer now (dig, " in refused.error
    assert "got 'read'" in refused.error
    (first, *_) = of(crew, ToolOffer)
    assert first.role == "opener"
    assert first.names[0] == "dig"
    assert "note" not in first.names


def test_every_refused_action_has_a_step_and_leaves_the_state_alone():
    episode = corridor(tools_off=("read", "ask_supervisor"))
    before = episode.session.state
    assert episode.step(call_text("read", {})).error
    assert episode.session.state is before
    assert of(episode, ToolOffer)[0].names == ("walk", "open", "wait", *STANDARD)


STANDARD = ("note", "recall", "finish", "declare_infeasible")


class Strict(toy_suite.CorridorSuite):
    """A corridor whose instances have terms of their own."""

    def terms(self, instance):
        return Terms(0.5, 2, 7, ("walk", "finish", "declare_infeasible"))


def test_terms_of_an_instance_win_over_the_card():
    episode = corridor(Strict())
    facts = episode.facts(0)
    assert (facts.theta, facts.step_limit, facts.horizon_cap) == (0.5, 2, 7)
    assert episode.step(call_text("read", {})).error
    assert episode.step(call_text("walk", {"to": "right"})).truncated


def test_a_result_under_a_limit_of_time_marks_the_episode(monkeypatch):
    limited = ToolResult(text="stopped", ok=False, timed=True)
    session = toy_suite.CorridorSession
    monkeypatch.setattr(session, "call", lambda *_, **__: limited)
    episode = corridor()
    assert not episode.timed
    episode.step(call_text("read", {}))
    assert episode.timed


def test_propositions_are_of_the_timeline_and_have_a_deadline():
    crew = relay(role_cap=1)
    crew.step(call_text("finish", {"p": 0.1, "beliefs": {"changes": 0.75}}))
    (listed, _) = of(crew, Resolution)
    assert (listed.y, listed.deadline_ms) == (False, 2 * toy_crew.DAY_MS)
    assert [(b.p, b.at_ms) for b in of(crew, Belief)] == [(0.1, 0), (0.75, 0)]


def test_a_calendar_selects_among_a_suites_own_schedule_and_keeps_their_times(monkeypatch):
    monkeypatch.setattr(calendars, "get", lambda *_: toy_crew.new_code)
    monkeypatch.setattr(order, "get", lambda *_: toy_crew.new_code)
    own = toy_crew.SUITE.schedule
    world = toy_crew.SUITE.generate(RELAY)
    events = own.possible(RELAY, world)

    def possible(**terms):
        calendar = calendars.Calendar(domain="relay", suite_schedule=own, **terms)
        return calendar.possible(RELAY, world)

    assert possible() == possible(classes=("D2",)) == events
    assert possible(classes=("D0",)) == ()
    later = [event.at_ms for event in possible(onset_ms=5)]
    assert later == [event.at_ms + 5 for event in events]
    daily = calendars.Calendar(domain="relay", suite_schedule=own, pace="day", share=0.5)
    day = msgspec.structs.replace(RELAY, drift_step=1)
    assert daily(day, world) == events[:1]


def test_observations_are_recorded_as_they_were_shown():
    crew = relay()
    texts = [crew.text, crew.step(SKIP).text, crew.step(SKIP).text]
    assert [shown(crew, event) for event in of(crew, Observation)] == texts


def test_the_contract_checks_hold_for_a_crew_and_name_a_wrong_one(monkeypatch):
    contract_checks.check_suite(toy_crew.SUITE, seeds=(0,))
    card = toy_crew.SUITE.card
    monkeypatch.setattr(toy_crew.RelaySuite, "card", replace(card, seats=1))
    with pytest.raises(CheckFailure, match="`seats`"):
        contract_checks.check_suite(toy_crew.SUITE, seeds=(0,))


def test_what_a_line_leaves_out_has_its_default_value():
    crew = relay()
    crew.step(SKIP)
    (action,) = of(crew, Action)
    line = json.loads(msgspec.json.encode(action))
    assert line["role"] == "opener"
    assert "source" not in line
    assert not of(crew, Drift)
