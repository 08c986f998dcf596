"""Commands in a control block are those that were played, to 16 bits."""

import base64

import msgspec
import numpy as np
import pytest

from owa_bench.errors import UsageError
from owa_bench.records.control_blocks import (
    block_commands,
    command_words,
    packed_commands,
    words_command,
)
from owa_bench.records.events import ControlBlock

COMMANDS = (np.array([0.0, 0.5, -1.0]), None, np.array([1.0, -0.25, 0.1]))


def block(commands=COMMANDS):
    rows = np.stack([command_words(one, 3) for one in commands])
    return ControlBlock(
        step=len(commands), ticks=len(commands), actions=packed_commands(rows), observation=""
    )


def test_commands_come_back_and_one_that_could_not_be_read_stays_so():
    first, second, third = block_commands(block())
    assert second is None
    assert first == pytest.approx(COMMANDS[0], abs=2e-5)
    assert third == pytest.approx(COMMANDS[2], abs=2e-5)


def test_what_a_block_holds_is_what_is_played():
    for command, kept in zip(COMMANDS, block_commands(block()), strict=True):
        played = words_command(command_words(command, 3))
        assert np.array_equal(played, kept) if command is not None else played is kept is None


@pytest.mark.parametrize(
    "changes", [{"ticks": 2}, {"ticks": 0}, {"actions": "no base64"}, {"actions": ""}]
)
def test_a_block_that_holds_no_commands_is_refused(changes):
    with pytest.raises(UsageError, match="control block"):
        [*block_commands(msgspec.structs.replace(block(), **changes))]


def test_the_format_is_little_endian_16_bits():
    words = base64.b64decode(block(COMMANDS[:1]).actions)
    assert words == (0).to_bytes(2, "little") + (16384).to_bytes(2, "little") + (-32767).to_bytes(
        2, "little", signed=True
    )
