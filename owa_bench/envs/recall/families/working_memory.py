"""Working memory (Gwm): lists of rising length, by four tasks.

    running_span    a list of unknown length; its last n words, in order
    list_update     n slots whose words change; all n words in the end
    dual_task       two lists in turn; the last n words of the one asked for
    operation_span  n words, with a sum to read between them

Every length from 2 on is asked, so that a span of n needs every shorter one.
"""

from typing import Any

from owa_bench.envs.recall.draws import Draws
from owa_bench.envs.recall.world import Exercise

SHORTEST = 2
_LONGEST = (9, 16, 32, 64)
_TRIALS = (5, 4, 3, 2)  # of each length
_PAGE = (8, 8, 12, 16)  # lines a page
KINDS = ("running_span", "list_update", "dual_task", "operation_span")


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    trials = draws.by_tier(_TRIALS)
    exercises = []
    for length in range(SHORTEST, draws.by_tier(_LONGEST) + 1):
        for trial in range(trials):
            kind = KINDS[(length + trial) % len(KINDS)]
            lines, prompt, key = _MAKERS[kind](draws, length)
            exercises.append(
                Exercise(
                    name=f"{kind}/{length}/{trial}",
                    kind=kind,
                    prompt=prompt,
                    key=key,
                    pages=_pages(lines, draws.by_tier(_PAGE)),
                    span=length,
                )
            )
    return {"exercises": tuple(exercises)}


def _pages(lines: list[str], size: int) -> tuple[str, ...]:
    starts = range(0, len(lines), size)
    return tuple("\n".join(lines[at : at + size]) for at in starts)


_Trial = tuple[list[str], str, tuple[str, ...]]


def _running_span(draws: Draws, length: int) -> _Trial:
    extra = int(draws.rng.integers(1, length + 3))
    words = draws.lexicon.words(length + extra)
    prompt = f"Give the last {length} words of the list, in order."
    return [f"word: {word}" for word in words], prompt, words[-length:]


def _list_update(draws: Draws, length: int) -> _Trial:
    updates = int(draws.rng.integers(length, 2 * length + 1))
    words = draws.lexicon.words(length + updates)
    slots = list(words[:length])
    lines = [f"slot {i + 1}: {word}" for i, word in enumerate(slots)]
    places = draws.rng.integers(length, size=updates).tolist()
    for place, word in zip(places, words[length:], strict=True):
        slots[place] = word
        lines.append(f"slot {place + 1}: {word}")
    prompt = f"Give the present words of slots 1 to {length}, in order."
    return lines, prompt, tuple(slots)


def _dual_task(draws: Draws, length: int) -> _Trial:
    count = length + int(draws.rng.integers(1, 4))
    words = draws.lexicon.words(2 * count)
    kept, other = words[:count], words[count:]
    lines = ["Only the upper list will be asked for."]
    for upper, lower in zip(kept, other, strict=True):
        lines += [f"upper: {upper}", f"lower: {lower}"]
    prompt = f"Give the last {length} words of the upper list, in order."
    return lines, prompt, kept[-length:]


def _operation_span(draws: Draws, length: int) -> _Trial:
    words = draws.lexicon.words(length)
    sums = draws.rng.integers(2, 10, size=(length, 3)).tolist()
    lines = []
    for word, (a, b, c) in zip(words, sums, strict=True):
        lines += [f"{a} + {b} - {c} = {a + b - c}", f"word: {word}"]
    return lines, f"Give all {length} words, in order.", words


_MAKERS = {
    "running_span": _running_span,
    "list_update": _list_update,
    "dual_task": _dual_task,
    "operation_span": _operation_span,
}
