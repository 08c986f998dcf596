import json
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.errors import UsageError
from owa_bench.shells.calls import (
    ACTION_LIMIT,
    CHARSET,
    REPLY_LIMIT,
    TEXT_LIMIT,
    CallParser,
    ParsedCall,
    PlainText,
    ToolCalls,
    call_text,
    escape,
    is_plain,
    shorten,
)
from owa_bench.shells.standard_tools import tools_of
from tests.builders.toy_suite import TOOLS

ALL = tools_of(TOOLS)
PARSER = CallParser(ALL)


@given(st.text())
def test_escaped_text_is_plain(text):
    plain = escape(text)
    assert is_plain(plain)
    assert set(plain) <= set(CHARSET)


@given(st.text(alphabet=CHARSET))
def test_plain_text_is_left_as_it_is(text):
    assert escape(text) == text


@given(st.text(max_size=20))
def test_escaping_inside_json_text_keeps_its_meaning(text):
    if not any(0xD800 <= ord(c) < 0xE000 for c in text):
        line = escape(json.dumps(text, ensure_ascii=False))
        assert json.loads(line) == text


def test_long_text_is_cut_to_the_limit_with_a_note():
    text = shorten("x" * 5000, REPLY_LIMIT)
    assert len(text) == REPLY_LIMIT
    assert text.endswith("[cut: the first 4096 of 5000 characters]")
    assert shorten("x" * REPLY_LIMIT, REPLY_LIMIT) == "x" * REPLY_LIMIT
    assert len(shorten("x" * 2 * TEXT_LIMIT)) == TEXT_LIMIT


def test_a_call_parses_back():
    line = call_text("open", {"code": 7})
    assert PARSER.parse(line) == ParsedCall("open", {"code": 7})
    assert PARSER.parse('{"tool": "read"}') == ParsedCall("read", {})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "does not parse"),
        ("walk left", "does not parse"),
        ("5", "must be a JSON object, got 5"),
        ('{"tool": "read", "args": {}}', "`args` is no field of an action"),
        ('{"arguments": {}}', "`tool` must be one of walk, read"),
        ('{"tool": 5}', "got 5"),
        ('{"tool": "reed"}', "Did you mean `read`?"),
        ('{"tool": "read", "arguments": []}', "`arguments` must be a JSON object"),
        ('{"tool": "open", "arguments": {"code": 100}}', "at most 99, got 100"),
        ('{"tool": "open", "arguments": {"code": NaN}}', "does not parse"),
        ('{"tool": "note", "arguments": {"text": "\\ud800"}}', "does not parse"),
        ("[" * 50_000, "does not parse"),
        ("x" * (ACTION_LIMIT + 1), f"at most {ACTION_LIMIT} characters"),
    ],
)
def test_malformed_actions_get_a_message(text, part):
    message = PARSER.parse(text)
    assert isinstance(message, str)
    assert part in message
    assert is_plain(message)


@given(st.text())
def test_no_text_makes_the_parser_raise(text):
    PARSER.parse(escape(text))


@given(seed=st.integers(0, 2**32))
def test_samples_are_valid_calls_of_the_space(seed):
    space = ToolCalls(ALL, seed=seed)
    line = space.sample()
    assert line in space
    assert isinstance(PARSER.parse(line), ParsedCall)


def test_a_mask_chooses_the_tool():
    space = ToolCalls(ALL, seed=0)
    for index, tool in enumerate(ALL):
        line = space.sample(mask=np.eye(len(ALL), dtype=np.int8)[index])
        assert json.loads(line)["tool"] == tool.name
        line = space.sample(probability=np.eye(len(ALL))[index])
        assert json.loads(line)["tool"] == tool.name


def test_a_mask_that_allows_nothing_is_refused():
    with pytest.raises(UsageError, match="must allow"):
        ToolCalls(ALL).sample(mask=np.zeros(len(ALL)))


def test_equal_seeds_draw_equal_calls_also_in_another_process():
    one = ToolCalls(ALL, seed=3)
    other = ForkingPickler.loads(ForkingPickler.dumps(ToolCalls(ALL, seed=3)))
    assert [one.sample() for _ in range(9)] == [other.sample() for _ in range(9)]


def test_spaces_compare_by_their_tools():
    assert ToolCalls(ALL) == ToolCalls(ALL)
    assert ToolCalls(ALL) != ToolCalls(ALL[:-1])
    assert ToolCalls(ALL) != PlainText(ACTION_LIMIT)


@pytest.mark.parametrize("text", ["caf\u00e9", "a\rb", "\x00", "x" * 11, 5, None])
def test_the_space_holds_plain_text_only(text):
    assert text not in PlainText(10)
    assert "a\tb\n~" in PlainText(10)


def test_function_schemas_are_what_chat_models_read():
    first = ALL[0].function
    assert first["type"] == "function"
    assert first["function"]["name"] == "walk"
    assert json.dumps(first)
