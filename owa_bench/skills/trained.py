"""What a trained policy's zip file says of itself, beside what SB3 keeps in it.

SB3 ignores members it does not know, so one file is the whole policy: weights, which
algorithm loads them, what it was trained on, and how its input is normalised.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.errors import AgentSpecError

MEMBER = "owa.json"


class Normalisation(msgspec.Struct, frozen=True, kw_only=True):
    """Running mean and variance of the `count` observations met in training."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    clip: float = 10.0
    epsilon: float = 1e-8
    count: float = 0.0

    def apply(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the observation as the network was trained to see it."""
        spread = np.sqrt(np.asarray(self.variance) + self.epsilon)
        scaled = (observation - np.asarray(self.mean)) / spread
        return np.asarray(np.clip(scaled, -self.clip, self.clip), dtype=np.float32)


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """How a policy came about. `size` is the length of the observation it reads.

    An observation that is longer is cut: a suite lists first what all its views share.
    """

    algorithm: str
    env_id: str
    options: Mapping[str, str | int | float | bool | None] = {}
    seed: int
    steps: int
    size: int
    normalisation: Normalisation | None = None


def write_notes(path: Path, notes: Notes) -> None:
    """Add notes to a policy's zip file, which has none yet."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(MEMBER, msgspec.json.encode(notes))


def read_notes(path: Path) -> Notes:
    """Return a policy's notes.

    Errors: AgentSpecError for a file that is no policy of `owa-bench train`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return msgspec.json.decode(archive.read(MEMBER), type=Notes)
    except (OSError, KeyError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        msg = (
            "A trained agent is a zip file that `owa-bench train` wrote (it notes the "
            f"algorithm and the input's scale), got {path.name}: {error}."
        )
        raise AgentSpecError(msg) from error
