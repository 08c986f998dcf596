"""What is sent, and how it is kept short."""

import json

from owa_bench.agents.language_model.conversation import Conversation, size
from owa_bench.agents.language_model.replies import ModelReply, ModelToolCall, actions, parse_reply

BRIEF = "the brief " * 30


def talked(turns, characters=2000):
    talk = Conversation("rules", BRIEF)
    for place in range(turns):
        call = ModelToolCall(f"c{place}", "http", "{}")
        talk.add_reply(ModelReply("", (call,), 1, cut=False))
        talk.add_result(f"result {place} " + "x" * characters, f"c{place}")
    return talk


def test_nothing_is_cut_while_there_is_room():
    talk = talked(3)
    before = talk.messages
    assert talk.trim(size(before))
    assert talk.messages == before


def test_the_oldest_results_are_cut_first_and_the_brief_never():
    talk = talked(6)
    assert talk.trim(10_000)
    messages = talk.messages
    assert messages[1]["content"] == BRIEF
    assert "cut to save room; it had 2009" in messages[3]["content"]
    assert messages[-1]["content"].endswith("x" * 2000)
    assert size(messages) <= 10_000


def test_then_the_oldest_turns_go_with_their_results():
    talk = talked(40)
    assert talk.trim(4_000)
    messages = talk.messages
    assert messages[1]["content"] == BRIEF
    assert messages[2]["role"] == "assistant"
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    asked = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    assert answered == asked
    assert size(messages) <= 4_000


def test_one_turn_too_long_is_said():
    assert not talked(1, 9000).trim(4_000)


def test_servers_that_give_no_id_or_an_object_are_read():
    call = '{"function": {"name": "wait", "arguments": {"seconds": 1}}}'
    body = '{"choices": [{"message": {"tool_calls": [' + call + "]}}]}"
    reply = parse_reply(body)
    [read] = reply.calls
    assert read[:3] == ("", "wait", '{"seconds": 1}')
    assert reply.tokens_in == 0
    wanted = '{"tool": "wait", "arguments": {"seconds": 1}}'
    assert actions(reply, ["wait"]) == (wanted,)


def test_only_the_newest_picture_is_sent():
    talk = talked(1)
    talk.add_picture("data:image/jpeg;base64,AAAA")
    call = ModelToolCall("c9", "click", "{}")
    talk.add_reply(ModelReply("", (call,), 1, cut=False))
    talk.add_result("a page", "c9")
    talk.add_picture("data:image/jpeg;base64,BBBB")
    sent = json.dumps(talk.messages)
    assert "AAAA" not in sent
    assert sent.count("BBBB") == 1
    assert talk.messages[-1]["content"][1]["image_url"]["url"].endswith("BBBB")


def test_a_picture_before_the_first_turn_stands_after_the_brief():
    talk = Conversation("rules", BRIEF)
    talk.add_picture("data:image/jpeg;base64,AAAA")
    assert [m["role"] for m in talk.messages] == ["system", "user", "user"]


def test_a_picture_counts_for_the_same_however_large_it_is():
    small, large = talked(1), talked(1)
    small.add_picture("data:image/jpeg;base64,A")
    large.add_picture("data:image/jpeg;base64," + "A" * 100_000)
    assert size(small.messages) == size(large.messages) < 100_000


def test_a_picture_in_an_old_turn_goes_when_room_is_short():
    talk = talked(2)
    talk.add_picture("data:image/jpeg;base64,AAAA")
    assert talk.trim(size(talk.messages) - 100)
    assert talk.messages[1]["content"] == BRIEF
