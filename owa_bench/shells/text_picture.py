"""Pictures of text, for recorders of videos and whoever renders a tool suite."""

import textwrap

import numpy as np
import numpy.typing as npt

_HEIGHT, _WIDTH = 480, 640  # pixels
_COLUMNS, _LINES = 104, 38  # characters of Pillow's own font that fit
_MARGIN = 6  # pixels


def text_picture(text: str) -> npt.NDArray[np.uint8]:
    """Return the beginning of a text as a picture, black on white.

    Args:
        text: any text; what the font lacks is a question mark.

    Returns:
        (480, 640, 3) pixels.

    >>> bool((text_picture("moved") != text_picture("")).any())
    True
    """
    from PIL import Image, ImageDraw

    known = text.encode("latin-1", "replace").decode("latin-1")
    lines = [
        part for line in known.splitlines() for part in textwrap.wrap(line, _COLUMNS)
    ]
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    shown = "\n".join(lines[:_LINES])
    ImageDraw.Draw(image).multiline_text((_MARGIN, _MARGIN), shown, fill="black")
    return np.asarray(image)
