"""TextArena's Tower of Hanoi, solved again and again: steps a CPU second, observations read.

Observations hold all that was said in an env, over resets too: so each game has an env of
its own, and is no longer than its solution.
"""

import json
import sys
import time

import textarena

MOVES = ("[A C]", "[A B]", "[C B]", "[A C]", "[B A]", "[B C]", "[A C]")

for line in sys.stdin:
    steps = json.loads(line)["steps"]
    began = time.process_time()
    for number in range(steps):
        place = number % len(MOVES)
        if place == 0:
            env = textarena.make("TowerOfHanoi-v0")
            env.reset(num_players=1, seed=number)
            env.get_observation()
        over, _ = env.step(MOVES[place])
        if over != (place == len(MOVES) - 1):
            raise SystemExit(f"the game is over: {over}, after {place + 1} moves")
        if not over:
            env.get_observation()
    print(json.dumps({"steps": steps / (time.process_time() - began)}))
