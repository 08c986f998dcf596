"""TextArena's Tower of Hanoi, a disk to and fro: steps a CPU second, observations read."""

import json
import sys
import time

import textarena

for line in sys.stdin:
    steps = json.loads(line)["steps"]
    env = textarena.make("TowerOfHanoi-v0")
    over, began = True, time.process_time()
    for number in range(steps):
        if over:
            env.reset(num_players=1, seed=number)
            env.get_observation()
        over, _ = env.step("[A C]" if number % 2 else "[C A]")
        env.get_observation()
    print(json.dumps({"steps": steps / (time.process_time() - began)}))
