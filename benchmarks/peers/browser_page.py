"""BrowserGym on one small page: clicks a second, milliseconds a reset."""

import json
import sys
import time

import browsergym.core  # noqa: F401  registers the envs
import gymnasium
from playwright.sync_api import BrowserType

LOOKS = 50  # again at a page that was not there yet


def bid(observation, name):
    """Return the id of the control of a name, None where it is not seen."""
    for node in observation["axtree_object"]["nodes"]:
        seen = node.get("name", {}).get("value") == name and "browsergym_id" in node
        if seen and node["role"]["value"] in ("checkbox", "button"):
            return node["browsergym_id"]
    return None


def click(env, observation, name):
    """Click a control; look again first while its page is not there."""
    for _ in range(LOOKS):
        if (place := bid(observation, name)) is not None:
            return env.step(f'click("{place}")')[0]
        observation = env.step("noop(10)")[0]
    raise SystemExit(f"{name} was not seen in {LOOKS} looks")


def measure(env, steps, resets):
    """Return steps a second and milliseconds a reset."""
    observation, _ = env.reset()
    began = time.perf_counter()
    for _ in range(resets):
        observation, _ = env.reset()
    reset_ms = (time.perf_counter() - began) / resets * 1e3
    for place in range(-4, steps):
        if place == 0:
            began = time.perf_counter()
        observation = click(env, observation, "Send" if place % 4 == 3 else "I agree")
    return {"steps": steps / (time.perf_counter() - began), "reset_ms": reset_ms}


launch = BrowserType.launch
for line in sys.stdin:
    given = json.loads(line)
    # Its chat window is a second browser, which has no setting.
    BrowserType.launch = lambda self, path=given["binary"], **more: launch(
        self, **{**more, "executable_path": path}
    )
    sleeps = {} if given["sleeps"] else {"pre_observation_delay": 0.0, "slow_mo": 0}
    env = gymnasium.make(
        "browsergym/openended",
        task_kwargs={"start_url": given["url"]},
        headless=True,
        wait_for_user_message=False,
        disable_env_checker=True,
        **sleeps,
    )
    print(json.dumps(measure(env, given["steps"], 1 if given["sleeps"] else 3)))
    env.close()
