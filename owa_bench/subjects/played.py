"""Registered agents on CartPole3D's levels, in process: their performances."""

import tempfile
from pathlib import Path

from owa_bench import discovery, seeding
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.interfaces import Agent, AgentConfig, Brief, Move
from owa_bench.worlds.physics import Spec

_TEXT = "Keep the pole upright."


def performance(
    name: str, spec: Spec, level: int, magnitude: float, *, episodes: int, seed: int
) -> float:
    """Return an agent's mean performance on a level.

    Its episodes share one memory folder, so an agent that adapts may do so. Units:
    share of the 200 ticks.
    """
    card = discovery.get("agents", name)
    agent: Agent = card.make(AgentConfig())
    env = CartPole3DEnv(spec=spec, level=level, magnitude=magnitude)
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
