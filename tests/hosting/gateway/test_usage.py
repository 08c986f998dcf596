"""Token usage in the bodies and streams that providers send."""

import json

import pytest

from owa_bench.hosting.gateway.session import EventStream
from owa_bench.records.token_usage import TokenUsage, usage_of

CHAT = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
CACHED = {**CHAT, "prompt_tokens_details": {"cached_tokens": 3}}
RESPONSES = {"input_tokens": 8, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (CHAT, (9, 4, 0)),
        (CACHED, (9, 4, 3)),
        (RESPONSES, (8, 2, 1)),
        ({"prompt_tokens": 6, "total_tokens": 6}, (6, 0, 0)),  # of embeddings
        ({"prompt_tokens": 6, "prompt_tokens_details": None}, (6, 0, 0)),
        (None, None),
        ({}, None),
        ([1], None),
        ({"prompt_tokens": 10**18, "completion_tokens": 0}, None),
        ({"prompt_tokens": -1, "completion_tokens": 0}, None),
        ({"prompt_tokens": 1.5, "completion_tokens": 0}, None),
        ({"prompt_tokens": 1, "prompt_tokens_details": 7}, (1, 0, 0)),
        ({"prompt_tokens": 7.0, "completion_tokens": "30"}, (7, 30, 0)),
        # reasoning beside the completion, by the total or by its own count
        ({**CHAT, "total_tokens": 15_013}, (9, 15_004, 0)),
        ({**CHAT, "completion_tokens_details": {"reasoning_tokens": 50}}, (9, 54, 0)),
        ({**CHAT, "completion_tokens_details": {"reasoning_tokens": 3}}, (9, 4, 0)),
        # the cache as others name it
        ({**CHAT, "prompt_cache_hit_tokens": 5}, (9, 4, 5)),
        ({**CHAT, "cached_tokens": 5}, (9, 4, 5)),
        ({**CHAT, "cached_tokens": 50}, (9, 4, 9)),  # no more than were read
        (
            {
                "input_tokens": 5,
                "output_tokens": 2,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 10,
            },
            (115, 2, 100),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": "²", "completion_tokens": 0}, None),
        ({"prompt_tokens": "9" * 5000, "completion_tokens": 0}, None),
        # the cache beside the prompt, which the total counts or not
        ({**CHAT, "cache_read_input_tokens": 90}, (99, 4, 90)),
        ({**CHAT, "cache_read_input_tokens": 5, "total_tokens": 18}, (14, 4, 5)),
    ],
)
def test_usage_in_a_body(usage, expected):
    body = json.dumps({"choices": [], "usage": usage}).encode()
    assert usage_of(body) == (expected and TokenUsage(*expected))


@pytest.mark.parametrize("body", [b"", b"[" * 60_000, b"[]", b"{", b'{"usage": 1}'])
def test_a_body_without_usage(body):
    assert usage_of(body) is None


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_in_pieces_of_any_size(size):
    """The events of the responses endpoint: usage stands inside the response."""
    events = [
        {"type": "response.output_text.delta", "delta": "hello"},
        {"type": "response.completed", "response": {"usage": RESPONSES}},
    ]
    data = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events)
    stream = EventStream(hide_usage=False)
    passed = b"".join(
        event for i in range(0, len(data), size) for event in stream.feed(data[i:][:size])
    )
    assert passed + stream.end() == data
    assert stream.usage == (8, 2, 1)


def test_numbers_that_are_no_json_elsewhere_void_no_usage():
    body = b'{"logprobs": [-Infinity, NaN], "usage": {"prompt_tokens": 9}}'
    assert usage_of(body) == (9, 0, 0)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_lines_may_end_in_each_way_of_the_standard(end, size):
    """What the gateway asked for is hidden; all else passes."""
    stream = EventStream(hide_usage=True)
    shown = b"event: x" + end + b'data: {"choices": [{}]}' + 2 * end
    hidden = json.dumps({"choices": [], "usage": CHAT}).encode()
    data = shown + b"data: " + hidden + 2 * end + b"data: [DONE]" + 2 * end
    passed = b"".join(
        event for i in range(0, len(data), size) for event in stream.feed(data[i:][:size])
    )
    passed += stream.end()
    assert b"prompt_tokens" not in passed
    assert b'{"choices": [{}]}' in passed
    assert b"[DONE]" in passed
    assert stream.usage == (9, 4, 0)


@pytest.mark.parametrize("more", [{}, {"input_tokens": 0}])
def test_a_stream_of_messages_counts_in_two_events(more):
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 9}}}
    ended = {"type": "message_delta", "usage": {"output_tokens": 4, **more}}
    stream = EventStream(hide_usage=False)
    for event in (begun, ended):
        [*stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n")]
    assert stream.usage == (9, 4, 0)
