"""MPE2's simple_spread with random actions: agent-steps per CPU second."""

import json
import sys
import time

from mpe2 import simple_spread_v3

for line in sys.stdin:
    given = json.loads(line)
    env = simple_spread_v3.parallel_env(N=given["seats"], max_cycles=given["cycles"])
    env.reset(seed=0)
    spaces = {agent: env.action_space(agent) for agent in env.possible_agents}
    actions = [{a: s.sample() for a, s in spaces.items()} for _ in range(given["cycles"])]
    began = time.process_time()
    for seed in range(given["episodes"]):
        env.reset(seed=seed)
        for chosen in actions:
            env.step(chosen)
    taken = given["episodes"] * given["cycles"] * given["seats"]
    print(json.dumps({"steps": taken / (time.process_time() - began)}))
