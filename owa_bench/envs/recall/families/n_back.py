"""N-back (Gwm): for each stimulus, whether it is the one of n places before.

Lures, stimuli of n - 1 or n + 1 places before, are as frequent as tier by tier allows. The answers
are two options, so that the vector view plays this family whole. Nothing stands n before the first
n stimuli of a series: they are asked, and not marked.
"""

from typing import Any

from owa_bench.envs.recall.draws import Draws
from owa_bench.envs.recall.world import Exercise

OPTIONS = ("yes", "no")
_LEVELS = ((1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5, 6))
_STIMULI = 24
_SIGNS = 8
_TARGETS = 0.35
_LURES = (0.1, 0.2, 0.3, 0.4)


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    words = draws.lexicon.words(_SIGNS)
    exercises: list[Exercise] = []
    for n in draws.by_tier(_LEVELS):
        series = _series(draws, n)
        for at, sign in enumerate(series):
            same = at >= n and series[at - n] == sign
            prompt = f"{n}-back, {at + 1} of {_STIMULI}: {words[sign]}. {_question(n, at)}"
            exercises.append(
                Exercise(
                    name=f"n_back/{n}/{at}",
                    kind="n_back",
                    prompt=prompt,
                    key=(OPTIONS[not same],),
                    span=n,
                    options=OPTIONS,
                    sign=sign,
                    unmarked=at < n,
                )
            )
    return {"exercises": tuple(exercises)}


def _series(draws: Draws, n: int) -> list[int]:
    """Return stimuli with a share of targets and of lures."""
    chances = draws.rng.random(_STIMULI).tolist()
    signs: list[int] = draws.rng.integers(_SIGNS, size=_STIMULI).tolist()
    for at in range(n, _STIMULI):
        if chances[at] < _TARGETS:
            signs[at] = signs[at - n]
        elif chances[at] < _TARGETS + draws.by_tier(_LURES):
            signs[at] = signs[at - n - 1 if at > n else at - n + 1]
    return signs


def _question(n: int, at: int) -> str:
    """Return the question about a stimulus; the first n of a series earn nothing."""
    places = "1 place" if n == 1 else f"{n} places"
    asked = f"Is it the word {places} before in this series? Answer yes or no."
    return asked if at >= n else f"{asked} (Not scored: nothing stands there.)"
