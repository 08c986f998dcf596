"""Run directories made to hang, exhaust, confuse or misuse whoever reads them.

Each is a whole signed run in which one thing was put in place of another. Every command
that reads a run directory ends by itself, within 10 s of processor time and 1 GB, with
one line that says why, and writes nothing outside. A leaderboard keeps its other rows.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from owa_bench.canonical import sha256
from owa_bench.cli.console import printable
from owa_bench.records.events import ENCODER
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import Segment
from owa_bench.reports import statement
from owa_bench.reports.export import leaderboard as boards
from owa_bench.runs.store import keys
from tests.attacks.tampering import registry_of, write_registry
from tests.builders.limited_commands import MEMORY
from tests.builders.run_directory import KEY, OTHER_KEY, make_plan, make_run

GIB = 1 << 30
CPU_S = 10.0
ESCAPE = "\x1b[31mok\n\u202eall holds"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    layout = make_run(tmp_path_factory.mktemp("whole") / "run", make_plan(2))
    statement.write(layout.root, KEY)
    return layout.root


def first_shard(run):
    return min(run.shards.iterdir())


def sparse(path, size=14 * GIB):
    path.parent.mkdir(exist_ok=True)
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(size)


def put(make, path):
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


def squeezed(data):
    return zstandard.ZstdCompressor(level=1).compress(data)


def add_frames(path, frame, count):
    with path.open("ab") as file:
        file.writelines([frame] * count)


def frame_of(name, body):
    return squeezed(ENCODER.encode(Segment(attempt_id=name, part=0)) + b"\n" + body)


def endless(path):
    path.symlink_to("/dev/zero")


def folders(root, deep, wide):
    for _ in range(deep):
        root = root / ("d" * 20)
        root.mkdir()
    for number in range(wide):
        (root / str(number)).mkdir()


def link_away(name):
    """Put a link to a folder beside the run in place of a part of it."""

    def make(run):
        target = run.root.parent / "elsewhere"
        target.mkdir()
        part = run.root / name
        if part.is_dir():
            shutil.copytree(part, target, dirs_exist_ok=True)
            shutil.rmtree(part)
        part.unlink(missing_ok=True)
        (target / "kept").write_text("mine")
        part.symlink_to(target / "kept" if part.suffix else target)

    return make


def with_field(path, text):
    """Put one more field into a JSON object."""
    path.write_bytes(path.read_bytes().rstrip()[:-1] + b',"more":' + text + b"}")


def same_name(run):
    """A name with a colour, a line end and a change of direction."""
    (run.root / ESCAPE).symlink_to("nowhere")


def a_socket(path):
    here = Path.cwd()
    os.chdir(path.parent)  # its name is bounded
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


HOSTILE = {
    "dense frames, each of some kilobytes": lambda run: add_frames(
        first_shard(run), squeezed(bytes(15 << 20)), 2000
    ),
    "frames of empty lines": lambda run: add_frames(
        first_shard(run), frame_of("000000.0", b"\n" * (15 << 20)), 400
    ),
    "half a million damaged frames": lambda run: add_frames(
        first_shard(run), b"\x28\xb5\x2f\xfd", 500_000
    ),
    "a million small frames": lambda run: add_frames(
        first_shard(run), frame_of("000000.0", b""), 1_000_000
    ),
    "one frame of 14 GB": lambda run: put(
        lambda path: path.write_bytes(gigabytes()), first_shard(run)
    ),
    "blobs without end": lambda run: add_frames(
        min(run.blobs.iterdir()), squeezed(bytes(60 << 20)), 300
    ),
    "a shard of 14 GB": lambda run: sparse(first_shard(run)),
    "a shard of zeros": lambda run: sparse(first_shard(run), GIB),
    "a pack of 14 GB": lambda run: sparse(min(run.blobs.iterdir())),
    "a pipe as shard": lambda run: put(os.mkfifo, first_shard(run)),
    "a pipe as report": lambda run: put(os.mkfifo, run.report_envelope),
    "a pipe as witness": lambda run: put(os.mkfifo, run.witness / "nonce.json"),
    "a pipe as pack": lambda run: put(os.mkfifo, run.pack(7)),
    "a socket": lambda run: put(a_socket, run.root / "s"),
    "a device as shard": lambda run: put(endless, first_shard(run)),
    "a device as plan": lambda run: put(endless, run.plan),
    "a device as registry": lambda run: put(endless, run.registry),
    "a plan nested without end": lambda run: run.plan.write_text("[" * 200_000),
    "a plan with a field nested deeply": lambda run: with_field(run.plan, b"[" * 900 + b"]" * 900),
    "a plan of ten million entries": lambda run: run.plan.write_text(
        '{"entries":[' + "{}," * 10_000_000 + "{}]}"
    ),
    "a plan with a field of ten million lists": lambda run: with_field(
        run.plan, b"[" + b"[]," * 10_000_000 + b"[]]"
    ),
    "a plan that is no text": lambda run: run.plan.write_bytes(b"\xff\xfe" * 999),
    "a plan of gigabytes": lambda run: sparse(run.plan),
    "a plan that is a folder": lambda run: put(Path.mkdir, run.plan),
    "shards that are a file": lambda run: (shutil.rmtree(run.shards), run.shards.write_text("")),
    "leaves of gigabytes": lambda run: sparse(run.leaves),
    "leaves nested without end": lambda run: run.leaves.write_bytes(
        (b"[" * 20_000 + b"\n") * 2_000
    ),
    "a leaf of 60 MB": lambda run: run.leaves.write_bytes(b"[" * 60_000_000),
    "leaves of empty lines": lambda run: run.leaves.write_bytes(b"\n" * 60_000_000),
    "a page of gigabytes": lambda run: sparse(run.page),
    "a report of ten million lists": lambda run: with_field(
        run.report, b"[" + b"[]," * 10_000_000 + b"[]]"
    ),
    "an envelope of ten million signatures": lambda run: with_field(
        run.report_envelope, b'0,"signatures":[' + b'{"sig":""},' * 5_000_000 + b"0]"
    ),
    "a protocol of gigabytes": lambda run: sparse(run.protocol),
    "a registry with a key of many parts": lambda run: run.registry.write_text(
        "a" + ".a" * 130_000 + "=1"
    ),
    "a registry nested without end": lambda run: run.registry.write_text("a=" + "[" * 200_000),
    "a registry of tables in tables": lambda run: run.registry.write_text("a=" + "{a=" * 60_000),
    "a reveal nested deeply": lambda run: run.reveal.write_bytes(
        b'{"master":' + b"[" * 900 + b"]" * 900 + b',"nonce":""}'
    ),
    "a receipt of gigabytes": lambda run: sparse(run.receipts / "replay-9.dsse.json"),
    "a hundred thousand files": lambda run: [
        (run.witness.mkdir(exist_ok=True), (run.witness / str(i)).touch()) for i in range(100_001)
    ],
    "a hundred thousand folders": lambda run: folders(run.root, 1, 100_001),
    "folders in folders": lambda run: folders(run.root, 150, 0),
    "a folder of shards that is itself": lambda run: (
        shutil.rmtree(run.shards),
        run.shards.symlink_to(run.shards),
    ),
    "blobs that lie elsewhere": link_away("blobs"),
    "a site that lies elsewhere": link_away("view"),
    "a half-written site elsewhere": link_away(".view.part"),
    "a half-written page elsewhere": link_away(".report.html.part"),
    "receipts that lie elsewhere": link_away("receipts"),
    "a name that controls a terminal": same_name,
}
# Not fatal to every command: what they leave is judged by the line alone.
SLIGHT = frozenset(
    {
        *("leaves nested without end", "a leaf of 60 MB", "leaves of empty lines"),
        *("a report of ten million lists", "an envelope of ten million signatures"),
        *("a registry with a key of many parts", "a registry nested without end"),
        *("a registry of tables in tables", "a reveal nested deeply"),
        *("a page of gigabytes", "blobs without end", "a shard of zeros"),
        "one frame of 14 GB",
    }
)


def gigabytes():
    """Return a frame of 14 GB in half a megabyte."""
    stream = zstandard.ZstdCompressor(level=1).compressobj()
    zeros = bytes(1 << 26)
    parts = [stream.compress(zeros) for _ in range(14 * GIB >> 26)]
    return b"".join([*parts, stream.flush()])


def commands(run, folder, registry):
    """Return a command line for each command that takes a run directory."""
    return {
        "verify": ["verify", run],
        "recompute": ["recompute", run],
        "report": ["report", run, "--unsigned"],
        "replay": ["replay", run],
        "view": ["view", run],
        "compare": ["compare", f"{run}:agentic", f"{run}:fixed"],
        "export": ["export", run, "--to", "csv", "--out", f"{folder}/tables"],
        "minari": ["export", run, "--to", "minari", "--out", f"{folder}/sets"],
        "leaderboard": [
            *("leaderboard", run, "--registry", registry),
            *("--out", f"{folder}/board"),
        ],
        "readers": ["readers", run],
        "norms": ["norms", run, "--out", f"{folder}/norms.json"],
        "reveal": ["escrow", "reveal", run],
        "witness": ["witness", run, "--nonce", "12345678"],
        "resume": ["run", "--out", run, "--resume"],
        "prune": ["prune", run],
    }


def ends(words, folder, *flags):
    """Return how these commands ended, each in a process of its own."""
    listed = folder / "commands.json"
    listed.write_text(json.dumps([list(map(str, each)) for each in words]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.builders.limited_commands", *flags, listed],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "OWA_BENCH_HOME": str(folder / "home")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def registry(tmp_path):
    layout = RunLayout(tmp_path)
    write_registry(layout, OTHER_KEY)
    return layout.registry.rename(tmp_path / "mine.toml")


@pytest.mark.part(12)
@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_every_command_ends_by_itself_and_says_why(whole, tmp_path, name, registry):
    run = RunLayout(tmp_path / "run")
    shutil.copytree(whole, run.root)
    HOSTILE[name](run)
    keys.ensure(tmp_path / "home", "default")
    words = commands(run.root, tmp_path, registry)
    for command, end in zip(words, ends(words.values(), tmp_path), strict=True):
        where = (name, command, end)
        may_pass = name in SLIGHT or command in ("leaderboard", "reveal", "prune")
        assert end["code"] in ((0, 1, 2) if may_pass else (1, 2)), where
        assert len(end["err"]) <= 1, where
        assert all(line.startswith(("error: ", "note: ")) for line in end["err"]), where
        assert end["err"] or end["code"] == 0, where
        assert end["cpu_s"] < CPU_S, where
        assert end["bytes"] < MEMORY, where
        assert printable("".join(end["err"])) == "".join(end["err"])
    kept = tmp_path / "elsewhere"
    if kept.exists():
        assert (kept / "kept").read_text() == "mine"
        assert {path.name for path in kept.iterdir()} <= {"kept", "00000.pack", "00001.pack"}


WORK_WITHOUT_BOUNDS = {
    "dense frames, each of some kilobytes": "verify",
    "frames of empty lines": "verify",
    "a registry with a key of many parts": "verify",
    "a plan with a field nested deeply": "verify",
    "a half-written page elsewhere": "report",
    "blobs that lie elsewhere": "prune",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK_WITHOUT_BOUNDS)
def test_it_works_where_nothing_is_bounded(whole, tmp_path, name, registry):
    """The control: time or memory runs out, or files elsewhere change."""
    run = RunLayout(tmp_path / "run")
    shutil.copytree(whole, run.root)
    HOSTILE[name](run)
    words = commands(run.root, tmp_path, registry)[WORK_WITHOUT_BOUNDS[name]]
    before = files_of(tmp_path / "elsewhere")
    [end] = ends([words], tmp_path, "--without-bounds")
    exhausted = end["cpu_s"] >= CPU_S or end["bytes"] >= MEMORY or len(end["err"]) > 1
    exhausted |= any("memory of this machine" in line for line in end["err"])
    assert exhausted or files_of(tmp_path / "elsewhere") != before, end


def files_of(folder):
    return {path.name: sha256(path.read_bytes()) for path in folder.glob("*")}


@pytest.mark.slow
def test_a_board_of_ten_with_one_such_has_nine_rows(whole, tmp_path, monkeypatch):
    """The rows are stand-ins: what gives a row has tests of its own."""
    runs = [tmp_path / str(number) for number in range(10)]
    for number, root in enumerate(runs):
        make_run(root, make_plan(1, name=f"run {number}"))
    HOSTILE["dense frames, each of some kilobytes"](RunLayout(runs[3]))
    monkeypatch.setattr(boards, "_rows", stand_in)
    board = boards.leaderboard(runs, registry_of(OTHER_KEY))
    assert {row.run for row in board.rows} == {*"012456789"}
    [refused] = board.refused
    assert refused.run == str(runs[3])
    assert "must unpack to at most" in refused.reason


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda: bytearray(20 << 30), "bytes of memory"),
        (lambda: os.kill(os.getpid(), 9), "its reader ended with code -9"),
        (lambda: [].pop(), "cannot be judged: IndexError"),
    ],
)
def test_a_board_survives_what_no_bound_foresaw(whole, tmp_path, monkeypatch, harm, words):
    def rows(bundle, registry, evaluator):
        if bundle.layout.root.name == "bad":
            harm()
        return stand_in(bundle, registry, evaluator)

    other = make_run(tmp_path / "bad", make_plan(1)).root
    monkeypatch.setattr(boards, "_rows", rows)
    board = boards.leaderboard([other, whole], registry_of(OTHER_KEY))
    assert len(board.rows) == 1
    [refused] = board.refused
    assert refused.run == str(other)
    assert words in refused.reason


def stand_in(bundle, registry, evaluator):
    figure = boards.Figure(0.5)
    yield boards.BoardRow(
        agent="a",
        run=bundle.layout.root.name,
        battery="toolquest",
        rung="V4",
        level="AAI-1",
        gates=(),
        order=1,
        composite=figure,
        supervisor=figure,
        success=figure,
        cost=figure,
        axes=(),
        submitter="",
        plans="",
        made="",
    )
