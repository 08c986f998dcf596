"""Commands of a body as 16-bit integers, as control blocks hold them.

Full command is 32,767; a command that could not be read is -32,768 throughout.
"""

import base64
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from owa_bench.errors import UsageError
from owa_bench.records.events import ControlBlock
from owa_bench.records.observables import Floats

CommandWords = npt.NDArray[np.int16]
_FULL = 32_767  # of a command of 1
_UNREADABLE = -32_768
_WORDS = np.dtype("<i2")


def command_words(command: Floats | None, numbers: int) -> CommandWords:
    """Return a command in whole parts of full command.

    Args:
        command: (numbers,) in [-1, 1]; None: none could be read.
        numbers: Of a command.
    Returns: (numbers,).
    """
    if command is None:
        return np.full(numbers, _UNREADABLE, _WORDS)
    return np.rint(command * _FULL).astype(_WORDS)


def words_command(words: CommandWords) -> Floats | None:
    """Return a command as it is played.

    Args:
        words: (numbers,) of `command_words`.
    Returns: (numbers,) in [-1, 1]; None for one that could not be read.
    """
    return None if (words == _UNREADABLE).all() else words / _FULL


def packed_commands(rows: CommandWords) -> str:
    """Return commands as the text of a block.

    Args:
        rows: (ticks, numbers) of `command_words`.
    Returns: Base64 of the little-endian integers.
    """
    return base64.b64encode(rows.astype(_WORDS).tobytes()).decode()


def block_commands(block: ControlBlock) -> Iterator[Floats | None]:
    """Yield the commands of a block as they were played.

    Args:
        block: As recorded.
    Yields: (numbers,) in [-1, 1]; None for one that could not be read.
    Raises: UsageError: the block does not hold its commands.
    """
    try:
        words = np.frombuffer(base64.b64decode(block.actions, validate=True), _WORDS)
    except ValueError as error:
        raise UsageError(f"a control block cannot be read: {error}") from error
    if block.ticks < 1 or not len(words) or len(words) % block.ticks:
        raise UsageError(f"a control block of {block.ticks} commands holds {len(words)} numbers")
    for row in words.reshape(block.ticks, -1):
        yield words_command(row)
