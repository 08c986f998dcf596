"""From the command line's agent text to a judged report, over a real server."""

import json
import shutil

import pytest

from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records.events import ModelCall
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.runs import assembly, replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.resolve import Resolver
from owa_bench.runs.store import files, keys
from owa_bench.seeding import instance_seed
from tests.builders.stub_server import TOKENS_IN, TOKENS_OUT, completion, error, serving

KEY = "sk-canary-91b7d0c2e4"
FAMILIES = ("reconcile", "sla_report")


def request(families=FAMILIES):
    return Request(
        agents=("language-model:model=stub,retries=0",),
        draws=(Draw(name="toolquest", families=families, tiers=(1,), deltas=(0.0,)),),
        sandbox="none",  # the stub listens on this machine's loopback
    )


def read_aloud(layout, home):
    """Return the oracle's script of every entry by the entry's family."""
    plan = read_plan(layout)
    root = escrow.find(home, plan.commitment).master
    scripts = {}
    for entry in plan.entries:
        instance = Resolver(plan)(entry, instance_seed(root, entry.pair)).instance
        actions = assembly.script(instance.suite, instance)
        scripts[entry.family] = [json.loads(a) for a in actions]
    return scripts


def by_script(scripts):
    """Return a model that knows the answer; it states p = 0.9 and hides no key."""

    def policy(messages):
        family = json.loads(messages[1]["content"].split("JSON:\n")[1].split("\n\n")[0])
        place = sum(message["role"] == "assistant" for message in messages)
        step = scripts[family["family"]][place]
        if step["tool"] == "finish":
            step = {"tool": "finish", "arguments": {"answer": "done", "p": 0.9}}
        return completion((step["tool"], step["arguments"]), content=f"psst: {KEY}")

    return policy


def events_of(layout):
    return [files.read_trace(layout, leaf).events for leaf in files.read_leaves(layout)]


def test_t1_is_solved_and_its_tokens_are_priced(tmp_path, monkeypatch):
    monkeypatch.setenv("OWA_STUB_KEY", KEY)
    home = tmp_path / "home"
    layout = RunLayout(tmp_path / "run")
    scripts = {}
    with serving(lambda messages: by_script(scripts)(messages), KEY) as url:
        gateway = GatewayOptions(
            model_url=url, model_key_env="OWA_STUB_KEY", model_cache=str(tmp_path / "cache")
        )
        run_options = RunOptions(home=home, gateway=gateway)
        batch.play(request(), layout.root, run_options, plan_only=True)
        scripts.update(read_aloud(layout, run_options.home))
        assert batch.resume(layout.root, run_options).missing == 0
    traces = events_of(layout)
    calls = [e for events in traces for e in events if isinstance(e, ModelCall)]
    assert all(e[-1].q_state == 1.0 and e[-1].stated == 0.9 for e in traces)
    assert len(calls) == sum(map(len, scripts.values()))

    key = keys.load(run_options.home, run_options.key)
    judged = statement.write(layout.root, key)
    (verdict,) = judged.verdicts
    (used,) = [table for table in verdict.tables if table.title == "resources"]
    spent = {row[:2]: row[2] for row in used.rows}
    assert spent["agent", "tokens_in"] == TOKENS_IN * len(calls)
    assert spent["agent", "tokens_out"] == TOKENS_OUT * len(calls)
    assert "tokens_out" in layout.page.read_text()
    tokens_micro_usd = len(calls) * (3 * TOKENS_IN + 15 * TOKENS_OUT)
    assert verdict.cost_micro_usd["agent"] >= tokens_micro_usd
    failed = [check for check in verify.verify(layout.root) if not check.ok]
    assert failed == []
    escrow.reveal(run_options.home, layout)
    assert replay.replay_run(layout).passed
    assert_nowhere(KEY, layout.root)
    assert_nowhere(KEY, tmp_path / "cache")


def assert_nowhere(word, folder):
    """Refuse a folder in which a word stands, compressed shards opened."""
    import zstandard

    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zst":
                with path.open("rb") as file:
                    reader = zstandard.ZstdDecompressor()
                    data = reader.stream_reader(file, read_across_frames=True).read()
            assert word.encode() not in data, path


@pytest.mark.slow
def test_the_cache_plays_again_without_a_server(tmp_path):
    """A run that was begun and thrown away is played again offline, to the same end."""
    run_options = RunOptions(home=tmp_path / "home")
    scripts = {}
    ends = []
    first = RunLayout(tmp_path / "first")
    cache = str(tmp_path / "cache")
    with serving(lambda messages: by_script(scripts)(messages)) as url:
        gateway = GatewayOptions(model_url=url, model_cache=cache)
        asked = request(("reconcile",))
        batch.play(asked, first.root, run_options, plan_only=True)
        again = [tmp_path / "second", tmp_path / "third"]
        for place in again:
            shutil.copytree(first.root, place)
        scripts.update(read_aloud(first, run_options.home))
        batch.resume(first.root, RunOptions(home=run_options.home, gateway=gateway))
    offline = GatewayOptions(model_cache=cache)
    for place in again:  # the server has gone
        batch.resume(place, RunOptions(home=run_options.home, gateway=offline))
    roots = {batch.summary(RunLayout(place)).replay_root for place in again}
    ends = [events[-1].q_state for place in again for events in events_of(RunLayout(place))]
    assert len(roots) == 1
    assert ends == [1.0, 1.0]
    calls = [e for e in events_of(RunLayout(again[0]))[0] if isinstance(e, ModelCall)]
    assert calls
    assert all(call.cached for call in calls)


def refuse(messages):
    return error(400, "maximum context length is 10 tokens")


FAILURES = {
    "endless loop": (lambda m: completion(("vault", {})), "endless loop", "agent_raised"),
    "overflow": (refuse, "context=", "agent_raised"),
    "prose": (lambda m: completion(content="Hm."), "support tool calls", "agent_raised"),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_the_agents_and_the_run_goes_on(name, tmp_path):
    policy, says, outcome = FAILURES[name]
    with serving(policy) as url:
        gateway = GatewayOptions(model_url=url)
        run_options = RunOptions(home=tmp_path / "home", gateway=gateway)
        summary = batch.play(request(), tmp_path / "run", run_options)
    assert summary.missing == 0
    for events in events_of(RunLayout(tmp_path / "run")):
        assert events[-1].outcome == outcome
        assert says in events[-1].reason


def test_no_server(tmp_path):
    gateway = GatewayOptions(model_url="http://127.0.0.1:9/v1")
    run_options = RunOptions(home=tmp_path / "home", gateway=gateway)
    summary = batch.play(request(("reconcile",)), tmp_path / "run", run_options)
    assert summary.missing_through_provider == summary.missing == 1
    for events in events_of(RunLayout(tmp_path / "run")):
        assert events[-1].outcome == "infrastructure"
        assert events[-1].reason.startswith("ProviderFailure: the server could not be reached")


def test_a_refused_key_is_no_failure_of_the_agent(tmp_path):
    with serving(lambda m: completion(("vault", {})), KEY) as url:
        gateway = GatewayOptions(model_url=url)
        run_options = RunOptions(home=tmp_path / "home", gateway=gateway)
        summary = batch.play(request(("reconcile",)), tmp_path / "run", run_options)
    assert summary.missing_through_provider == summary.missing == 1
