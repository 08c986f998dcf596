"""What a language agent may see beside the page's text: accessibility tree, picture.

Off by default: a tree costs a few milliseconds a step, a picture waits for two frames.
The tree is the browser's own, one line a node, so that agents made for it can be
compared; pictures differ between machines and enter no digest.
"""

import io
import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.shells.calls import PlainText, escape

HEIGHT, WIDTH = 1180, 1280  # what holds every window that drift/web/layout.py draws
TREE_ROOM = 16_384  # characters
_UNSAID = frozenset({"", "none", "generic", "InlineTextBox", "LineBreak"})
Pixels = npt.NDArray[np.uint8]


class Sights(NamedTuple):
    """Which of them an env shows."""

    axtree: bool = False
    screenshot: bool = False

    def space(self, plain: spaces.Dict) -> spaces.Dict:
        """Return the observation space with what is shown."""
        more: dict[str, spaces.Space[Any]] = {}
        if self.axtree:
            more["axtree"] = PlainText(TREE_ROOM)
        if self.screenshot:
            more["screenshot"] = spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
        return spaces.Dict({**plain.spaces, **more})

    def add(self, observation: Any, session: ChangeSurfSession) -> Any:
        """Return an observation with what is shown of the page as it stands."""
        more: dict[str, Any] = {}
        if self.axtree:
            more["axtree"] = tree_text(session.tree())
        if self.screenshot:
            more["screenshot"] = framed(pixels(session.picture()))
        return {**observation, **more} if more else observation


def tree_text(tree: bytes) -> str:
    """Return a tree of [role, name, children] as lines, children indented.

    >>> tree_text(b'[["RootWebArea","Shop",[1]],["button","Buy",[]]]').splitlines()
    ['RootWebArea "Shop"', '  button "Buy"']
    """
    nodes = json.loads(tree)
    lines: list[str] = []
    todo = [(0, 0)] if nodes else []
    while todo:
        place, depth = todo.pop()
        role, name, below = nodes[place]
        said = role not in _UNSAID
        if said:
            lines.append("  " * depth + (f'{role} "{name}"' if name else role))
        todo += [(child, depth + said) for child in reversed(below)]
    return escape("\n".join(lines))[:TREE_ROOM]


def pixels(picture: bytes) -> Pixels:
    """Return a picture's pixels, rows by columns by colours."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def framed(picture: Pixels) -> Pixels:
    """Return a picture in the upper left of a black one of the fixed size."""
    whole = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    height, width = min(picture.shape[0], HEIGHT), min(picture.shape[1], WIDTH)
    whole[:height, :width] = picture[:height, :width]
    return whole
