"""Fields of a model request that the gateway passes on, by endpoint.

A request may hold what makes the next reply, and nothing that the provider keeps or fetches: no
state by an id, no tool of the provider's own, no remote file. A field that no table here names is
refused (`request_check.py`). Markers of a prompt cache are on the list: a marker holds no text, and
the counts that follow from it can be hidden.

Source: the public references of OpenAI (Chat Completions, Responses), Anthropic
(Messages), vLLM, llama.cpp and OpenRouter; docs/model-gateway.md#fields.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class FieldValue(Enum):
    """A value without fields of its own that are looked at."""

    SCALAR = "text, number or flag"  # or a list of these
    ANY = "any JSON"  # a schema, the arguments of a call
    DATA = "address that begins with data:"
    PAYLOAD = "base64, or an address that begins with data:"
    ECHO = "as a reply of this session had it"
    SESSION = "replaced by a key of the session"
    MODEL = "name of a model"


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A value of these, or a list of such values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FieldSet:
    """An object of these fields, or a list of such; `text` may stand instead."""

    fields: Mapping[str, "FieldRule"]
    text: FieldValue | None = FieldValue.SCALAR


@dataclass(frozen=True, slots=True)
class FieldKinds:
    """An object whose `type` says which fields it has, or a list of such.

    `usual` is the type of an object that names none and has a field `mark`, "" where it must name
    one. `text` is what may stand instead.
    """

    kinds: Mapping[str, Mapping[str, "FieldRule"]]
    usual: str = ""
    mark: str = ""
    text: FieldValue | None = FieldValue.SCALAR


FieldRule = FieldValue | FieldChoice | FieldSet | FieldKinds
FieldTable = Mapping[str, FieldRule]


def _leaves(names: str, leaf: FieldRule = FieldValue.SCALAR) -> dict[str, FieldRule]:
    return dict.fromkeys(names.split(), leaf)


def _object(names: str, **more: FieldRule) -> FieldSet:
    return FieldSet({**_leaves(names), **more}, text=None)


_SCALAR, _ANY, _DATA, _PAYLOAD = (
    FieldValue.SCALAR,
    FieldValue.ANY,
    FieldValue.DATA,
    FieldValue.PAYLOAD,
)
_NEVER = FieldChoice((False,))  # a null is a field that was left out
_EMPTY = FieldChoice(())  # an empty list
_MARKS: FieldTable = {
    "cache_control": _object("type ttl"),
    "prompt_cache_breakpoint": _object("type mode"),
}
_SAMPLING: FieldTable = {
    "model": FieldValue.MODEL,
    **_leaves(
        "temperature top_p top_k min_p top_a typical_p tfs_z seed random_seed n "
        "best_of max_tokens max_completion_tokens min_tokens stop stop_token_ids "
        "ignore_eos frequency_penalty presence_penalty repetition_penalty "
        "repeat_penalty repeat_last_n length_penalty no_repeat_ngram_size "
        "dry_multiplier dry_base "
        "dry_allowed_length mirostat mirostat_tau mirostat_eta use_beam_search "
        "logprobs top_logprobs prompt_logprobs skip_special_tokens cache_prompt "
        "spaces_between_special_tokens include_stop_str_in_output service_tier stream "
        "add_generation_prompt continue_final_message suffix safe_prompt verbosity "
        "enable_thinking thinking_budget think include_reasoning reasoning_effort "
        "reasoning_format reasoning_split guided_regex guided_grammar grammar echo"
    ),
    **_leaves("logit_bias chat_template_kwargs guided_json guided_choice", _ANY),
    **_leaves("structured_outputs json_schema", _ANY),
    "stream_options": _object("include_usage include_obfuscation continuous_usage_stats"),
}
_CACHING: FieldTable = {
    "prompt_cache_key": FieldValue.SESSION,
    "cache_salt": FieldValue.SESSION,
    "prompt_cache_retention": _SCALAR,
    "prompt_cache_options": _object("mode ttl"),
}
_THINKING = FieldSet(_leaves("type budget_tokens display"))
_REASONING = FieldSet(
    _leaves("effort summary generate_summary max_tokens enabled exclude context mode")
)
_GRAMMAR = _object("type syntax definition", grammar=_object("syntax definition"))
_FORMAT_KINDS: Mapping[str, FieldTable] = {
    "text": {},
    "json_object": {"schema": _ANY},
    "json_schema": {
        **_leaves("name description strict"),
        "schema": _ANY,
        "json_schema": _object("name description strict", schema=_ANY),
    },
    "grammar": _leaves("grammar"),
    "regex": _leaves("pattern"),
}

# --- chat completions -----------------------------------------------------------------

_FUNCTION = _object("name description strict", parameters=_ANY)
_CUSTOM = _object("name description", format=_GRAMMAR)
_CHAT_TOOLS = FieldKinds(
    {"function": {"function": _FUNCTION, **_MARKS}, "custom": {"custom": _CUSTOM}}, text=None
)
_NAMED: Mapping[str, FieldTable] = {
    "function": {"function": _object("name"), "name": _SCALAR},
    "custom": {"custom": _object("name"), "name": _SCALAR},
    "tool": _leaves("name"),
}
_CHAT_CHOICE = FieldKinds(
    {
        **_NAMED,
        "allowed_tools": {"allowed_tools": _object("mode", tools=FieldKinds(_NAMED, text=None))},
        **{kind: {} for kind in ("auto", "none", "any", "required")},
    }
)
_THOUGHTS: FieldTable = {
    **_leaves("thinking text reasoning summary data signature encrypted_content"),
    **_leaves("format id index"),
}
_CHAT_PARTS = FieldKinds(
    {
        "text": {"text": _SCALAR, "annotations": _EMPTY, **_MARKS},
        "refusal": _leaves("refusal"),
        "thinking": {
            **_leaves("signature closed"),
            "thinking": FieldKinds({"text": _leaves("text")}),
        },
        "reasoning": _leaves("reasoning text signature"),
        "image_url": {
            "image_url": FieldSet({"url": _DATA, "detail": _SCALAR}, text=_DATA),
            **_MARKS,
        },
        "video_url": {"video_url": FieldSet({"url": _DATA}, text=None)},
        "audio_url": {"audio_url": FieldSet({"url": _DATA}, text=None)},
        "input_audio": {"input_audio": _object("format", data=_PAYLOAD), **_MARKS},
        "file": {"file": _object("filename", file_data=_DATA), **_MARKS},
    }
)
_CHAT_CALLS = FieldSet(
    {
        **_leaves("id type index thought_signature"),
        "function": _object("name thought_signature", arguments=_ANY),
        "custom": _object("name", input=_ANY),
        "extra_content": FieldSet({"google": _object("thought_signature")}),
        **_leaves("name"),
        "arguments": _ANY,
    },
    text=None,
)
_CHAT_MESSAGE = FieldSet(
    {
        **_leaves("role name tool_call_id refusal prefix partial"),
        **_leaves("reasoning_content reasoning reasoning_text thinking"),
        "content": _CHAT_PARTS,
        "tool_calls": _CHAT_CALLS,
        "function_call": _object("name", arguments=_ANY),
        "annotations": _EMPTY,
        "reasoning_details": FieldKinds(
            {f"reasoning.{kind}": _THOUGHTS for kind in ("text", "summary", "encrypted")}, text=None
        ),
        "thinking_blocks": FieldKinds(
            dict.fromkeys(("thinking", "redacted_thinking"), _THOUGHTS), text=None
        ),
        **_MARKS,
    },
    text=None,
)
_CHAT: FieldTable = {
    **_SAMPLING,
    **_CACHING,
    "messages": _CHAT_MESSAGE,
    "tools": _CHAT_TOOLS,
    "tool_choice": _CHAT_CHOICE,
    "functions": _FUNCTION,
    "function_call": FieldSet(_leaves("name")),
    "parallel_tool_calls": _SCALAR,
    "response_format": FieldKinds(_FORMAT_KINDS, text=None),
    "prediction": FieldKinds({"content": {"content": _CHAT_PARTS}}, text=None),
    "thinking": _THINKING,
    "reasoning": _REASONING,
    "provider": _object(  # which of a router's providers answers
        "order only ignore sort quantizations allow_fallbacks require_parameters "
        "data_collection zdr",
        max_price=_object("prompt completion request image"),
    ),
    "cache_control": _MARKS["cache_control"],
    "modalities": FieldChoice(("text",)),
    "store": _NEVER,
}

# --- responses ------------------------------------------------------------------------

_OUTPUT_TEXT: FieldTable = {"text": _SCALAR, "annotations": _EMPTY, "logprobs": _ANY}
_PARTS = FieldKinds(
    {
        "input_text": {"text": _SCALAR, **_MARKS},
        "input_image": {"image_url": _DATA, "detail": _SCALAR, **_MARKS},
        "input_file": {"file_data": _DATA, "filename": _SCALAR, **_MARKS},
        "input_audio": {"input_audio": _object("format", data=_PAYLOAD)},
        "output_text": _OUTPUT_TEXT,
        "text": {"text": _SCALAR},
        "refusal": _leaves("refusal"),
    }
)
_DIRECT = FieldKinds({"direct": {}}, text=None)
_ITEMS = FieldKinds(
    {
        "message": {**_leaves("role status phase"), "id": FieldValue.ECHO, "content": _PARTS},
        "function_call": {
            "id": FieldValue.ECHO,
            **_leaves("call_id name status arguments namespace"),
            "caller": _DIRECT,
        },
        "function_call_output": {
            "id": FieldValue.ECHO,
            **_leaves("call_id name status namespace"),
            "output": _PARTS,
            "caller": _DIRECT,
        },
        "custom_tool_call": {
            "id": FieldValue.ECHO,
            **_leaves("call_id name status input namespace"),
            "caller": _DIRECT,
        },
        "custom_tool_call_output": {
            "id": FieldValue.ECHO,
            **_leaves("call_id name status"),
            "output": _PARTS,
            "caller": _DIRECT,
        },
        "reasoning": {
            "id": FieldValue.ECHO,
            **_leaves("status encrypted_content"),
            "summary": FieldKinds({"summary_text": _leaves("text")}, text=None),
            "content": FieldKinds(
                {"reasoning_text": _leaves("text"), "text": _leaves("text")}, text=None
            ),
        },
    },
    usual="message",
    mark="role",
)
_RESPONSES: FieldTable = {
    **_SAMPLING,
    **_CACHING,
    **_leaves("instructions max_output_tokens max_tool_calls truncation"),
    "input": _ITEMS,
    "tools": FieldKinds(
        {
            "function": {
                **_leaves("name description strict"),
                "parameters": _ANY,
                "output_schema": _ANY,
            },
            "custom": {**_leaves("name description"), "format": _GRAMMAR},
        },
        text=None,
    ),
    "tool_choice": FieldKinds(
        {**_NAMED, "allowed_tools": {"mode": _SCALAR, "tools": FieldKinds(_NAMED, text=None)}}
    ),
    "parallel_tool_calls": _SCALAR,
    "reasoning": _REASONING,
    "text": _object("verbosity", format=FieldKinds(_FORMAT_KINDS, text=None)),
    "include": FieldChoice(("reasoning.encrypted_content", "message.output_text.logprobs")),
    "store": _NEVER,
    "background": _NEVER,
}

# --- messages -------------------------------------------------------------------------

_PICTURE = FieldKinds({"base64": {"media_type": _SCALAR, "data": _PAYLOAD}}, text=None)
_BLOCK_KINDS: dict[str, FieldTable] = {
    "text": {"text": _SCALAR, "citations": _EMPTY, **_MARKS},
    "image": {"source": _PICTURE, **_MARKS},
}
_BLOCKS = FieldKinds(
    {
        **_BLOCK_KINDS,
        "document": {
            **_leaves("title context"),
            "citations": _object("enabled"),
            "source": FieldKinds(
                {
                    "base64": {"media_type": _SCALAR, "data": _PAYLOAD},
                    "text": _leaves("media_type data"),
                    "content": {"content": FieldKinds(_BLOCK_KINDS)},
                },
                text=None,
            ),
            **_MARKS,
        },
        "thinking": _leaves("thinking signature"),
        "redacted_thinking": _leaves("data"),
        "tool_use": {**_leaves("id name"), "input": _ANY, "caller": _DIRECT, **_MARKS},
        "tool_result": {
            **_leaves("tool_use_id is_error"),
            "content": FieldKinds(_BLOCK_KINDS),
            **_MARKS,
        },
    }
)
_MESSAGES: FieldTable = {
    **_SAMPLING,
    "stop_sequences": _SCALAR,
    "messages": FieldSet({"role": _SCALAR, "content": _BLOCKS}, text=None),
    "system": FieldKinds({"text": _BLOCK_KINDS["text"]}),
    "tools": FieldKinds(
        {
            "custom": {
                **_leaves("name description strict eager_input_streaming"),
                "input_schema": _ANY,
                "input_examples": _ANY,
                **_MARKS,
            }
        },
        usual="custom",
        mark="name",
        text=None,
    ),
    "tool_choice": FieldKinds(
        dict.fromkeys(("auto", "any", "none", "tool"), _leaves("name disable_parallel_tool_use"))
    ),
    "thinking": _THINKING,
    "output_config": _object("effort", format=FieldKinds(_FORMAT_KINDS, text=None)),
    "cache_control": _MARKS["cache_control"],
}

# --- all ------------------------------------------------------------------------------

TABLES: Mapping[str, FieldTable] = {
    "/chat/completions": _CHAT,
    "/completions": {**_SAMPLING, **_CACHING, "prompt": _SCALAR, "store": _NEVER},
    "/responses": _RESPONSES,
    "/messages": _MESSAGES,
    "/messages/count_tokens": _MESSAGES,
    "/embeddings": {
        "model": FieldValue.MODEL,
        **_leaves("input encoding_format dimensions input_type truncate"),
    },
}


def listing() -> Iterator[str]:
    """Yield the lines of the table of fields in docs/model-gateway.md."""
    places: dict[tuple[str, str], list[str]] = {}
    for path, table in TABLES.items():
        for name, rule in table.items():
            places.setdefault((name, _line(rule)), []).append(f"`{path}`")
    plain: dict[str, list[str]] = {}
    yield "| field | of | what it may hold |"
    yield "|---|---|---|"
    for (name, line), paths in places.items():
        where = "all but embeddings" if len(paths) == _TEXT else ", ".join(paths)
        if line == _SCALAR.value:
            plain.setdefault(where, []).append(f"`{name}`")
        else:
            yield f"| `{name}` | {where} | {line} |"
    for where, names in plain.items():
        yield f"| {', '.join(sorted(names))} | {where} | {_SCALAR.value} |"


_TEXT = len(TABLES) - 1  # endpoints that answer with text


def _line(rule: FieldRule) -> str:
    """Return what a rule lets pass, in words."""
    if isinstance(rule, FieldValue):
        return rule.value
    if isinstance(rule, FieldChoice):
        return " or ".join(f"`{value}`" for value in rule.values) or "an empty list"
    if isinstance(rule, FieldSet):
        return _inner(rule.fields)
    kinds = ((kind, _inner(fields)) for kind, fields in rule.kinds.items())
    return "; ".join(f"type `{kind}`: {has}".rstrip(": ") for kind, has in kinds)


def _inner(fields: FieldTable) -> str:
    """Return the fields of an object, those of objects inside it in brackets."""
    parts = []
    for name, rule in sorted(fields.items()):
        is_plain = rule in (FieldValue.SCALAR, FieldValue.ANY)
        parts.append(f"`{name}`" if is_plain else f"`{name}` ({_line(rule)})")
    return ", ".join(parts)
