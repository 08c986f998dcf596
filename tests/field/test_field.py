"""Each server habit of the table, through the chat agent and the `openai` client."""

import base64
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import pytest
import zstandard

from owa_bench.agents.language_model import agent as chat_agent
from owa_bench.agents.language_model import conversation, dialects, endpoint, replies
from owa_bench.errors import OwaError
from owa_bench.hosting.gateway import options as gateway_options
from owa_bench.hosting.gateway import server as gateway_server
from owa_bench.hosting.gateway import session as gateway_session
from owa_bench.hosting.gateway import upstream
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records import token_usage
from owa_bench.records.events import Resource
from owa_bench.records.layout import RunLayout
from owa_bench.records.model_replies import ReplyJudgement
from owa_bench.records.plan import Budget
from owa_bench.records.token_usage import TokenUsage
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch, loop, preflight
from owa_bench.runs.store import files
from owa_bench.sandbox.views import namespaces_fault
from owa_bench.shells import addresses
from tests.field.habits import HABITS, KEY, Habit
from tests.field.server import serving

# An agent in this process that failed is not closed: its connection is collected.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.part(4),
]
HERE = Path(__file__).parent
KINDS = (
    *("shapes", "ids", "nulls", "reasoning", "signatures", "streams", "usage"),
    *("errors in 200", "refused parameters", "refused schemas", "quota", "overload"),
    *("proxies", "keys", "slow", "cut prompts", "mistakes", "addresses", "cache"),
)


class Seen(NamedTuple):
    """What came of a row: its ending, what the user reads, and what was counted."""

    ending: str
    words: str
    tokens: tuple[int, int, int]
    requests: int
    root: Path


def played(habit: Habit, spec: str, tmp_path, monkeypatch) -> Seen:
    """Play a row with an agent."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in habit.env.items():
        monkeypatch.setenv(name, value)
    client = not spec.startswith("language-model")
    said: list[str] = []
    layout = RunLayout(tmp_path / "run")
    with serving(habit.answer) as (url, server):
        place = url + habit.address
        if habit.address == "@":
            place = url.replace("://", "://user:s3cr3tpw@") + "/v1"
        reach = {"model_url": place, **habit.run}
        if "model_cache" in reach:
            reach["model_cache"] = str(tmp_path / "cache")
        asks = 4 in habit.rules or habit.chat == "refused"
        draw = Draw(
            name="toolquest",
            families=("reconcile",),
            tiers=(1,),
            deltas=(0.0,),
            repeats=habit.repeats,
            interventions=(0,),
        )
        request = Request(agents=(spec,), draws=(draw,), budget=Budget(act_s=habit.act_s))
        try:
            run = RunOptions(
                home=tmp_path / "home",
                folder=HERE,
                gateway=GatewayOptions(**reach),
                in_process=not client,
                preflight=said.append if asks else None,
            )
            summary = batch.play(request, layout.root, run)
        except OwaError as error:
            return Seen("refused", str(error), (0, 0, 0), len(server.asked), layout.root)
        asked = len(server.asked)
    traces = [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]
    end = traces[-1].end
    ending = "completion" if end.outcome == "finished" else "mistake"
    used = Counter[str]()
    for event in traces[-1].of(Resource):
        if event.source == "harness":
            used[event.meter] += int(event.amount)
    cached = used["tokens_cached"]
    return Seen(
        "failure" if summary.missing else ending,
        " ".join((*said, end.reason)),
        (used["tokens_in"] + cached, used["tokens_out"], cached),
        asked,
        layout.root,
    )


def chat_spec(habit: Habit) -> str:
    more = f",{habit.options}" if habit.options else ""
    return f"language-model:model=stub,retries=1{more}"


def check(habit: Habit, seen: Seen, ending: str) -> None:
    """Assert what a row says of what was seen."""
    assert seen.ending == ending, seen.words
    if ending != "completion" or 4 in habit.rules:
        assert habit.words in seen.words
    assert_no_key(seen)


def check_chat(habit: Habit, seen: Seen) -> None:
    check(habit, seen, habit.chat)
    if habit.tokens is not None:
        assert seen.tokens == habit.tokens
    if habit.requests is not None:
        assert seen.requests == habit.requests


def assert_no_key(seen: Seen) -> None:
    """Refuse a key or password in what was told, or in any file of the run."""
    secrets = [b"s3cr3tpw"]
    for value in (KEY, f"Bearer {KEY}"):
        coded = base64.b64encode(value.encode()).rstrip(b"=")[:-2]
        secrets += [value.encode(), quote(value).encode(), coded]
    secrets += [KEY.encode().hex().encode()]
    texts = [("words", seen.words.encode())]
    for path in seen.root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zst":
                with path.open("rb") as file:
                    reader = zstandard.ZstdDecompressor()
                    data = reader.stream_reader(file, read_across_frames=True).read()
            texts.append((path.name, data))
    for name, text in texts:
        for secret in secrets:
            assert secret not in text, (name, secret)


def by_name(habits):
    return [pytest.param(h, id=f"{h.kind}: {h.name}".replace(" ", "_")) for h in habits]


def test_the_table_is_wide():
    kinds = Counter(habit.kind for habit in HABITS)
    assert len(HABITS) >= 60
    assert {kind for kind in KINDS if kinds[kind] < 4} == set()
    assert len({(h.kind, h.name) for h in HABITS}) == len(HABITS)


@pytest.mark.part(2)
@pytest.mark.parametrize("habit", by_name(HABITS))
def test_the_chat_agent(habit, tmp_path, monkeypatch):
    check_chat(habit, played(habit, chat_spec(habit), tmp_path, monkeypatch))


@pytest.mark.slow
@pytest.mark.part(4)
@pytest.mark.parametrize("habit", by_name(HABITS))
def test_the_openai_client_in_the_sandbox(habit, tmp_path, monkeypatch):
    pytest.importorskip("openai")
    if fault := namespaces_fault():
        pytest.skip(fault)
    name = "Streamer" if habit.streams else "Client"
    seen = played(habit, f"openai_agent:{name}", tmp_path, monkeypatch)
    # No row says how the client words a mistake.
    theirs = 4 in habit.rules or "mistake" in habit or habit.chat != habit.client
    check(habit._replace(words="" if theirs else habit.words), seen, habit.client)


# --- the eleven rules, each switched off ----------------------------------------------


def old_judge(status, body, path="/chat/completions"):
    """Judge by the status line alone."""
    if status < 300:
        return ReplyJudgement("completion")
    if status == 429 or status >= 500:
        return ReplyJudgement("failure", "overload", f"HTTP {status}")
    return ReplyJudgement("failure", "request", f"HTTP {status}")


def old_usage(reply):
    """Read whole numbers of prompt and completion alone."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    pair = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return TokenUsage(*pair) if all(type(n) is int for n in pair) else None


def rebuilt(self, reply):
    """Send back words and calls alone, with ids made anew in each turn."""
    calls = [
        {"id": c.id or f"call_{i}", "type": "function", "function": c.function}
        for i, c in enumerate(reply.calls)
    ]
    words = {"role": "assistant", "content": reply.content, "tool_calls": calls}
    self._turns.append([words])
    return [call["id"] for call in calls]


def judge_off(patch):
    patch(gateway_server, "judge", old_judge)
    patch(upstream, "judge", old_judge)
    patch(gateway_server, "judge_events", lambda *_: ReplyJudgement("completion"))
    patch(endpoint, "judge", old_judge)


def echo_off(patch):
    patch(conversation.Conversation, "add_reply", rebuilt)
    patch(dialects.Dialect, "others", lambda *_: iter(()))


def options_off(patch):
    fixed = {"temperature": 0.0, "seed": 1, "max_tokens": 9}
    patch(addresses, "endpoint_of", lambda url, path: url.rstrip("/") + path)
    patch(gateway_options.GatewayOptions, "_headers", lambda _: ())
    patch(chat_agent, "_parameters", lambda *_: dict(fixed))


def usage_off(patch):
    patch(token_usage, "usage_in", old_usage)
    patch(token_usage, "decoded", _strictly)
    patch(gateway_session, "usage_in", old_usage)
    patch(gateway_session, "EVENT_END", re.compile(rb"\n\n"))
    patch(gateway_session.ModelRequest, "is_truncated", lambda _: False)
    patch(gateway_server, "_REFUSED", frozenset())


def secrets_off(patch):
    reach = gateway_options.GatewayOptions
    patch(upstream.Scrubber, "clean", lambda _, data: data)
    patch(reach, "_check_secrets", lambda _: None)
    patch(reach, "_key", lambda self: os.environ.get(self.key_env, ""))


def cache_off(patch):
    nowhere = property(lambda _: "", lambda *_: None)
    patch(gateway_session.GatewaySession, "scope", nowhere, raising=False)
    patch(gateway_session.GatewaySession, "begin", _begin_without_place)
    kept = property(lambda record: record.status == 200)
    patch(gateway_session.ModelRequest, "is_completion", kept)
    patch(gateway_server, "judge", lambda *_: ReplyJudgement("completion"))


def arguments_off(patch):
    patch(replies, "_as_schema_says", lambda arguments, _: dict(arguments))
    patch(replies, "MOST_CALLS", 10**6)


def context_off(patch):
    patch(chat_agent.LanguageModelAgent, "_squeeze", lambda *_, **__: False)
    patch(conversation.Conversation, "shorten", lambda _: False)


OFF = {
    1: judge_off,
    2: lambda patch: patch(loop._Episode, "_refuse_provider_failure", lambda *_: None),
    3: echo_off,
    4: lambda patch: patch(preflight, "preflight", lambda *_: iter(())),
    5: options_off,
    6: usage_off,
    7: secrets_off,
    8: lambda patch: patch(addresses, "uses_proxy", lambda _: True),
    9: cache_off,
    10: arguments_off,
    11: context_off,
}


def _strictly(body):
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _begin_without_place(self, record):
    with self._changed:
        self._open.append(record)


@pytest.mark.slow
@pytest.mark.parametrize("rule", OFF)
def test_without_a_rule_rows_turn_red(rule, tmp_path, monkeypatch):
    """At least two of its rows, so that no rule is kept by luck."""
    red = []
    OFF[rule](monkeypatch.setattr)
    for place, habit in enumerate(h for h in HABITS if rule in h.rules):
        folder = tmp_path / str(place)
        try:
            with monkeypatch.context() as here:
                check_chat(habit, played(habit, chat_spec(habit), folder, here))
        except (AssertionError, OwaError, httpx.HTTPError):
            red.append(habit.name)
        if len(red) == 2:
            return
    pytest.fail(f"rule {rule} off: {red} red alone")
