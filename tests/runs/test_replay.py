"""Replay after the reveal, on real runs of ToolQuest."""

import shutil
from pathlib import Path

import msgspec
import pytest
import zstandard

from owa_bench import discovery
from owa_bench.canonical import unseal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records import shards
from owa_bench.records.events import (
    Action,
    Belief,
    Call,
    EpisodeEnd,
    EpisodeStart,
    Intervention,
    Message,
    ModelCall,
    Resource,
)
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.trace import Trace
from owa_bench.records.witness import Receipt
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch, episode_setup
from owa_bench.runs.store import directory, files, keys
from tests.builders.recorded_again import recorded_again

pytestmark = pytest.mark.part(2)

TALKER = '''
from owa_bench.interfaces import Move
from owa_bench.records.events import Message, ModelCall

class Talker:
    """Asks the supervisor, reads the vault, tells it to everybody, and ends."""

    def reset(self, brief, tools, memory_dir):
        self.script = [
            '{"tool":"vault","arguments":{}}',
            '{"tool":"ask_supervisor","arguments":{"question":"what now?"}}',
            "no call at all",
            '{"tool":"finish","arguments":{"answer":"","p":0.25,"beliefs":{}}}',
        ]
        self.beliefs = tuple((name, 0.75) for name in brief.propositions)

    def act(self, observation, info):
        return Move(
            self.script.pop(0),
            usage=(("tokens_in", 12), ("cpu_s", 0.5)),
            messages=(Message(step=0, sender="me", digest="hello"),),
            model_calls=(ModelCall(step=0, model="m", prompt="p", reply="r"),),
            beliefs=self.beliefs,
        )

    def close(self):
        pass

AGENT = Talker
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def played(tmp_path_factory, home) -> RunLayout:
    """A revealed run: three tiers, drift, OAuth, writes, hints, declared events."""
    folder = tmp_path_factory.mktemp("agents")
    (folder / "talker.py").write_text(TALKER)
    out = tmp_path_factory.mktemp("runs") / "run"
    request = Request(
        agents=("oracle", "agentic", "random", str(folder / "talker.py")),
        draws=(Draw(name="toolquest", tiers=(1, 3), deltas=(0.0, 0.5), interventions=(1,)),),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(escrow, "fresh_bytes", lambda: b"the same in every test run")
        summary = batch.play(request, out, RunOptions(home=home, in_process=True))
    assert summary.missing == 0
    escrow.reveal(home, RunLayout(out))
    return RunLayout(out)


@pytest.fixture(scope="module")
def traces(played):
    return [files.read_trace(played, leaf) for leaf in files.read_leaves(played)]


@pytest.fixture
def copy(played, tmp_path) -> RunLayout:
    shutil.copytree(played.root, tmp_path / "copy")
    return RunLayout(tmp_path / "copy")


def first_only(kind, **changes):
    """Return a change of the first event of a kind, and no other."""
    seen = []

    def change(event):
        if isinstance(event, kind) and not seen:
            seen.append(event)
            return msgspec.structs.replace(event, **changes)
        return event

    return change


@pytest.mark.slow
def test_every_attempt_replays(played, traces) -> None:
    told = []
    replays = replay.replay_run(played, progress=told.append)
    assert [a for a in replays.attempts if a.outcome != "same"] == []
    assert len(replays.attempts) == len(traces) == len(told)
    assert replays.passed
    assert replays.other_code == {}


def test_what_replays_includes_oauth_keys_writes_hints_and_words(traces) -> None:
    of = [event for trace in traces for event in trace.events]
    sent = [e.target for e in of if isinstance(e, Call) and e.method == "POST"]
    assert any(target.endswith("token") for target in sent), sent
    assert any("{secret:" in e.action for e in of if isinstance(e, Action))
    assert any(e.method == "POST" for e in of if isinstance(e, Call))
    assert any(isinstance(e, Intervention) and e.kind == "hint" for e in of)
    assert any(isinstance(e, ModelCall) for e in of)
    assert any(isinstance(e, Message) for e in of)
    assert any(isinstance(e, Belief) and e.kind == episode_setup.INTERIM for e in of)
    assert any(isinstance(e, Resource) and e.meter == "cpu_s" for e in of)
    assert any(trace.start.realised > 0 for trace in traces)


def test_secrets_of_the_worlds_appear_nowhere_in_the_run(played, traces) -> None:
    suite = discovery.get("suites", "toolquest")
    canaries = {
        part.encode()
        for trace in traces
        for provider in suite.generate(trace.start.instance).providers
        for secret in provider.secrets
        for part in (secret.value, secret.value.split(":")[-1])
    }
    assert len(canaries) > 10
    for path in (path for path in played.root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = b"".join(b"\n".join(frame.lines) for frame in shards.scan(path))
            assert b"{secret:" in data
        assert not [canary for canary in canaries if canary in data], path


@pytest.mark.parametrize(
    ("kind", "changes", "named"),
    [
        (EpisodeEnd, {"q_state": 0.123}, "0.123"),
        (EpisodeEnd, {"success": True, "quality": 0.9}, "recorded"),
        (Action, {"reward": 0.5}, '"reward":0.5'),
        (Action, {"action": '{"tool":"wait","arguments":{"seconds":7}}'}, "recorded"),
        (EpisodeStart, {"horizon": 99}, '"horizon":99'),
        (Resource, {"amount": 77.0}, '"amount":77.0'),
    ],
)
def test_insiders_edit_is_found_though_all_hashes_fit(copy, traces, kind, changes, named) -> None:
    agent = [trace for trace in traces if trace.start.arm != "oracle"]
    lost = [trace for trace in agent if trace.end.q_state < 0.9]
    # What an agent declares, and processor time, is in no replay.
    if kind is Resource:
        lost = [t for t in lost if next(iter(t.of(kind))).source == "env"]
    changed = lost[:2]
    recorded_again(copy, changed, first_only(kind, **changes))
    first, second = replay.replay_run(copy).attempts
    assert first.outcome == "different"
    assert named in first.detail
    assert second.outcome == "same"


def test_declared_usage_cannot_be_measured_again(copy, traces) -> None:
    """A limit that every report prints: what an agent declares is its word."""
    talker = next(t for t in traces if t.start.agent.endswith("talker.py"))

    def change(event):
        if isinstance(event, Resource) and event.source == "agent":
            return msgspec.structs.replace(event, amount=1.0)
        return event

    recorded_again(copy, [talker], change)
    assert replay.replay_run(copy).passed


def test_other_seed_is_found(copy, traces) -> None:
    start = traces[0].start
    other = msgspec.structs.replace(start.instance, seed=start.instance.seed ^ 1)
    recorded_again(copy, traces[:1], first_only(EpisodeStart, instance=other))
    (found,) = replay.replay_run(copy).attempts
    assert found.outcome == "different"
    assert '"seed"' in found.detail


def test_dropped_and_added_events_are_found(copy, traces) -> None:
    whole = next(trace for trace in traces if len(trace.events) > 30)
    events = whole.events
    place = next(i for i, e in enumerate(events) if isinstance(e, Call))
    for edited in (events[:place] + events[place + 1 :], events[: place + 1] + events[place:]):
        recorded_again(copy, [Trace(whole.leaf, edited)], lambda event: event)
        assert replay.replay_run(copy).attempts[0].outcome == "different"


@pytest.mark.parametrize(
    ("call", "end", "outcome"),
    [
        ({}, {}, "same"),
        ({"status": 299}, {}, "exempt"),
        ({"status": 299}, {"q_state": 0.0, "quality": 0.0}, "exempt"),
        ({"status": 299}, {"outcome": "agent_timeout"}, "different"),
        ({"status": 299}, {"reason": "budget:wall_s"}, "different"),
        ({}, {"q_state": 2.0}, "different"),
        ({}, {"quality": 2.0}, "different"),
    ],
)
def test_what_a_clock_decided_is_worth_at_most_what_the_replay_reaches(
    copy, traces, call, end, outcome
) -> None:
    earlier = first_only(Call, **call)
    last = first_only(EpisodeEnd, timed=True, **end)
    recorded_again(copy, traces[:1], lambda event: last(earlier(event)))
    replays = replay.replay_run(copy)
    assert [a.outcome for a in replays.attempts] == [outcome]
    assert replays.passed == (outcome == "same")


def test_before_the_reveal_nothing_can_be_replayed(copy) -> None:
    copy.reveal.unlink()
    with pytest.raises(UsageError, match="escrow reveal"):
        replay.replay_run(copy)


def test_nothing_complete_is_nothing_to_replay(copy) -> None:
    for shard in files.shard_paths(copy):
        shard.unlink()
    with pytest.raises(UsageError, match="no complete episode yet"):
        replay.replay_run(copy)


def test_reveal_of_another_master_is_refused(copy) -> None:
    copy.reveal.write_text('{"master":"00","nonce":"11"}')
    with pytest.raises(CheckFailure, match="commitment"):
        replay.replay_run(copy)


def test_damaged_attempt_is_named_and_the_others_are_played(copy) -> None:
    path = copy.shard(0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    found = replay.replay_run(copy)
    assert not found.passed
    [lost] = [x for x in found.attempts if x.outcome == "different"]
    assert "evidence is damaged" in lost.detail


def test_some_episodes_are_drawn_afresh(played) -> None:
    drawn = [tuple(a.attempt_id for a in replay.replay_run(played, 3).attempts) for _ in range(4)]
    assert all(len(set(ids)) == 3 for ids in drawn)
    assert len(set(drawn)) > 1
    with pytest.raises(UsageError, match="at least 1, got 0"):
        replay.replay_run(played, 0)


def test_other_code_is_named(played, monkeypatch) -> None:
    monkeypatch.setattr(directory, "source_digest", lambda suite: "0" * 64)
    assert "has changed" in replay.replay_run(played, 1).other_code["toolquest"]


def test_receipt_is_signed_by_whoever_replayed(copy, tmp_path) -> None:
    key = keys.ensure(tmp_path / "second party")
    replays = replay.replay_run(copy, 2)
    receipt = replay.sign(copy, replays, key)
    replay.sign(copy, replays, key)
    name = f"replay-{keys.short_name(key)}"
    files = sorted(path.name for path in copy.receipts.glob("replay-*"))
    assert files == [f"{name}-2.dsse.json", f"{name}.dsse.json"]
    envelope = (copy.receipts / f"{name}.dsse.json").read_bytes()
    payload = unseal(envelope, bytes.fromhex(receipt.public_key), RECEIPT_TYPE)
    assert msgspec.json.decode(payload, type=Receipt) == receipt
    assert receipt.passed
    assert len(receipt.episodes) == 2
    assert receipt.evidence_root == replays.evidence_root


def test_zstd_frames_of_a_run_are_read_by_any_zstd(played) -> None:
    path = played.shard(0)
    reader = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True)
    lines = reader.read().splitlines()
    assert sum(b'"event":"episode_end"' in line for line in lines) == len(files.read_leaves(played))
