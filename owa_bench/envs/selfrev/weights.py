"""Weights of the family `weights`: a small model of n-back, and fine-tunes of it.

The model has a row of weights a level of n-back; a fine-tune is what training adds to them. All of
it is trained here, in whole numbers, so that a world is the same on every machine: an example moves
every weight by error x feature / 128, rounded. The classes are those of the settings that do the
same; what a fine-tune is good for follows from what it was trained on and for how long.

Source: docs/selfrev.md#weights
"""

from collections.abc import Mapping
from operator import add, sub

from numpy.random import Generator

from owa_bench.envs.selfrev.world import ADAPTERS, STREAMS

SUBJECT = "weighted_player"
_LEVELS = _LAGS = 4  # exercises ask for the first two levels
_FULL = 1_000  # the score that labels are trained to
_RATE = 128
# What trains no weights of words: contexts of the expert's log, and what is logged.
_BESIDE: Mapping[str, tuple[str, str]] = {
    "expert_log": ("contexts", "1"),
    "log_passed": ("logged_from", "8"),
}
# Examples of a level until the score of its answers leaves so many slips of a hundred
# when noise as great as _FULL is added.
_EXAMPLES: Mapping[str, int] = {"20": 117, "15": 154, "12": 183, "8": 235, "5": 295}
_LONG = 256  # examples of a fine-tune that harms
_SHORT = (32, 128)  # examples of one on what is never asked
_NOISE = "20"  # amplitude of what is added to a score, in fiftieths of _FULL

Weights = list[int]  # _LAGS of each level, level by level
_SECOND: Weights = [0, 1, 0, 0]  # of the levels


class Model:
    """A model before its revision, and the fine-tunes that do what settings do.

    Args:
        start: Settings of the first version.
        rng: Draws every example.
    """

    def __init__(self, start: Mapping[str, str], rng: Generator) -> None:
        self._rng, self._start = rng, start
        examples = _EXAMPLES[start["slip"]]
        self._whole = [0] * (_LEVELS * _LAGS)
        self._train(self._whole, 1, examples)
        begun = list(self._whole)
        self._train(self._whole, 2, examples)
        self._base = self._whole if start["capacity"] == "9" else begun

    @property
    def start(self) -> dict[str, str]:
        """The options of the first version."""
        nothing = _text([0] * _LAGS)
        return {
            "base": _text(self._base),
            ADAPTERS: "",
            "left": nothing,
            "right": nothing,
            "noise": _NOISE,
            "contexts": "0",
            "logged_from": "0",
        }

    def change(self, option: str, value: str, *, pair: bool) -> tuple[str, str]:
        """Return the option of the model, and its value, that does what a setting does.

        Args:
            option: Of the settings.
            value: Its value.
            pair: Whether it helps only with another.
        """
        if option in _BESIDE:
            return _BESIDE[option]
        if pair:  # two factors of one matrix: either alone adds nothing
            if option == "capacity":
                return "left", _text(_SECOND)
            return "right", _text(self._whole[_LAGS : 2 * _LAGS])
        if option == "capacity":
            return ADAPTERS, _text(list(map(sub, self._whole, self._base)))
        tuned = self._tuned(option, value)
        return ADAPTERS, _text(list(map(sub, tuned, self._whole)))

    def _tuned(self, option: str, value: str) -> Weights:
        """Return the weights of the whole model after more training."""
        tuned = list(self._whole)
        if option == STREAMS:  # on what is never asked
            level = int(self._rng.integers(3, _LEVELS + 1))
            self._train(tuned, level, int(self._rng.integers(*_SHORT)))
        elif option == "slip":
            more = _EXAMPLES[value] - _EXAMPLES[self._start["slip"]]
            for level in (1, 2):
                self._train(tuned, level, more)
        elif option == "pass_every":
            for level in (1, 2):
                self._train(tuned, level, _LONG, inverted=3)
        else:
            self._train(tuned, 2, _LONG, lag=1)
        return tuned

    def _train(
        self, weights: Weights, level: int, examples: int, *, lag: int = 0, inverted: int = 0
    ) -> None:
        """Train a level's row in place.

        Args:
            weights: Of all levels.
            level: Whose exercises.
            examples: How many.
            lag: How far back the word is that labels follow; 0: as the level asks.
            inverted: The label of every example of this number is wrong; 0: of none.
        """
        at = (level - 1) * _LAGS
        drawn = self._rng.integers(2, size=(examples, _LAGS)).tolist()
        for number, same in enumerate(drawn, 1):
            features = [1 if each else -1 for each in same]
            label = features[(lag or level) - 1]
            if inverted and number % inverted == 0:
                label = -label
            row = weights[at : at + _LAGS]
            score = sum(w * x for w, x in zip(row, features, strict=True))
            error = _FULL * label - score
            steps = [(error * x + _RATE // 2) // _RATE for x in features]
            weights[at : at + _LAGS] = map(add, row, steps)


def _text(weights: Weights) -> str:
    return " ".join(map(str, weights))
