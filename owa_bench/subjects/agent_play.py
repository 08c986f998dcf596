"""Performances of agents on CartPole3D's levels, played in this process.

Any agent that `run --in-process` takes: a registered one, `module:Name`, `FILE.py` or a trained
`sb3:FILE.zip`.
"""

import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from owa_bench import seeding
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.world import Spec
from owa_bench.errors import AgentSpecError, UsageError
from owa_bench.hosting.protocol import agent_factory
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Agent, AgentConfig, Brief, Move

_TEXT = "Keep the pole upright."
_KINDS = ("registry", "object", "file", "model")


class MeasuredAgent(NamedTuple):
    """An agent to be measured: what the user wrote, its name, the digest of its code.

    A registered agent has no digest: its version is the package's.
    """

    spec: str
    name: str
    fingerprint: str = ""


def measured_agents(
    specs: Sequence[str], *, taken: Collection[str] = ()
) -> tuple[MeasuredAgent, ...]:
    """Return the agents that specs name.

    Args:
        specs: as `--agent` takes them.
        taken: names that no agent may have.
    Returns: The agents, in order.
    Raises:
        AgentSpecError: a spec names no agent, or one that needs its own process.
        UsageError: a name comes twice.
    """
    agents = tuple(_measured_agent(spec) for spec in specs)
    names = Counter([*taken, *(one.name for one in agents)])
    for one in agents:
        if names[one.name] > 1:
            why = " (it is always measured)" if one.name in taken else ""
            raise UsageError(
                f"Agents must differ in name; `{one.name}` comes twice{why}: rename a "
                "policy's folder, or leave one out."
            )
    return agents


def _measured_agent(spec: str) -> MeasuredAgent:
    handle = load_agent(spec)
    kind = handle.origin.kind
    if kind not in _KINDS:
        raise AgentSpecError(
            "An agent that is measured in this process is registered, module:Name, "
            f"FILE.py or sb3:FILE.zip; `{spec}` is a {kind}: `owa-bench run` plays it."
        )
    ours = kind == "registry"
    return MeasuredAgent(spec, handle.name, "" if ours else handle.fingerprint)


def performance(
    spec: str, variant: Spec, level: int, magnitude: float, *, episodes: int, seed: int
) -> float:
    """Return an agent's mean performance on a level.

    Its episodes share one memory folder, so an agent that adapts may do so.

    Args:
        spec: as `--agent` takes it.
        variant: of the world, "table1" or "released".
        level: 0 to 16.
        magnitude: of the level, in [0, 1].
        episodes: how many are played.
        seed: of the starts.
    Returns: Share of the 200 ticks, in [0, 1].
    """
    handle = load_agent(spec)
    agent = agent_factory(handle.origin)(AgentConfig(options=handle.options))
    env = CartPole3DEnv(spec=variant, level=level, magnitude=magnitude)
    total = 0.0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(episodes):
                root = seeding.derive(seed, "aiq", "played", number)
                total += _episode(agent, env, Path(folder), root)
            agent.close()
    finally:
        env.close()
    return total / episodes


def _episode(agent: Agent, env: CartPole3DEnv, memory: Path, seed: int) -> float:
    """Return one episode's performance."""
    observation, info = env.reset(seed=seed)
    agent.reset(Brief(text=_TEXT, goal={}, seed=seed), (), memory)
    total, over = 0.0, False
    while not over:
        move = agent.act(observation, info)
        action = move.action if isinstance(move, Move) else move
        observation, reward, terminated, truncated, info = env.step(int(action))
        total += reward
        over = terminated or truncated
    return total
