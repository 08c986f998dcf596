"""Ratings of open texts: the rubric, and one rater's scores as a signed file.

Source: docs/people.md#judge.
"""

from typing import Annotated, Literal

import msgspec

from owa_bench.canonical import peek, unseal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.layout import RATINGS_TYPE

Score = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]


class Rubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rubric: the question, what each score means, and which text is rated.

    The text is `argument` of the last call of `tool` in an episode.
    """

    schema: Literal["owa-rubric-1"]
    name: str
    question: str
    scores: Annotated[dict[str, str], msgspec.Meta(min_length=2)]
    metric: Literal["nominal", "interval"] = "nominal"
    tool: str = "finish"
    argument: str = "answer"


class RaterScores(msgspec.Struct, frozen=True, kw_only=True):
    """One rater's score of every item by its attempt, under one rubric."""

    schema: Literal["owa-ratings-1"] = "owa-ratings-1"
    rater: str
    rubric: Rubric
    evidence_root: str
    scores: dict[str, Score]
    public_key: str = ""


def read_ratings(envelope: bytes, name: str) -> RaterScores:
    """Return the scores in a file whose signature holds.

    Args:
        envelope: Bytes of the file.
        name: Name of the file, for the message.

    Returns:
        The scores.

    Raises:
        UsageError: It is no such file, or was changed after it was signed.
    """
    try:
        ratings = msgspec.json.decode(peek(envelope), type=RaterScores)
        unseal(envelope, bytes.fromhex(ratings.public_key), RATINGS_TYPE)
    except (msgspec.DecodeError, ValueError, CheckFailure) as error:
        raise UsageError(
            f"{name} must be signed ratings (owa-ratings-1), got: {error}. "
            "Make them with `owa-bench judge`."
        ) from error
    return ratings
