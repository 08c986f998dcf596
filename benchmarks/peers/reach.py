"""An env of panda-gym with random actions: CPU microseconds a step and a reset."""

import json
import sys
import time

import gymnasium
import panda_gym  # noqa: F401  registers the envs

envs = {}
for line in sys.stdin:
    asked = json.loads(line)
    steps, name = asked["steps"], asked.get("env", "PandaReach-v3")
    if name not in envs:
        envs[name] = gymnasium.make(name).unwrapped
    env = envs[name]
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]
    began = time.process_time()
    env.reset(seed=0)
    ready = time.process_time()
    for action in actions:
        env.step(action)
    stepping = time.process_time() - ready
    print(json.dumps({"step": 1e6 * stepping / steps, "reset": 1e6 * (ready - began)}))
