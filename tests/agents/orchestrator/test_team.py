"""Who holds which role, and which words are messages."""

import pytest

from owa_bench.agents.orchestrator.team import MessageBoard

ROLES = ("planner", "scout", "fetcher 1", "verifier")


def test_a_note_between_two_holders_is_a_message() -> None:
    board = MessageBoard(ROLES)
    board.post("planner", "scout", "find it", "thing")
    assert [message.subject for message in board.receive("scout")] == ["thing"]
    (message,) = board.take_sent()
    assert (message.sender, message.receivers) == ("planner", ("scout",))
    assert (message.digest, message.tokens) == ("find it", 2)
    assert board.take_sent() == ()


def test_notes_are_taken_once() -> None:
    board = MessageBoard(ROLES)
    board.post("planner", "scout", "find it")
    assert len(board.receive("scout")) == 1
    assert board.receive("scout") == []


def test_one_holder_of_all_roles_talks_to_nobody_and_knows_all() -> None:
    board = MessageBoard(ROLES, 1)
    board.post("planner", "verifier", "look")
    assert board.holders == 1
    assert len(board.receive("verifier")) == 1
    assert board.take_sent() == ()


@pytest.mark.parametrize(("cap", "holders"), [(None, 4), (2, 2), (9, 4), (0, 1)])
def test_the_cap_limits_the_holders(cap: int | None, holders: int) -> None:
    assert MessageBoard(ROLES, cap).holders == holders


def test_under_a_cap_the_last_holder_has_the_remaining_roles() -> None:
    board = MessageBoard(ROLES, 2)
    board.post("scout", "verifier", "look")
    assert board.take_sent() == ()
    board.post("planner", "verifier", "look")
    assert len(board.take_sent()) == 1
