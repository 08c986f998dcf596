"""Moves that no reader of the trace would take: the writer's bound is the reader's."""

import json

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.canonical import document_digest
from owa_bench.errors import CheckFailure
from owa_bench.hosting import protocol
from owa_bench.records import frames, packs, shards
from owa_bench.records.event_base import LARGEST_ACTION, LARGEST_LINE
from owa_bench.records.events import ENCODER, Action, Artifact, Belief, Resource
from owa_bench.records.plan import Budget
from owa_bench.records.trace import Segment
from owa_bench.reports import statement, verify
from owa_bench.reports.read import bundle
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys, recorder, redaction
from owa_bench.runs.store.output import ShardFiles
from tests.builders import run_directory
from tests.builders.run_directory import make_plan, write_terms

pytestmark = pytest.mark.slow

AGENT = """
class {name}:
    def reset(self, brief, tools, memory_dir):
        self.acts = 0

    def act(self, observation, info):
        self.acts += 1
        return {move}

    def close(self):
        pass
"""
MOVES = {
    "Large": "'x' * 15_000_000",
    "Dense": "'[' * 900_000",
    "Escaped": "'\\x01' * 900_000",
    "Deep": "{'tool': 'note', 'arguments': {'text': '[' * 60_000}}",
}


SMALL = """'{"tool": "vault", "arguments": {}}'"""


@pytest.fixture
def beside_honest(tmp_path):
    """Return a function that plays one of them beside two honest arms."""
    for name, move in {**MOVES, "Small": SMALL}.items():
        text = AGENT.format(name=name, move=move)
        (tmp_path / f"{name.lower()}.py").write_text(text)

    def play(*names, steps=5):
        draw = Draw(
            name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), interventions=(0,)
        )
        hostile = tuple(f"{name.lower()}.py" for name in names)
        request = Request(
            agents=("noop", *hostile, "fixed"), draws=(draw,), budget=Budget(steps=steps)
        )
        options = RunOptions(
            home=tmp_path / "home", folder=tmp_path, failure_share=1.0, in_process=True
        )
        batch.play(request, tmp_path / "run", options)
        layout = batch.RunLayout(tmp_path / "run")
        key = keys.load(options.home, options.key)
        judgement = statement.write(layout.root, key)
        failed = [check.name for check in verify.verify(layout.root) if not check.ok]
        leaves = files.leaves_of_shards(layout)
        readable = (leaf for leaf in leaves if leaf.status != "unreadable")
        traces = [files.read_trace(layout, leaf) for leaf in readable]
        return judgement, failed, {t.start.arm: t.end for t in traces}

    return play


def test_a_hostile_move_costs_its_own_arm_alone(beside_honest):
    judgement, failed, ends = beside_honest(*MOVES)
    assert failed == []
    assert {v.arm for v in judgement.verdicts} >= {"noop", "fixed"}
    assert ends["fixed"].outcome in ("finished", "truncated", "infeasible")
    large = ends["large"]
    assert large.outcome == "agent_raised"
    assert "an action has at most 1,048,576 bytes, got 15,000,000" in large.reason
    assert all(end.outcome != "infrastructure" for end in ends.values())


@pytest.mark.slow
def test_ten_thousand_small_moves_cost_their_own_arm_alone(beside_honest):
    judgement, failed, ends = beside_honest("Small", steps=10_000)
    assert failed == []
    assert {v.arm for v in judgement.verdicts} >= {"noop", "fixed"}
    assert ends["fixed"].outcome in ("finished", "truncated", "infeasible")
    small = ends["small"]
    assert (small.outcome, small.steps) == ("truncated", 10_000)
    assert not small.success


def test_it_works_where_the_writer_has_no_bound(beside_honest, monkeypatch):
    """The control: the run says complete, and its evidence does not read."""
    monkeypatch.setattr(protocol, "LARGEST_ACTION", 1 << 30)
    monkeypatch.setattr(redaction, "LARGEST_LINE", 1 << 30)
    monkeypatch.setattr(shards, "LARGEST_FRAME", 1 << 23)
    judgement, failed, _ = beside_honest("Large")
    assert "frames" in failed
    [hostile] = [v for v in judgement.verdicts if v.arm == "large"]
    assert "does not read and counts as a failure" in " ".join(hostile.warnings)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(
        st.tuples(
            st.sampled_from(["a", "\x01", '"', "\\", "é", "[", "x1y2"]),
            st.integers(0, LARGEST_ACTION // 4),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_reads_back(texts, tmp_path_factory):
    """Lines of any content up to the bound make frames that the reader takes."""
    lines = redaction.LineBuffer(redaction.Redactor(b"k" * 32))
    for place, (letter, count) in enumerate(texts):
        lines.add(move(place + 1, letter * count))
    frame = lines.take()
    path = tmp_path_factory.mktemp("shard") / "00000.jsonl.zst"
    head = ENCODER.encode(Segment(attempt_id="000000.0", part=0))
    squeeze = zstandard.ZstdCompressor(write_checksum=True).compress
    path.write_bytes(squeeze(b"\n".join((head, *frame.lines, b""))))
    [read] = shards.scan(path)
    assert read.lines == tuple(frame.lines)


def move(step, text, seen="0" * 64):
    return Action(
        step=step,
        action=text,
        verified=False,
        reward=0.0,
        terminated=False,
        truncated=False,
        observation=seen,
        at_ms=0,
    )


TEXTS = st.builds(
    lambda text, count: (text * count)[: LARGEST_ACTION // 8],
    st.text(min_size=1, max_size=20).filter(str.isascii) | st.text(max_size=9),
    st.sampled_from([1, 1, 1, 7, 20_000]),
)
EVENTS = st.one_of(
    st.builds(move, st.integers(1, 99), TEXTS),
    st.builds(
        Belief,
        step=st.integers(0, 99),
        proposition=TEXTS,
        kind=st.just("own_success"),
        p=st.floats(0, 1),
        source=st.just("agent"),
    ),
    st.builds(
        Resource,
        step=st.integers(0, 99),
        meter=st.sampled_from(["tokens_in", "api_calls"]),
        amount=st.floats(0, 1e7),
        source=st.sampled_from(["agent", "harness"]),
    ),
    st.builds(
        Artifact,
        step=st.integers(0, 99),
        name=TEXTS,
        blob=st.just("0" * 64),
        media=st.sampled_from(["text/plain", "image/png"]),
        provenance=st.lists(st.integers(0, 1 << 40), max_size=9).map(tuple),
    ),
)


@settings(max_examples=25, deadline=None)
@given(drawn=st.lists(EVENTS, max_size=30), many=st.sampled_from([0, 0, 0, 10_000]))
def test_what_the_recorder_writes_the_reader_reads(drawn, many, tmp_path_factory):
    plan = make_plan(1)
    layout = write_terms(tmp_path_factory.mktemp("drawn") / "run", plan)
    digest = document_digest(plan)
    small = [move(step, "x") for step in range(many)]
    with recorder.Recorder(ShardFiles(layout, 0), digest, b"k" * 32, True) as made:
        writer = made.episode(0, 0)
        start, *_, end = run_directory.events(plan, plan.entries[0], lambda data: "")
        for event in (start, *drawn, *small, end):
            writer.emit(event)
        leaf = writer.close("complete")
    assert files.leaves_of_shards(layout) == (leaf,)
    [trace] = bundle.read(layout.root).traces()
    assert trace.leaf == leaf
    assert trace.events[1:-1] == (*drawn, *small)


def test_a_run_of_dense_moves_reads_back(tmp_path, monkeypatch):
    """Beside the free room: a shard of dense moves, and a pack of dense texts."""
    monkeypatch.setattr(frames, "FLOOR", 0)
    layout = write_dense_run(tmp_path / "run")
    assert [leaf.status for leaf in files.leaves_of_shards(layout)] == ["complete"]
    [pack] = packs.read_packs(layout)
    assert (pack.fault, len(pack.places)) == ("", 40)


def test_dense_moves_are_refused_where_nothing_is_padded(tmp_path, monkeypatch):
    """The control: the same run, written without padding."""
    monkeypatch.setattr(frames, "FLOOR", 0)
    monkeypatch.setattr(recorder, "padding", lambda *_: b"")
    monkeypatch.setattr(packs, "padding", lambda *_: b"")
    layout = write_dense_run(tmp_path / "run")
    with pytest.raises(CheckFailure, match="no run is denser"):
        files.leaves_of_shards(layout)
    [pack] = packs.read_packs(layout)
    assert "no run is denser" in pack.fault


def write_dense_run(root):
    """Record an episode of forty moves of one letter, each kept as a text too."""
    plan = make_plan(1)
    layout = write_terms(root, plan)
    digest = document_digest(plan)
    with recorder.Recorder(ShardFiles(layout, 0), digest, b"k" * 32, True) as made:
        writer = made.episode(0, 0)
        start, *_, end = run_directory.events(plan, plan.entries[0], lambda data: "")
        writer.emit(start)
        for step in range(40):
            text = chr(ord("A") + step) * (LARGEST_ACTION // 2)
            writer.emit(move(step + 1, text, writer.blob(text.encode())))
        writer.emit(end)
        writer.close("complete")
    return layout


def test_a_frame_holds_the_longest_line():
    assert LARGEST_LINE + (256 << 10) + LARGEST_ACTION < shards.LARGEST_FRAME
    # An action escaped letter by letter fits a line.
    assert 6 * LARGEST_ACTION < LARGEST_LINE
    assert len(json.dumps("\x01" * LARGEST_ACTION)) < LARGEST_LINE


def test_declared_text_is_bounded_too():
    reply = protocol.AgentReply(action="x", beliefs=(("b" * LARGEST_ACTION, 0.5),))
    with pytest.raises(protocol.AgentRaised, match="declares has at most 1,048,576"):
        protocol.as_move(reply)
