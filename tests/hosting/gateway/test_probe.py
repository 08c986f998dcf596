"""The model probe against servers of many habits: one row a habit."""

import shlex
from typing import get_args

import httpx
import msgspec
import pytest

from owa_bench.errors import FieldError, UsageError
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.probe import probe_server
from owa_bench.hosting.gateway.probe_advice import command_of, flags_of, options_of
from owa_bench.hosting.gateway.probe_client import ProbeClient
from owa_bench.hosting.gateway.probe_requests import FindingName, ProbeState
from tests.builders.chat_server import MODEL, Habits, chat_server

pytestmark = pytest.mark.part(2)

KEY = "sk-very-secret-key-of-a-person"
ADDRESS = "http://model.example/v1"
VERDICTS = dict.fromkeys(get_args(FindingName), "yes")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\r\n")


def probe(habits, *, url=ADDRESS, model=MODEL, key="", seconds=30.0):
    """Return what the probe finds at a server of these habits."""
    options = GatewayOptions(model_url=url, model_key_env=key)
    transport = httpx.ASGITransport(chat_server(habits).app())
    return probe_server(options, model, seconds=seconds, transport=transport)


# habits, finding, verdict, words in its detail or advice, options beside the model
ROWS = {
    "a full server calls tools": ({}, "tools", "yes", "calls add", {}),
    "and answers a second turn": ({}, "second turn", "yes", "accepted", {}),
    "and obeys required": ({}, "tool_choice=required", "yes", "a call", {}),
    "and obeys a name": ({}, "tool_choice=NAME", "yes", "a call", {}),
    "and calls twice": ({}, "parallel calls", "yes", "2 calls", {}),
    "and keeps to a seed": ({}, "seed", "yes", "says the same", {}),
    "and counts": ({}, "usage", "yes", "9 written", {}),
    "and counts streams": ({}, "usage in streams", "yes", "9 tokens", {}),
    "and counts what was cached": ({}, "cached counts", "yes", " of ", {}),
    "and has a speed": ({}, "tokens per second", "yes", "by usage", {}),
    "and reads long prompts": ({}, "context reached", "yes", "at least", {}),
    "tools are refused": (
        {"tools": "refused", "required": "refused"},
        "tools",
        "refused",
        "does not support tools",
        {},
    ),
    "usage of a server that refuses tools": (
        {"tools": "refused", "required": "refused"},
        "usage",
        "yes",
        "9 written",
        {},
    ),
    "no tool parser, but required works": (
        {"tools": "no parser"},
        "tools",
        "refused",
        "--tool-call-parser",
        {"tool_choice": "required"},
    ),
    "prose": ({"tools": "prose"}, "tools", "no", "in prose", {"tool_choice": "required"}),
    "it calls at temperature 0 alone": ({"tools": "cold"}, "tools", "yes", "calls add", {}),
    "calls in the text": (
        {"tools": "text", "required": "ignored"},
        "tools",
        "no",
        "llama.cpp: --jinja",
        {},
    ),
    "required is refused": (
        {"required": "refused"},
        "tool_choice=required",
        "refused",
        "not supported",
        {},
    ),
    "required is ignored": (
        {"required": "ignored"},
        "tool_choice=required",
        "no",
        "no call follows",
        {},
    ),
    "arguments are objects": ({"tools": "objects"}, "tools", "yes", "an object", {}),
    "calls without ids": ({"tools": "no ids"}, "tools", "yes", "have no id", {}),
    "a seed is refused": (
        {"refuses": ("seed",)},
        "seed",
        "refused",
        "Unsupported",
        {"seed": "none"},
    ),
    "a seed is ignored": ({"seeded": False}, "seed", "no", "other things", {}),
    "a temperature is refused": (
        {"refuses": ("temperature",)},
        "temperature=0",
        "refused",
        "temperature=none",
        {"temperature": "none", "seed": "none"},
    ),
    "a busy server refuses nothing": (
        {"busy_with": "temperature"},
        "temperature=0",
        "not tried",
        "no reply to go by: HTTP 429",
        {},
    ),
    "max_tokens is refused": (
        {"refuses": ("max_tokens",)},
        "reply cap",
        "yes",
        "max_completion_tokens",
        {"max_tokens": "none", "max_completion_tokens": "4096"},
    ),
    "every cap is refused": (
        {"refuses": ("max_tokens", "max_completion_tokens")},
        "reply cap",
        "refused",
        "Unsupported",
        {"max_tokens": "none"},
    ),
    "a cap is ignored": ({"written": 900}, "reply cap", "no", "900 tokens", {}),
    "no usage": ({"usage": False}, "usage", "no", "unknown", {}),
    "no usage, so no context": (
        {"usage": False},
        "context reached",
        "not tried",
        "counts no tokens",
        {},
    ),
    "speed by pieces": ({"usage": False}, "tokens per second", "yes", "pieces of text", {}),
    "no usage in streams": (
        {"stream_usage": False},
        "usage in streams",
        "no",
        "count no tokens",
        {},
    ),
    "stream_options are refused": (
        {"refuses": ("stream_options",)},
        "usage in streams",
        "refused",
        "Unsupported",
        {},
    ),
    "no counts of cached tokens": (
        {"cached": False},
        "cached counts",
        "no",
        "no cached tokens",
        {},
    ),
    "one call at a time": ({"parallel": False}, "parallel calls", "no", "1 calls", {}),
    "reasoning": (
        {"reasoning": "reasoning_content"},
        "reasoning",
        "yes",
        "reasoning_content",
        {"max_tokens": "4096"},
    ),
    "reasoning must be echoed": (
        {"reasoning": "reasoning_content", "needs_reasoning": True},
        "reasoning echoed",
        "yes",
        "must be passed back",
        {"max_tokens": "4096"},
    ),
    "a told context": ({"told": 8192}, "context told", "yes", "8,192", {"context": "8192"}),
    "a long context stays with the default": (
        {"told": 131_072},
        "context told",
        "yes",
        "131,072",
        {},
    ),
    "a context of llama.cpp": (
        {"props": {"default_generation_settings": {"n_ctx": 4096}}},
        "context told",
        "yes",
        "/props",
        {"context": "4096"},
    ),
    "a context of Ollama": (
        {"show": {"model_info": {"qwen3.context_length": 40960}}},
        "context told",
        "no",
        "OLLAMA_CONTEXT_LENGTH",
        {},
    ),
    "num_ctx of Ollama": (
        {"show": {"model_info": {}, "parameters": "stop  x\nnum_ctx   8192"}},
        "context told",
        "yes",
        "8,192",
        {"context": "8192"},
    ),
    "a long prompt is refused": (
        {"longest": 6_000},
        "context reached",
        "yes",
        "maximum context length",
        {"context": None},
    ),
    "prompts are cut without a word": (
        {"cut": 4_096},
        "context reached",
        "no",
        "cut without a word",
        {"context": "4096"},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_habit_is_found_and_gives_its_options(row):
    habits, name, verdict, words, options = row
    found = probe(Habits(**habits))
    finding = found.finding(name)
    assert finding.verdict == verdict, finding
    assert words in f"{finding.detail} {finding.advice}", finding
    rest = dict(found.options)
    assert rest.pop("model") == MODEL
    rest.pop("timeout", None)  # by the speed of this machine
    assert rest.keys() == options.keys()
    assert all(rest[name] == value for name, value in options.items() if value)
    assert found.left_out == 0


def test_a_server_without_calls_cannot_play():
    assert probe(Habits()).can_play
    assert probe(Habits(tools="no parser")).can_play
    assert not probe(Habits(tools="text", required="ignored")).can_play


@pytest.mark.parametrize(
    ("habits", "arguments", "words"),
    [
        (Habits(key="other"), {"key": "MY_KEY"}, "--model-key-env"),
        (Habits(), {"model": "qwen3-8"}, f"did you mean {MODEL}?"),
        (Habits(page=True, path="/else"), {}, "a page"),
        (Habits(), {"url": "http://model.example"}, "--model-url http://model.example/v1"),
        (Habits(status=503), {}, "loading"),
        (Habits(status=429), {}, "HTTP 429"),
    ],
    ids=["wrong key", "wrong model", "page", "no /v1", "loading", "busy"],
)
def test_a_server_that_does_not_answer_is_named_with_the_way_out(habits, arguments, words):
    found = probe(habits, **arguments)
    chat = found.finding("chat")
    assert chat.verdict == "refused"
    assert words in f"{chat.detail} {chat.advice}"
    assert not found.can_play
    assert {f.verdict for f in found.findings[1:]} == {"not tried"}
    assert found.left_out == 0


def test_nothing_listens():
    found = probe_server(GatewayOptions(model_url="http://127.0.0.1:9/v1"), MODEL)
    assert "nothing listens at 127.0.0.1:9" in found.finding("chat").detail


@pytest.mark.parametrize("habits", [Habits(key="other"), Habits(echo_key=True)])
def test_no_key_is_shown(habits):
    found = probe(habits, key="MY_KEY")
    assert "{secret:api_key}" in found.finding("chat").detail
    assert KEY not in str(msgspec.json.encode(found))


def test_a_slow_server_leaves_questions_untried():
    found = probe(Habits(stuck_after=1), seconds=1.5)
    assert found.finding("tools").verdict == "yes"
    assert found.finding("context reached").verdict == "not tried"
    assert found.left_out > 3
    late = probe(Habits(stuck_after=0), seconds=0.1)
    assert "no chat reply within 0.1 s" in late.finding("chat").detail
    half = probe(Habits(stuck_after=1, tools="prose"), seconds=1.5)
    assert half.finding("chat").verdict == "yes"
    assert half.finding("tools").detail == "no time left"


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("http://h/v1/", "http://h/v1"),
        ("https://h/v1/chat/completions", "https://h/v1"),
        ("https://h/openai/d?api-version=1", "https://h/openai/d?api-version=1"),
        (" http://h:8000/v1 ", "http://h:8000/v1"),
    ],
)
def test_addresses_are_read_as_they_are_pasted(address, base):
    provider = GatewayOptions(model_url=address).provider(1)
    assert ProbeClient(provider).base == base


@pytest.mark.parametrize(
    "address",
    [
        "h:8000",
        "ftp://h/v1",
        f"http://me:{KEY}@h/v1",
        f"https://h/?key={KEY}",
        f"me:{KEY}@h:8000",
        f"ftp://me:{KEY}@h/v1",
    ],
)
def test_other_addresses_are_refused(address):
    with pytest.raises(FieldError, match="--model-url") as refused:
        probe_server(GatewayOptions(model_url=address), MODEL)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    "terms",
    [
        {"model_key_env": KEY},
        {"model_key_env": "TWO"},
        {"model_header": (f"api-key={KEY.replace('-', '_')}",)},
        {"model_header": ("api-key=TWO",)},
    ],
)
def test_no_key_is_in_an_error(monkeypatch, terms):
    monkeypatch.setenv("TWO", f"{KEY}\n{KEY}")
    with pytest.raises(UsageError) as refused:
        probe_server(GatewayOptions(model_url=ADDRESS, **terms), MODEL)
    assert KEY not in str(refused.value).replace("_", "-")


def test_the_query_of_an_address_stays_in_every_request():
    server = chat_server(Habits())
    seen = []

    async def note(request):
        seen.append(request.url)
        return await httpx.ASGITransport(server.app()).handle_async_request(request)

    options = GatewayOptions(model_url=f"{ADDRESS}?api-version=1")
    probe_server(options, MODEL, transport=httpx.MockTransport(note))
    assert {url.query for url in seen} == {b"api-version=1"}


@pytest.mark.parametrize(
    ("speed", "thinks", "seconds"),
    [(None, False, None), (500.0, True, None), (10.0, False, "120"), (20.0, True, "420")],
)
def test_a_slow_model_gets_time_for_one_act(speed, thinks, seconds):
    state = ProbeState(ProbeClient(GatewayOptions(model_url=ADDRESS).provider(1)), MODEL)
    state.tokens_per_second, state.thinks = speed, thinks
    assert flags_of(state).get("--act-seconds") == seconds
    assert ("timeout" in options_of(state, VERDICTS)) == bool(seconds)


def test_the_command_can_be_pasted():
    found = probe(Habits(told=8192, tools="prose"))
    found.options.pop("timeout", None)
    command = command_of(found.options, found.flags, ["api-key=MY_KEY"])
    words = shlex.split(command)
    assert words[:5] == ["owa-bench", "run", "--suite", "toolquest", "--tier"]
    assert words[words.index("--model-header") + 1] == "api-key=MY_KEY"
    assert words[-1] == (f"language-model:model={MODEL},tool_choice=required,context=8192")
