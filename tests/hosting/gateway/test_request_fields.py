"""The list of fields: the docs hold it, and what honest clients send is on it."""

from pathlib import Path

import pytest

from owa_bench.errors import FieldError
from owa_bench.hosting.gateway.request_check import refusal
from owa_bench.hosting.gateway.request_fields import TABLES, listing
from owa_bench.runs.plan import request as requests

PAGE = Path(__file__).parents[3] / "docs/model-gateway.md"
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object"}}
PICTURE = "data:image/png;base64,AAAA"
HONEST = [
    (
        "/chat/completions",
        {
            "messages": [
                {"role": "system", "content": "s"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "t", "cache_control": {"type": "x"}},
                        {"type": "image_url", "image_url": {"url": PICTURE}},
                        {"type": "image_url", "image_url": PICTURE},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [CALL],
                    "reasoning_content": "r",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "t", "signature": "s"}
                    ],
                    "refusal": None,
                    "annotations": [],
                },
                {"role": "tool", "tool_call_id": "c", "content": "r"},
            ],
            "tools": [{"type": "function", "function": TOOL | {"strict": True}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": {"$ref": "#/a"}},
            },
            "temperature": 0,
            "seed": 1,
            "top_p": 1,
            "stream": True,
            "user": None,
            "stream_options": {"include_usage": True},
            "logit_bias": {"1": 2},
            "stop": ["a"],
            "store": False,
            "n": 1,
        },
    ),
    (
        "/responses",
        {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "t"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
                {"type": "function_call_output", "call_id": "c", "output": "o"},
                {"type": "reasoning", "summary": [], "encrypted_content": "e"},
            ],
            "tools": [{"type": "function", **TOOL, "strict": True}],
            "include": ["reasoning.encrypted_content"],
            "text": {"format": {"type": "text"}},
            "reasoning": {"effort": "low"},
            "previous_response_id": None,
        },
    ),
    (
        "/messages",
        {
            "system": [{"type": "text", "text": "s", "cache_control": {"ttl": "1h"}}],
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "u",
                            "content": [
                                {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
                            ],
                        }
                    ],
                },
            ],
            "tools": [{"name": "f", "input_schema": {}}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
    ),
    ("/embeddings", {"input": [[1, 2]], "encoding_format": "float"}),
    ("/completions", {"prompt": ["a"], "max_tokens": 1}),
]


def test_the_page_holds_the_list():
    page = PAGE.read_text()
    start = "held by tests/hosting/gateway/test_request_fields.py -->"
    shown = page.partition(start)[2].partition("<!-- end of the list")[0].strip()
    assert shown.splitlines() == list(listing())


def test_each_endpoint_that_takes_a_body_has_a_list():
    from owa_bench.hosting.gateway import server

    assert set(TABLES) == set(server._PATHS["POST"])


@pytest.mark.parametrize(("path", "body"), HONEST)
def test_what_honest_clients_send_is_on_the_list(path, body):
    assert refusal(path, {"model": "m", **body}, lambda *_: False, ()) == ("", ())


def test_a_name_that_no_field_can_have_is_refused():
    with pytest.raises(FieldError, match="--model-field"):
        requests._model_fields(("a b",))
    assert requests._model_fields(("user", "mcp", "user")) == ("mcp", "user")
