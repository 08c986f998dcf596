"""Campaigns of SelfRev in one process: an agent or a list of calls, short worlds."""

import contextlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from owa_bench.agents import revision_references
from owa_bench.canonical import sha256
from owa_bench.envs.selfrev import generate
from owa_bench.envs.selfrev.suite import SUITE
from owa_bench.interfaces import AgentConfig, Brief, Move
from owa_bench.records import protocol
from owa_bench.records.events import EpisodeStart, Violation
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.trace import Leaf, Trace
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from owa_bench.runs.laboratory_process import laboratory_key
from owa_bench.scoring.axes.self_revision import revision_evidence
from owa_bench.scoring.observe.inner_attempts import campaign_sets, read_campaign
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.tool_env import ToolEnv
from tests.builders.episodes import PROTOCOL_BYTES

CARDS = {card.name: card for card in revision_references.AGENTS}
FAMILIES = tuple(f"selfrev/{name}" for name in generate.FAMILIES)
SHORT = {"pool": 2, "confirmation": 10, "pairs": 20}


class LocalLaboratories:
    """Laboratories in this process."""

    def __init__(self):
        self._made = []

    def of(self, instance):
        self._made.append(LocalLaboratory(laboratory_key(instance)))
        return self._made[-1]

    def close(self):
        for made in self._made:
            made.close()


def instance(family="memory", tier=1, seed=0):
    return Instance(suite="selfrev", version=generate.VERSION, family=family, tier=tier, seed=seed)


def timeline(chosen, **changes):
    world = replace(SUITE.generate(chosen), **(SHORT | changes))
    return Timeline(instance=chosen, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


class PlayedCampaign(NamedTuple):
    """What a campaign left."""

    q_state: float
    state: object
    world: object
    events: list
    replies: list
    blobs: dict

    @property
    def rules(self):
        return {event.rule for event in self.events if isinstance(event, Violation)}

    def blobs_hold(self, attempts):
        return all(sha256(self.blobs[a.replay]) == a.replay for a in attempts)

    def trace(self, index=0):
        leaf = Leaf(
            attempt_id=f"{index:06d}.0",
            index=index,
            attempt=0,
            status="complete",
            count=len(self.events),
            head="",
            replay="",
            shard="",
            frames=(),
        )
        return Trace(leaf, tuple(self.events))


def start_of(facts):
    return EpisodeStart(
        index=0,
        attempt=0,
        arm="own",
        pair="p",
        repeat=0,
        env_id=SUITE.card.env_id,
        delta=None,
        agent="own",
        fingerprint="",
        interventions=0,
        **facts._asdict(),
    )


def play(player, chosen=None, *, interventions=0, declares=(), laboratories=None, **changes):
    """Play a campaign.

    Args:
        player: A policy's name, an agent or its name, or a function from a world to
            calls.
        chosen: The instance.
        interventions: How often the supervisor may be asked.
        declares: Events that the agent declares with its first move.
        laboratories: In place of those of this process.
        changes: Of the short world.
    """
    chosen = chosen or instance()
    sink = ListSink()
    env = ToolEnv(
        SUITE,
        lambda _: timeline(chosen, **changes),
        interventions=interventions,
        laboratories=laboratories or LocalLaboratories(),
    )
    env.attach(sink)
    observation, info = env.reset(options={"instance": chosen, "start": start_of})
    world = env.timeline.worlds[0]
    agent = _agent(player, env, world)
    for event in declares:
        sink.emit(event)
        env.declare(event)
    replies = []
    with contextlib.closing(env):
        while env.ending is None:
            observation, *_, info = env.step(agent(observation, info))
            replies.append(observation["text"])
        state = env.oracle_access().observe()[1]
        ending = env.ending
    return PlayedCampaign(ending.q_state, state, world, sink.events, replies, sink.blobs)


def _agent(player, env, world):
    if callable(player):
        calls = iter([*player(world), ("finish", {"p": 0.5})])

        def scripted(observation, info):
            tool, arguments = next(calls)
            return json.dumps({"tool": tool, "arguments": arguments})

        return scripted
    if hasattr(player, "reset"):
        agent = player
    elif player in SUITE.policies:
        agent = SUITE.policies[player](env.oracle_access())
    else:
        agent = CARDS[player].make(AgentConfig())
    task = env.task
    agent.reset(Brief(text=task.text, goal=task.goal), env.tools, Path())

    def act(observation, info):
        said = agent.act(observation, info)
        return said.action if isinstance(said, Move) else said

    return act


def self_revision(*campaigns):
    """Return the value of R and the evidence, of campaigns of any size."""
    terms = protocol.load(PROTOCOL_BYTES)
    terms = replace(terms, revision=replace(terms.revision, set_min=1))
    found = [read_campaign(one.trace(at)) for at, one in enumerate(campaigns)]
    sets = campaign_sets([one for one in found if one], FAMILIES)
    weights = np.full(len(FAMILIES), 1 / len(FAMILIES))
    evidence = revision_evidence(sets, weights, terms)
    value = min(max(evidence.raw / terms.revision.full_gain, 0.0), 1.0)
    return value, evidence


def named(world, *truths):
    """Return the names of the components of some classes."""
    return [c.name for c in world.components if c.truth in truths]


def adoption_calls(name, *, version="v1", plan="p1", pairs=20):
    """Return the honest calls that test one component and adopt it."""
    terms = {"version": version, "metric": "quality", "pairs": pairs, "rule": "mean", "level": 0.05}
    return [
        ("propose", {"diff": [name]}),
        ("register", terms),
        ("request_holdout", {"plan": plan}),
        ("adopt", {"version": version}),
    ]
