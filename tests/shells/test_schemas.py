import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.errors import UsageError
from owa_bench.shells.schemas import compile_schema, draw

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 9},
        "kind": {"enum": ["cat", "dog"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "note": {"type": ["string", "null"], "maxLength": 3},
        "ref": {"type": "string", "pattern": "^art:[0-9]+$", "examples": ["art:7"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "odds": {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "fixed": {"const": 3},
    },
    "required": ["name"],
    "additionalProperties": False,
}

CHECK = compile_schema(PERSON)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "ab"},
        {"name": "abc", "age": 9, "kind": "dog", "tags": ["x", "y"], "fixed": 3},
        {"name": "ab", "note": None, "ref": "art:12", "either": True},
        {"name": "ab", "odds": {"anything": 0.5, "else": 1}},
    ],
)
def test_allowed_values_pass(value):
    assert CHECK(value, "arguments") is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`arguments` must be a JSON object, got []."),
        ({}, "`arguments.name` is required, got nothing; add it."),
        ({"name": 1}, "`arguments.name` must be text, got 1."),
        ({"name": "a"}, "`arguments.name` must have at least 2 characters, got 1."),
        ({"name": "abcdef"}, "`arguments.name` must have at most 5 characters, got 6."),
        ({"name": "ab", "age": True}, "`arguments.age` must be a whole number, got true."),
        ({"name": "ab", "age": 1.0}, "`arguments.age` must be a whole number, got 1.0."),
        ({"name": "ab", "age": -1}, "`arguments.age` must be at least 0, got -1."),
        ({"name": "ab", "age": 10}, "`arguments.age` must be at most 9, got 10."),
        (
            {"name": "ab", "kind": "dogs"},
            '`arguments.kind` must be one of "cat", "dog", got "dogs". Did you mean `dog`?',
        ),
        ({"name": "ab", "tags": ["x", 2]}, "`arguments.tags[1]` must be text, got 2."),
        ({"name": "ab", "tags": ["x"] * 3}, "`arguments.tags` must have at most 2 items, got 3."),
        ({"name": "ab", "note": 7}, "`arguments.note` must be text or null, got 7."),
        (
            {"name": "ab", "ref": "art:x"},
            '`arguments.ref` must match ^art:[0-9]+$, got "art:x"; for example "art:7".',
        ),
        (
            {"name": "ab", "either": "x"},
            '`arguments.either` must be a whole number, got "x". '
            'Or: `arguments.either` must be true or false, got "x".',
        ),
        ({"name": "ab", "odds": {"e": 2}}, "`arguments.odds.e` must be at most 1, got 2."),
        ({"name": "ab", "fixed": 4}, "`arguments.fixed` must be one of 3, got 4."),
        (
            {"name": "ab", "agee": 4},
            "`arguments.agee` is unknown, got 4; known: name, age, kind, tags, note, "
            "ref, either, odds, fixed. Did you mean `age`?",
        ),
    ],
)
def test_messages_name_field_value_and_rule(value, message):
    assert CHECK(value, "arguments") == message


def test_a_true_is_not_a_one():
    check = compile_schema({"enum": [1, "1"]})
    assert check(1, "x") is None
    assert check(True, "x") is not None


def test_an_unknown_keyword_is_refused_when_compiled():
    with pytest.raises(UsageError, match="multipleOf"):
        compile_schema({"type": "integer", "multipleOf": 2})


def test_an_unknown_type_is_refused_when_compiled():
    with pytest.raises(UsageError, match="'int'"):
        compile_schema({"type": "int"})


def test_a_pattern_without_examples_is_refused():
    with pytest.raises(UsageError, match="examples"):
        compile_schema({"type": "string", "pattern": "x"})


@given(seed=st.integers(0, 2**32))
def test_drawn_values_are_allowed(seed):
    value = draw(PERSON, rng=np.random.default_rng(seed))
    assert CHECK(value, "arguments") is None


def test_draws_vary():
    rng = np.random.default_rng(0)
    assert len({str(draw(PERSON, rng=rng)) for _ in range(20)}) > 10
