"""Project Gutenberg texts without header, licence and table of contents."""

import re

from owa_bench.errors import ScoringError

_START = re.compile(r"\*{3}\s*START OF (?:THE|THIS) PROJECT GUTENBERG.*?\*{3}", re.S)
_END = re.compile(
    r"\*{3}\s*END OF (?:THE|THIS) PROJECT GUTENBERG|^End of (?:the )?"
    r"Project Gutenberg",
    re.M,
)


def strip(text: str, *, begins_with: str | None = None) -> str:
    """Return the work inside a Project Gutenberg file.

    What stands before the START line and after the END line goes. `begins_with` names
    the first words of the main text (the seed's offsets, section 3.2): everything
    before their last occurrence goes too, a table of contents that repeats them with
    it; spaces and line ends between the words do not matter. A text without such lines
    is returned as it is.

    >>> strip("x *** START OF THE PROJECT GUTENBERG EBOOK A *** B *** END OF THE "
    ...       "PROJECT GUTENBERG EBOOK A ***")
    'B'
    """
    start = _START.search(text)
    text = text[start.end() :] if start else text
    end = _END.search(text)
    text = (text[: end.start()] if end else text).strip()
    if begins_with is None:
        return text
    words = r"\s+".join(re.escape(word) for word in begins_with.split()) + r"(?!\w)"
    places = [match.start() for match in re.finditer(words, text)]
    if not places:
        raise ScoringError(
            f"`begins_with` must be found in the text, got {begins_with!r}."
        )
    return text[places[-1] :]
