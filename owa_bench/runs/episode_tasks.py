"""Tasks for training: what may be learnt from, what is held out, and how hard each task is.

    TRAINING_SEEDS, HELD_OUT_SEEDS   the split of seeds
    held_out_families                the split of a suite's families
    list_tasks                       the tasks of a suite, by split and length

The split is a convention for papers that compare trainers. It is no evidence: a run's seeds come
from its own secret, so worlds of a run are new to every trained model.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from owa_bench import discovery
from owa_bench.errors import FieldError, UnknownNameError
from owa_bench.interfaces import SuiteCard
from owa_bench.runs.episode_session import open_episode

TRAINING_SEEDS = range(1 << 30)
HELD_OUT_SEEDS = range(1 << 30, 1 << 31)
_EACH = 4  # of so many families of a card the last is held out
_MEASURED = 3  # seeds whose median is a task's length
Split = Literal["train", "held out"]


class TrainingTask(NamedTuple):
    """A kind of episode, with its length as the oracle plays it.

    Attributes:
        suite: The suite.
        family: One of its families.
        tier: One of its tiers.
        delta: The drift magnitude.
        split: Whether the family is for training or held out.
        steps: The oracle's steps, median over training seeds; the measure of difficulty.
        characters: Of all that the oracle reads and writes, median; about four a token.
    """

    suite: str
    family: str
    tier: int
    delta: float
    split: Split
    steps: float
    characters: float


def held_out_families(suite: str) -> tuple[str, ...]:
    """Return the families of a suite that no trainer should learn from.

    They are the fourth of each four on the suite's card, and those that the suite itself keeps out
    of every public draw.

    Args:
        suite: Its name.
    """
    card: SuiteCard = discovery.get("suites", suite).card
    return (*card.families[_EACH - 1 :: _EACH], *card.held_out)


def list_tasks(
    suite: str,
    *,
    tiers: Iterable[int] = (),
    deltas: Sequence[float] = (0.0,),
    families: Iterable[str] = (),
    **options: Any,
) -> list[TrainingTask]:
    """Return a suite's tasks, shortest first: the order of a curriculum.

    Args:
        suite: Name of a suite with tools.
        tiers: Of its tiers; empty: all.
        deltas: Drift magnitudes.
        families: Of its families; empty: all that are open to draws.
        options: As for `open_episode`, such as `seat_policy` of a crew.
    Returns: A task for each family, tier and magnitude; each is opened and played by the oracle.
    Raises: UsageError: A name or number is wrong; the message says what is right.
    """
    card: SuiteCard = discovery.get("suites", suite).card
    held_out = held_out_families(suite)
    chosen, grades = tuple(families) or card.families, tuple(tiers) or card.tiers
    for family in chosen:
        if family not in (*card.families, *card.held_out):
            raise UnknownNameError("family", family, (*card.families, *card.held_out))
    for tier in grades:
        if tier not in card.tiers:
            raise FieldError("tiers", tier, f"must be of {', '.join(map(str, card.tiers))}")
    found = []
    for family in chosen:
        split: Split = "held out" if family in held_out else "train"
        for tier in grades:
            for delta in deltas:
                steps, characters = _oracle_length(suite, family, tier, delta, options)
                found.append(TrainingTask(suite, family, tier, delta, split, steps, characters))
    return sorted(found, key=lambda task: (task.steps, task.characters, task))


def _oracle_length(
    suite: str, family: str, tier: int, delta: float, options: Mapping[str, Any]
) -> tuple[float, float]:
    """Return the oracle's steps and characters on a task, medians over training seeds."""
    steps, characters = [], []
    for seed in TRAINING_SEEDS[:_MEASURED]:
        chosen = {**options, "family": family, "tier": tier, "delta": delta}
        with open_episode(suite, seed, **chosen) as session:
            count = sum(len(message["content"]) for message in session.text_messages)
            for name, arguments in session.solution():
                count += len(name) + len(str(arguments)) + len(session.call(name, arguments).text)
            steps.append(session.steps)
            characters.append(count)
    return statistics.median(steps), statistics.median(characters)
