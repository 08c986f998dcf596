"""Whom a crew asks, what it tells, whether it keeps the rules; the human colleague."""

import json

import pytest

from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.records.events import (
    CallRefusal,
    ColleagueLook,
    Handoff,
    Intervention,
    Message,
    Resource,
)
from tests.builders import crew_episodes as episodes


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


PASS = call("pass_turn")


def begun(family="contract", tier=3, **setting):
    env, sink, _ = episodes.begun(episodes.instance(family, tier, 2), **setting)
    return env, sink, env.timeline.worlds[0]


def until(env, seat):
    """Wait until it is a seat's turn; return what it is shown."""
    while True:
        observation, *_, info = env.step(PASS)
        if info["seat"] == seat:
            return observation["text"]


def messages(sink):
    return [event for event in sink.events if isinstance(event, Message)]


def clause_of(world, seat, *, others=True):
    """Return a plain clause that another seat, or this one, has."""
    return next(
        c
        for c in world.clauses
        if not c.rival and c.attribute == "tag" and (c.owner != seat) == others
    )


def test_a_question_reaches_who_keeps_the_clause_and_misses_who_does_not():
    env, sink, world = begun()
    clause = clause_of(world, "lead")
    wrong = next(s for s in world.seats if s not in ("lead", clause.owner))
    env.step(call("ask", to=clause.owner, about=clause.name))
    for _ in range(3):
        until(env, "lead")
    env.step(call("ask", to=wrong, about=f"what is the tag of {clause.subject}?"))
    first, second = messages(sink)
    assert (first.asks, first.reached) == (clause.name, True)
    assert (second.asks, second.reached) == (clause.name, False)
    assert first.gives == second.gives == ()


def test_what_is_told_counts_as_needed_once_and_only_by_who_lacks_it():
    env, sink, world = begun("contract", 3)
    item = next(
        i
        for i in world.items
        if i.role != "lead"
        and f"{i.name}.tag" in i.clauses
        and not world.clause_of[f"{i.name}.tag"].rival
    )
    clause = world.clause_of[f"{item.name}.tag"]
    text = f"the tag of {clause.subject} is {clause.value}."
    other = next(s for s in world.seats[1:] if s != item.role)
    # The lead was not shown the value: its first message is refused, and no event.
    for to in (item.role, item.role, item.role, other):
        env.step(call("tell", to=to, text=text))
        for _ in range(3):
            until(env, "lead")
    assert [(m.gives, m.news) for m in messages(sink)] == [
        ((clause.name,), 1),
        ((clause.name,), 0),
        ((clause.name,), 0),
    ]


def test_a_refused_call_and_an_untrue_manifest_are_events():
    env, sink, world = begun("contract", 1)
    item = world.items[0]
    env.step(call("merge", item=item.name))
    env.step(PASS)
    env.step(call("claim", item=item.name))
    env.step(PASS)
    forged = {item.clauses[0]: "zzzz-999"}
    env.step(call("hand_off", item=item.name, to="design", manifest=forged))
    assert [e.tool for e in sink.events if isinstance(e, CallRefusal)] == ["merge"]
    assert [e.untrue for e in sink.events if isinstance(e, Handoff)] == [1]


def test_agents_that_ask_reach_who_knows_and_tellers_tell_what_is_needed():
    """The figures tell reference crews apart: that is what they are there for."""
    chosen = episodes.instance("contract", 2, 3)
    asking = episodes.play(episodes.reference("fifo"), chosen).of(Message)
    telling = episodes.play(episodes.reference("contract_net"), chosen).of(Message)
    asks = [m for m in asking if m.asks]
    assert asks
    assert all(m.reached for m in asks)
    assert sum(m.news for m in telling) > sum(m.news for m in asking) > 0


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_a_human_colleague_is_the_same_world_and_answers_at_its_cadence(family):
    plain = SUITE.generate(episodes.instance(family, 2, 2))
    env, sink, world = begun(f"human/{family}", 2, cap=1)
    assert (plain.items, plain.documents) == (world.items, world.documents)
    by_subject = {c.subject: c for c in world.clauses if c.attribute != "say"}
    seen, clauses = {}, list(by_subject.values())[:3]
    pending = [call("ask", to="all", about=clause.name) for clause in clauses]
    for _ in range(3 * world.human):
        tick = env.simulated_ms // 60_000
        due = tick % world.interval == 0 and pending
        observation, *_ = env.step(pending.pop(0) if due else PASS)
        for clause in clauses:
            if "Message from human: " in observation["text"]:
                answers = observation["text"].lower().split("from human: ")[1:]
                if any(clause.subject in answer for answer in answers):
                    seen.setdefault(clause.name, env.simulated_ms // 60_000)
    ticks = [seen[clause.name] for clause in clauses]
    assert ticks == [world.human, world.human, 2 * world.human]
    costs = [e for e in sink.events if isinstance(e, Resource)]
    assert [(c.stream, c.amount) for c in costs[:3]] == [
        ("human", 5.0),
        ("human", 3.0),
        ("human", 1.0),
    ]
    looks = [e for e in sink.events if isinstance(e, ColleagueLook)]
    assert [look.answers for look in looks[:3]] == [
        tuple(("lead", clause.name) for clause in clauses[:2]),
        (("lead", clauses[2].name),),
        (),
    ]
    assert not any(isinstance(e, Intervention) for e in sink.events)
    assert not messages(sink)


def test_a_muted_crew_does_not_reach_the_human_colleague():
    env, _, world = begun("human/contract", 2, cap=1, muted=True)
    env.step(call("ask", to="all", about=world.clauses[0].name))
    shown = [env.step(PASS)[0]["text"] for _ in range(2 * world.human)]
    assert not any("Message from human" in text for text in shown)
