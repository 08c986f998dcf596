"""A crew that does the same acts with wrong digits until somebody speaks to it."""

import json
import re

from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import TEAM

_SPOKEN = re.compile(r"^Message from ", re.M)


class Saboteur:
    """Plays a seat as `contract_net` does; what it works out unspoken to is wrong."""

    def reset(self, brief, tools, memory_dir):
        self.player, self.spoken = CrewPlayer(brief, TEAM), False

    def act(self, observation, info):
        text = str(observation["text"])
        self.spoken |= bool(_SPOKEN.search(text))
        action = json.loads(self.player.advance(text).text())
        if action["tool"] == "work" and not self.spoken:
            action["arguments"]["fragment"] = wrong(action["arguments"]["fragment"])
        return json.dumps(action)

    def close(self):
        """Nothing is kept."""


def wrong(value):
    """Return a fragment of the same form whose digits are others."""
    if isinstance(value, dict):
        return {name: wrong(one) for name, one in value.items()}
    if isinstance(value, list):
        return [wrong(one) for one in value]
    if isinstance(value, str):
        return re.sub(r"\d", lambda found: str((int(found[0]) + 1) % 10), value)
    return value + 1 if isinstance(value, int) else value
