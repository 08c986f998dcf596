"""The code a plan names: whose files are in it, and what older plans are told."""

import json
import shutil
import types

import msgspec
import pytest

import owa_bench
from owa_bench import discovery
from owa_bench.canonical import seal
from owa_bench.errors import UsageError
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.reports import statement as statements
from owa_bench.reports import verify
from owa_bench.reports.read import bundle
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play import batch
from owa_bench.runs.store import directory, keys

TOOLQUEST = discovery.get("suites", "toolquest")
CHANGESURF = discovery.get("suites", "changesurf")
CARTPOLE3D = discovery.get("suites", "cartpole3d")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of what suites share, which may be changed."""
    top = tmp_path / "owa_bench"
    for name in ("envs", "drift", "repositories"):
        shutil.copytree(directory._PACKAGE / name, top / name)
    for name in ("seeding.py", "canonical.py"):
        shutil.copy(directory._PACKAGE / name, top / name)
    monkeypatch.setattr(directory, "_PACKAGE", top)
    return top


def change(path):
    path.write_bytes(path.read_bytes() + b"\n# changed\n")


def test_the_lock_names_python_and_packages_without_extras():
    lock = dict(directory.environment())
    assert {"python", "platform", "owa-bench", "numpy", "msgspec"} <= set(lock)
    assert "torch" not in lock  # an extra is no part of what the run rests on


@pytest.mark.parametrize(
    ("suite", "own", "other"),
    [
        (TOOLQUEST, "envs/toolquest/world.py", "envs/changesurf/world.py"),
        (TOOLQUEST, "envs/toolquest/world_edits.py", "envs/cartpole3d/world.py"),
        (TOOLQUEST, "envs/toolquest/operators/access.py", "envs/changesurf/operators/access.py"),
        (CHANGESURF, "envs/changesurf/site_spec.py", "envs/toolquest/world.py"),
        (CARTPOLE3D, "envs/cartpole3d/world.py", "envs/changesurf/world.py"),
    ],
)
def test_only_the_world_types_of_the_suite_count(package, suite, own, other):
    before = directory.source_digest(suite)
    change(package / other)
    (package / "envs" / "multicrew" / "world.py").write_text("")
    assert directory.source_digest(suite) == before
    change(package / own)
    assert directory.source_digest(suite) != before


@pytest.mark.parametrize("shared", ["drift/calendar.py", "seeding.py", "canonical.py"])
def test_what_all_suites_draw_with_counts_for_each(package, shared):
    suites = (TOOLQUEST, CHANGESURF, CARTPOLE3D)
    before = [directory.source_digest(suite) for suite in suites]
    change(package / shared)
    after = [directory.source_digest(suite) for suite in suites]
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_equal_code_has_one_digest_wherever_it_lies(tmp_path, monkeypatch):
    before = directory.source_digest(TOOLQUEST)
    copy = tmp_path / "elsewhere" / "owa_bench"
    shutil.copytree(directory._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(directory, "_PACKAGE", copy)
    moved = types.SimpleNamespace(__file__=str(copy / "envs/toolquest/suite.py"))
    monkeypatch.setitem(directory.sys.modules, "owa_bench.envs.toolquest.suite", moved)
    assert directory.source_digest(TOOLQUEST) == before
    (copy / "envs/toolquest/NOTES.md").write_text("not code\n")
    assert directory.source_digest(TOOLQUEST) == before
    change(copy / "envs/toolquest/families/restock.py")
    assert directory.source_digest(TOOLQUEST) != before


def test_templates_and_scripts_of_a_site_are_code():
    names = directory.sources(CHANGESURF)
    assert {
        "envs/changesurf/browser/observer.js",
        "envs/changesurf/server/templates/swap.js",
        "envs/changesurf/server/templates/page.html.j2",
    } <= names.keys()
    assert not any("__pycache__" in name or name.endswith(".md") for name in names)


def test_operators_of_other_packages_count(tmp_path, monkeypatch):
    before = directory.source_digest(TOOLQUEST)
    file = tmp_path / "mine.py"
    file.write_text("class Mine: ...\n")
    module = types.ModuleType("mine")
    module.__file__ = str(file)
    monkeypatch.setitem(directory.sys.modules, "mine", module)
    operator = type("Mine", (), {"__module__": "mine"})()
    found = discovery.find("operators")
    extra = discovery.PluginEntry("api/mine", operator, "a-package")
    monkeypatch.setattr(discovery, "find", lambda kind: {**found, "api/mine": extra})
    first = directory.source_digest(TOOLQUEST)
    assert first != before
    change(file)
    assert directory.source_digest(TOOLQUEST) not in {before, first}
    assert directory.source_digest(CARTPOLE3D) == _without(monkeypatch, found)


def _without(monkeypatch, found):
    monkeypatch.setattr(discovery, "find", lambda kind: found)
    return directory.source_digest(CARTPOLE3D)


# --- plans of an earlier version ----------------------------------------------------


def older(layout, run_options):
    """Rewrite the plan as a version wrote it that knew fewer fields; signed."""
    document = json.loads(layout.plan.read_bytes())
    for suite in document["suites"]:
        del suite["source_rule"], suite["native"]
    for entry in document["entries"]:
        del entry["role_cap"], entry["muted"]
    payload = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    layout.plan.write_bytes(payload)
    key = keys.load(run_options.home, run_options.key)
    layout.plan_envelope.write_bytes(seal(PLAN_TYPE, payload, key))


@pytest.fixture
def planned(tmp_path, small, run_options):
    """A run as an earlier version left it before its first episode."""
    out = tmp_path / "run"
    batch.play(small("noop"), out, run_options, plan_only=True)
    layout = RunLayout(out)
    older(layout, run_options)
    return layout


def test_an_older_plan_is_not_gone_on_with_and_says_why(planned, small, run_options):
    with pytest.raises(UsageError, match="rule of another version") as raised:
        batch.resume(planned.root, run_options)
    assert "suite toolquest" in str(raised.value)
    with pytest.raises(UsageError, match="rule of another version"):
        batch.play(small("noop"), planned.root, run_options, resume=True)


def test_a_run_under_an_older_plan_is_still_whole(planned, run_options, monkeypatch):
    monkeypatch.setattr(directory, "other_code", lambda suites: {})
    found = batch.resume(planned.root, run_options)
    assert found.plan_digest == bundle.read(planned.root).plan_digest
    key = keys.load(run_options.home, run_options.key)
    statements.write(planned.root, key)
    faults = [c for c in verify.verify(planned.root) if not c.ok]
    assert faults == []
    escrow.reveal(run_options.home, planned)
    replays = replay.replay_run(planned)
    assert replays.passed
    assert "rule of another version" in replays.other_code["toolquest"]


def test_changed_code_is_told_from_an_older_rule(played, small):
    plan = read_plan(played(small("noop")))
    assert directory.other_code(plan.suites) == {}
    (suite,) = plan.suites
    changed = msgspec.structs.replace(suite, source_digest="0" * 64)
    assert "has changed" in directory.other_code([changed])["toolquest"]


def test_the_package_is_where_the_digest_thinks():
    assert directory._PACKAGE.name == owa_bench.__name__
