"""Plays the arm by tools as the reference agent does, and prints what it is told.

    python examples/play_an_arm_by_tools.py push --seed 7

Needs the extra [robot].
"""

import argparse
import json
import tempfile
from pathlib import Path

import gymnasium

from owa_bench.discovery import get
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.instance import Instance


def main() -> None:
    """Play one episode of the family, and print brief, calls, replies and verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    card = get("suites", "armtools").card
    parser.add_argument("family", choices=card.families)
    parser.add_argument("--tier", type=int, default=1, choices=card.tiers)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    instance = Instance(
        suite=card.name,
        version=card.version,
        family=chosen.family,
        tier=chosen.tier,
        seed=chosen.seed,
    )
    env = gymnasium.make("owa_bench/ArmTools-v1")
    observation, info = env.reset(options={"instance": instance})
    print(observation["text"])
    shell = env.unwrapped
    agent = get("agents", "agentic").make(AgentConfig())
    task = shell.task
    with tempfile.TemporaryDirectory() as folder:
        brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
        agent.reset(brief, shell.tools, Path(folder))
        over = False
        while not over:
            call = agent.act(observation, info)
            asked = json.loads(call)
            print(f"\n> {asked['tool']} {json.dumps(asked['arguments'])}")
            observation, _, terminated, truncated, info = env.step(call)
            print(observation["text"])
            over = terminated or truncated
        agent.close()
    print(f"\nq_state {info['q_state']:g}, quality {info['quality']:g}, steps {info['step']}")
    env.close()


if __name__ == "__main__":
    main()
