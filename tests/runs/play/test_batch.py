"""One call from a request to a run directory, and what it refuses."""

import json
import os
import shutil
from pathlib import Path

import pytest

from owa_bench.canonical import peek
from owa_bench.drift import timeline as timelines
from owa_bench.errors import (
    AgentSpecError,
    BatteryError,
    PlanError,
    ProtocolError,
    RunDirectoryError,
    UnknownNameError,
    UsageError,
)
from owa_bench.records import shards
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import directory, files, keys
from owa_bench.seeding import commitment


def test_a_run_directory_holds_what_it_should(played, small, run_options):
    layout = played(small("noop"))
    plan = read_plan(layout)
    assert json.loads(peek(layout.plan_envelope.read_bytes())) == json.loads(
        layout.plan.read_bytes()
    )
    assert plan.public_key == keys.public_hex(keys.load(run_options.home))
    assert len(plan.commitment) == 64
    assert plan.created
    assert layout.protocol.read_bytes().startswith(b"# OWA-Bench default protocol")
    assert not layout.reveal.exists()
    found = batch.summary(layout)
    assert (found.entries, found.complete, found.missing) == (1, 1, 0)


def test_the_plan_is_written_before_episode_0(tmp_path, run_options, small):
    found = batch.play(small("noop"), tmp_path / "run", run_options, plan_only=True)
    assert (found.complete, found.missing) == (0, 1)
    assert not RunLayout(tmp_path / "run").shards.exists()
    assert batch.resume(tmp_path / "run", run_options).missing == 0


def test_the_master_stays_at_home(played, small, run_options):
    layout = played(small("noop"))
    (escrow,) = (run_options.home / "escrow").iterdir()
    secret = json.loads(escrow.read_bytes())
    nonce, master = bytes.fromhex(secret["nonce"]), bytes.fromhex(secret["master"])
    assert commitment(nonce, master) == read_plan(layout).commitment
    for path in layout.root.rglob("*"):
        if path.is_file():
            assert secret["master"].encode() not in path.read_bytes()
            assert master not in path.read_bytes()


def test_progress_is_told_of_every_attempt(played, small):
    seen = []
    played(small("noop", "fixed"), progress=seen.append)
    assert [(it.entry.arm, it.done, it.total) for it in seen] == [("noop", 1, 2), ("fixed", 2, 2)]
    assert [it.end.success for it in seen] == [False, True]


def test_a_finished_run_resumes_to_itself(played, small, run_options):
    layout = played(small("noop"))
    before = batch.summary(layout)
    assert batch.resume(layout.root, run_options) == before


def test_the_same_request_resumes_and_another_is_refused(played, small, run_options):
    layout = played(small("noop"))
    again = batch.play(small("noop"), layout.root, run_options, resume=True)
    assert again.missing == 0
    with pytest.raises(UsageError, match=r"differs .* in: arms, entries"):
        batch.play(small("noop", "fixed"), layout.root, run_options, resume=True)
    request = small("noop", budget=Budget(steps=3))
    with pytest.raises(UsageError, match="budget"):
        batch.play(request, layout.root, run_options, resume=True)


def test_a_run_is_not_played_over(played, small, run_options):
    layout = played(small("noop"))
    with pytest.raises(UsageError, match="holds a run; resume it"):
        batch.play(small("noop"), layout.root, run_options)


def test_other_peoples_files_are_left_alone(tmp_path, small, run_options):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("x")
    with pytest.raises(RunDirectoryError, match="must be empty or a run"):
        batch.play(small("noop"), tmp_path / "run", run_options)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_resuming_what_is_no_run(tmp_path, small, run_options):
    with pytest.raises(RunDirectoryError, match="no run to resume"):
        batch.play(small("noop"), tmp_path / "gone", run_options, resume=True)
    assert not (tmp_path / "gone").exists()
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        batch.resume(tmp_path / "gone", run_options)


def test_out_that_is_a_file_or_cannot_be_made(tmp_path, small, run_options):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="must be a folder, and it is a file"):
        batch.play(small("noop"), tmp_path / "file", run_options)
    with pytest.raises(RunDirectoryError, match="cannot be made: Not a directory"):
        batch.play(small("noop"), tmp_path / "file" / "run", run_options)


def test_nothing_is_played_once_the_seeds_are_public(tmp_path, small, run_options):
    out = tmp_path / "run"
    batch.play(small("noop"), out, run_options, plan_only=True)
    escrow.reveal(run_options.home, RunLayout(out))
    with pytest.raises(UsageError, match="is revealed: its seeds are public"):
        batch.resume(out, run_options)


def test_a_whole_run_that_is_revealed_resumes_to_itself(played, small, run_options):
    layout = played(small("noop"))
    escrow.reveal(run_options.home, layout)
    assert batch.resume(layout.root, run_options).missing == 0


def test_an_agent_that_changed_is_not_resumed(tmp_path, small, run_options):
    agent = tmp_path / "mine.py"
    agent.write_text("def act(observation, info):\n    return '{}'\n")
    here = RunOptions(home=run_options.home, folder=tmp_path, in_process=True)
    request = small("mine.py", budget=Budget(steps=2))
    batch.play(request, tmp_path / "run", here, plan_only=True)
    agent.write_text("def act(observation, info):\n    return '{} '\n")
    with pytest.raises(UsageError, match=r"in: agent mine.py"):
        batch.resume(tmp_path / "run", here)


def test_packages_that_changed_are_not_resumed(tmp_path, small, run_options, monkeypatch):
    batch.play(small("noop"), tmp_path / "run", run_options, plan_only=True)
    monkeypatch.setattr(directory, "environment", lambda: (("python", "2.7"),))
    with pytest.raises(UsageError, match="in: environment"):
        batch.resume(tmp_path / "run", run_options)


def test_without_the_master_nothing_goes_on(tmp_path, small, run_options):
    batch.play(small("noop"), tmp_path / "run", run_options, plan_only=True)
    shutil.rmtree(run_options.home / "escrow")
    with pytest.raises(UsageError, match="No master lies"):
        batch.resume(tmp_path / "run", run_options)


def test_a_second_player_is_refused(tmp_path, small, run_options, monkeypatch):
    batch.play(small("noop"), tmp_path / "run", run_options, plan_only=True)
    monkeypatch.setattr(directory, "_LOCK_PATIENCE_S", 0.1)
    with (
        directory.locked(tmp_path / "run"),
        pytest.raises(UsageError, match="being played by another process"),
    ):
        batch.resume(tmp_path / "run", run_options)


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (Request(agents=("noop",)), UsageError, "Give one of a battery"),
        (Request(agents=("noop",), battery="demmo"), UnknownNameError, "`demo`"),
        (Request(agents=("nop",), battery="demo"), UnknownNameError, "Did you mean `noop`"),
        (Request(agents=("gone:Agent",), battery="demo"), AgentSpecError, "no module `gone`"),
    ],
)
def test_nothing_is_written_for_a_bad_request(tmp_path, run_options, request_, error, words):
    with pytest.raises(error, match=words):
        batch.play(request_, tmp_path / "run", run_options)
    assert not list((tmp_path / "run").glob("*"))
    assert not run_options.home.exists()


def test_an_agent_that_cannot_be_imported_is_refused_at_once(tmp_path, small, run_options):
    (tmp_path / "broken.py").write_text("import no_such_library\n")
    here = RunOptions(home=run_options.home, folder=tmp_path)
    with pytest.raises(AgentSpecError, match="ModuleNotFoundError: No module named"):
        batch.play(small("broken.py"), tmp_path / "run", here)


def test_a_bad_protocol_names_its_field(tmp_path, small, run_options):
    path = tmp_path / "mine.toml"
    path.write_text('schema = "owa-protocol-1"\nname = 7\n')
    with pytest.raises(ProtocolError):
        batch.play(small("noop", protocol=str(path)), tmp_path / "run", run_options)
    request = small("noop", protocol=str(tmp_path / "gone.toml"))
    with pytest.raises(UsageError, match="protocol must be a file"):
        batch.play(request, tmp_path / "run", run_options)
    with pytest.raises(UnknownNameError, match="Did you mean `default`"):
        batch.play(small("noop", protocol="defualt"), tmp_path / "run", run_options)


def test_a_battery_that_cannot_give_a_level_says_so(tmp_path, run_options):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[[suite]]\nname = "toolquest"\n')
    with pytest.raises(BatteryError, match="at least 20 instances"):
        batch.play(Request(agents=("noop",), battery=str(path)), tmp_path / "run", run_options)


def test_fewer_than_one_worker():
    with pytest.raises(PlanError, match="`workers` must be at least 1, got 0"):
        RunOptions(home=None, workers=0)


def test_a_verifiers_nonce_gives_other_seeds(tmp_path, small, run_options):
    seeds = set()
    for nonce in (None, "from the verifier"):
        out = tmp_path / f"run {nonce}"
        batch.play(small("noop", verifier_nonce=nonce), out, run_options)
        layout = RunLayout(out)
        (leaf,) = files.read_leaves(layout)
        seeds.add(files.read_trace(layout, leaf).start.instance.seed)
    assert len(seeds) == 2


def test_no_secret_of_the_world_reaches_the_run_directory(played, small):
    layout = played(small("odd_agents:TellsAll", "fixed"), in_process=False)
    traces = [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]
    assert "{secret:" in traces[0].end.reason
    world = timelines.base_world(traces[0].start.instance)
    values = [secret.value for it in world.providers for secret in it.secrets]
    whole = b"".join(
        (*_plain(layout), *(p.read_bytes() for p in layout.root.rglob("*") if p.is_file()))
    )
    assert values
    assert not [value for value in values if value.encode() in whole]


def _plain(layout):
    """Return the lines of every shard: compressed bytes would hide a secret."""
    return [
        line
        for path in files.shard_paths(layout)
        for frame in shards.scan(path)
        for line in frame.lines
    ]


def test_a_kill_while_the_plan_is_written_leaves_a_folder_to_play_in(
    tmp_path, small, run_options, monkeypatch
):
    out = tmp_path / "run"
    for name in ("price_card", "plan_envelope", "plan"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", killed_at(getattr(RunLayout(out), name)))
            with pytest.raises(KeyboardInterrupt):
                batch.play(small("noop"), out, run_options)
        assert not RunLayout(out).plan.exists()
        assert any(out.iterdir())
    (out / "mine.txt").write_text("x")
    with pytest.raises(RunDirectoryError, match="must be empty or a run"):
        batch.play(small("noop"), out, run_options)
    (out / "mine.txt").unlink()
    batch.play(small("noop"), out, run_options, plan_only=True)
    assert not list(out.glob(".*"))


def killed_at(target):
    """Return a `Path.replace` under which a process ends before `target` is there."""
    replace = Path.replace

    def stop(path, to):
        if Path(to) == target:
            raise KeyboardInterrupt
        return replace(path, to)

    return stop


def test_a_name_of_bytes_that_are_no_text_is_refused(tmp_path, small, run_options):
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(RunDirectoryError, match="must have a name in UTF-8"):
        batch.play(small("noop"), out, run_options)


def test_a_name_of_many_scripts_is_a_name(tmp_path, small, run_options):
    out = tmp_path / "ä run [red] $x$ 日本\n{secret:a:b}"
    found = batch.play(small("noop"), out, run_options)
    assert found.missing == 0
    assert read_plan(RunLayout(out)).entries
