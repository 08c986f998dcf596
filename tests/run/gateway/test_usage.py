"""Token usage in the bodies and streams that providers send."""

import json

import pytest

from owa_bench.run.gateway.session import EventStream, TokenUsage, usage_of

CHAT = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
CACHED = {**CHAT, "prompt_tokens_details": {"cached_tokens": 3}}
RESPONSES = {
    "input_tokens": 8,
    "output_tokens": 2,
    "input_tokens_details": {"cached_tokens": 1},
}


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
        ({"prompt_tokens": 1, "prompt_tokens_details": 7}, None),
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
        event
        for i in range(0, len(data), size)
        for event in stream.feed(data[i:][:size])
    )
    assert passed + stream.end() == data
    assert stream.usage == (8, 2, 1)


def test_lines_may_end_as_in_http():
    stream = EventStream(hide_usage=False)
    line = json.dumps({"choices": [], "usage": CHAT}).encode()
    data = b"data: " + line + b"\r\n\r\n"
    assert b"".join(stream.feed(data)) + stream.end() == data
    assert stream.usage == (9, 4, 0)
