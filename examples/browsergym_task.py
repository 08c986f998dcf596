"""Play a ChangeSurf task in BrowserGym, unchanged, with BrowserGym's own actions.

    python -m venv gym-venv && gym-venv/bin/pip install "owa_bench[browsergym]"
    gym-venv/bin/python examples/browsergym_task.py --family stay.book --delta 0.5

In place of a model stands the oracle's hand: it is told what to do next and says it in
BrowserGym's words, `click("a12")` and the like. The reward is read from the site's
database when the agent says that it is done.
"""

import argparse
import sys
from typing import Any

import gymnasium
from playwright.sync_api import BrowserType

from owa_bench.bridges import browsergym
from owa_bench.bridges.browsergym import control_values
from owa_bench.envs.changesurf.browser.host import find_browser
from owa_bench.envs.changesurf.oracle.hints import OracleStep

STEPS = 120


def use_installed_browser() -> None:
    """Make Playwright start an installed Chromium, if the machine has one.

    BrowserGym's chat window is a second browser that has no setting for it.
    """
    path, launch = find_browser(), BrowserType.launch
    if path is not None:
        BrowserType.launch = lambda self, **given: launch(
            self, **{"executable_path": path, **given}
        )


def action(page: Any, step: OracleStep) -> str:
    """Return a step in BrowserGym's words: its elements go by their `bid`."""
    if step.op == "wait":
        return f"noop({int(step.value)})"
    found = [frame.locator(f"[id='{step.ident}']") for frame in page.frames]
    bid = next(f for f in found if f.count()).get_attribute("bid")
    if step.op == "fill":
        return f"fill({bid!r}, {step.value!r})"
    if step.op == "select":
        return f"select_option({bid!r}, {step.value!r})"
    return f"click({bid!r})"


def play(family: str, *, seed: int = 1, **task: Any) -> float:
    """Play one task to its end, print every action, return the reward."""
    browsergym.register()
    env = gymnasium.make(
        f"browsergym/owa_bench.{family}",
        task_kwargs=task,
        pre_observation_delay=0.0,
        disable_env_checker=True,
    )
    observation, _ = env.reset(seed=seed)
    print(observation["goal"])
    playing = env.unwrapped
    over, reward, steps = False, 0.0, 0
    while not over and steps < STEPS:
        steps += 1
        step = playing.task.visit.next_step(control_values(playing.page))
        if step.op in browsergym.ENDS:
            said = "report_infeasible" if step.op == "infeasible" else "send_msg_to_user"
            words = f'{said}("{step.op}")'
        else:
            words = action(playing.page, step)
        print(f"  {words}")
        observation, reward, over, _, info = env.step(words)
        if observation["last_action_error"]:  # its actions have half a second each
            print(f"  {observation['last_action_error'].splitlines()[0]}")
    print(f"reward {reward} {info['task_info']}")
    env.close()
    return float(reward)


def main() -> int:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="stay.book")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tier", type=int, default=1)
    parser.add_argument("--delta", type=float, default=0.0)
    given = parser.parse_args()
    use_installed_browser()
    reward = play(given.family, seed=given.seed, tier=given.tier, delta=given.delta)
    return 0 if reward == 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
