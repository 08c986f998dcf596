"""Scripts of speed at their smallest size, and the page that they make."""

import json
import math
import os
import subprocess
import sys
import time

import pytest
import speed
import speeds

from owa_bench.sandbox.views import bubblewrap_fault

WORDS = "ERROR: no server at 10.0.0.1\nERROR: No matching distribution found for p\nERROR: end\n"
SANDBOXED = {"agent_start", "python_desk"}
QUICK = {"recorder"}  # on two cores in less than five seconds
NEEDS = {  # the module of an extra, and the extra's mark
    "actor_kills": ("ray", ()),
    "cartpole3d": ("pybullet", pytest.mark.physics),
    "cartpole3d_batched": ("numba", pytest.mark.physics),
    "changesurf": ("playwright", pytest.mark.browser),
    "run_view": ("playwright", pytest.mark.browser),
    "crew": ("pettingzoo", ()),
    "robot_speed": ("mujoco", ()),
}


def case(name):
    _, mark = NEEDS.get(name, ("", ()))
    marks = [*([] if name in QUICK else [pytest.mark.slow]), *([mark] if mark else [])]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [case(name) for name in speeds.SCRIPTS])
def test_a_script_prints_finite_figures(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name][0])
    if name in SANDBOXED and (fault := bubblewrap_fault()):
        pytest.skip(fault)
    out = tmp_path / "tables"
    done = subprocess.run(
        [sys.executable, speeds.HERE / f"{name}.py", "--small", "--json", out],
        env={**os.environ, "PYTHONPATH": str(speed.ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tables = speed.read(json.loads(out.read_text()))
    assert tables
    for table in tables:
        assert table.rows
        assert faults(table) == []
        assert str(table) in done.stdout
    missing = {row.note for table in tables for row in table.rows if speed.MISSING in row.note}
    if missing:
        pytest.skip("; ".join(sorted(missing)))


def faults(table):
    """Return the rows that have a figure that is no number, or none and no reason."""
    bad = []
    for row in table.rows:
        finite = all(math.isfinite(figure) for figure in row.figures.values())
        if not finite or not (row.figures or row.note):
            bad.append(row.name)
    return bad


def test_a_row_without_a_number_is_a_fault():
    rows = [
        speed.Row("good", {"s": 1.0}),
        speed.Row("nan", {"s": math.nan}),
        speed.Row("none"),
        speed.Row("peer", note="not installed: no wheel"),
    ]
    assert faults(speed.Table("t", rows)) == ["nan", "none"]


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    """2/1, 9/3, 4/4: neither the ratio of the best nor that of the sums, 15/8."""
    assert speed.ratio([2, 9, 4], [1, 3, 4]) == 2


def test_ways_take_turns():
    calls = []
    ways = {name: (lambda name=name: calls.append(name) or len(calls)) for name in "ab"}
    assert speed.in_turns(ways, 2) == {"a": [1, 3], "b": [2, 4]}
    assert calls == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("sign", "figure", "met"),
    [(">=", 2.0, True), (">=", 1.9, False), ("<=", 2.0, True), ("<=", 2.1, False)],
)
def test_an_aim_is_met_on_its_own_side(sign, figure, met):
    assert speed.Aim("x", sign, 2.0).met({"x": figure}) is met


@pytest.mark.parametrize("figures", [{}, {"x": math.nan}])
def test_what_is_no_number_meets_no_aim(figures):
    assert not speed.Aim("x", ">=", 0.0).met(figures)
    assert not speed.Aim("x", "<=", 9.0).met(figures)


def test_a_table_has_a_column_a_figure_and_says_what_is_met():
    aims = [speed.Aim("x", ">=", 0.35), speed.Aim("B", "<=", 38.9)]
    rows = [
        speed.Row("ours", {"x": 0.336, "B": 38.9}, aims),
        speed.Row("peer", {"count": 12_345}),
        speed.Row("alone", {"B": 40.0}, aims, "not installed"),
    ]
    assert str(speed.Table("recorder", rows)).splitlines() == [
        "| recorder | x | B | count | aim | met |",
        "|---|---|---|---|---|---|",
        "| ours | 0.336 | 38.9 |  | x >= 0.35; B <= 38.9 | no; yes |",
        "| peer |  |  | 12,345 |  |  |",
        "| alone (not installed) |  | 40.0 |  | x >= 0.35; B <= 38.9 | not measured; no |",
    ]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (1234567.8, "1,234,568"),
        (7, "7"),
        (math.nan, "nan"),
    ],
)
def test_a_figure_has_three_digits(figure, text):
    assert speed.number(figure) == text


def test_tables_come_back_from_their_json():
    table = speed.Table("t", [speed.Row("r", {"s": 1.5}, [speed.Aim("s", "<=", 2.0)], "note")])
    assert speed.read(json.loads(json.dumps([table]))) == [table]


def test_a_peer_without_an_environment_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "PEERS", tmp_path)
    with speed.peer("mpe2", "simple_spread.py") as (_, fault):
        assert fault == "not installed: `make bench` installs it"
    (tmp_path / "mpe2").mkdir()
    (tmp_path / "mpe2" / "fault").write_text("ERROR: no matching distribution\n")
    with speed.peer("mpe2", "simple_spread.py") as (_, fault):
        assert fault == "not installed: ERROR: no matching distribution"


def peer_of(tmp_path, monkeypatch, code):
    """Give a peer whose program is this code, in our own Python."""
    monkeypatch.setattr(speed, "PEERS", tmp_path)
    binary = tmp_path / "p" / "bin" / "python"
    binary.parent.mkdir(parents=True)
    binary.symlink_to(sys.executable)
    (tmp_path / "p" / "ready").touch()
    program = tmp_path / "program.py"
    program.write_text(code)
    return speed.peer("p", program)


def test_a_peer_answers_each_question(tmp_path, monkeypatch):
    code = """
import json, sys
print("words of its own")
for line in sys.stdin:
    print(json.dumps({"twice": 2 * json.loads(line)["number"]}))
"""
    with peer_of(tmp_path, monkeypatch, code) as (ask, fault):
        assert fault == ""
        assert [ask(number=number) for number in (2, 5)] == [{"twice": 4}, {"twice": 10}]


def test_a_peer_that_ends_names_its_error(tmp_path, monkeypatch):
    peer = peer_of(tmp_path, monkeypatch, "raise KeyError('I agree')")
    with peer as (ask, _), pytest.raises(RuntimeError, match="KeyError: 'I agree'"):
        ask(number=1)


def test_a_command_is_clocked_with_its_memory_and_its_fault(tmp_path):
    began = time.perf_counter()
    code = "import time; time.sleep(.2); x = bytearray(50_000_000)"
    spent = speed.command([sys.executable, "-c", code], tmp_path)
    assert 0.2 <= spent.wall_s <= time.perf_counter() - began
    assert spent.cpu_s > 0
    assert spent.mb > 50
    with pytest.raises(SystemExit, match="went wrong"):
        speed.command([sys.executable, "-c", "raise ValueError('went wrong')"], tmp_path)


def test_a_peer_is_installed_once_and_its_fault_is_kept_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "PEERS", tmp_path)
    monkeypatch.setattr(speeds, "PEERS", {"p": ("more",)})
    commands = []

    def run(command, **_):
        commands.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, int("pip" in command and broken), "", WORDS)

    monkeypatch.setattr(speeds.subprocess, "run", run)
    broken = True
    speeds.install("p")
    with speed.peer("p", "none.py") as (_, fault):
        assert fault == "not installed: ERROR: No matching distribution found for p"
    broken = False
    speeds.install("p")
    assert (tmp_path / "p" / "ready").exists()
    assert not (tmp_path / "p" / "fault").exists()
    assert [command[-2:] for command in commands[1::2]] == [["p", "more"]] * 2
    assert (tmp_path / "p" / "pins").read_text() == "torch==2.13.0\n"
    speeds.install("p")
    assert len(commands) == 4


def test_an_installation_has_a_limit_of_time(monkeypatch):
    monkeypatch.setattr(speeds, "INSTALL_S", 0.1)
    assert speeds.fault_of(["sleep", "5"]) == "it took more than 0.1 s"
    assert speeds.fault_of(["true"]) == ""
    assert speeds.fault_of(["false"]) == "the installation ended with 1"


# --- the driver -----------------------------------------------------------------------

SCRIPT = '''"""Says something."""
import sys
sys.path.insert(0, {here!r})
import speed
speed.main(lambda given: [speed.Table("t", [speed.Row("r", {{"s": {figure}}},
    [speed.Aim("s", "<=", 2)])])], speed.parser(__doc__))
'''


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Return a function that runs the driver on two small scripts, of which one may fail."""
    here = str(speeds.HERE)
    monkeypatch.setattr(speeds, "HERE", tmp_path)
    monkeypatch.setattr(speeds, "RESULTS", tmp_path / "results")
    page = speed.ROOT / ".speeds" / f"test-{os.getpid()}.md"
    page.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(speeds, "PAGE", page)
    monkeypatch.setattr(speeds, "PEERS", {})
    monkeypatch.setattr(speeds, "SCRIPTS", ("first", "second"))
    monkeypatch.setattr(speeds, "code_digest", lambda: "code")

    def run(first, second, *words):
        for name, figure in (("first", first), ("second", second)):
            (tmp_path / f"{name}.py").write_text(SCRIPT.format(here=here, figure=figure))
        monkeypatch.setattr(sys, "argv", ["speeds.py", *words])
        code = speeds.main()
        return code, page.read_text()

    yield run
    page.unlink(missing_ok=True)


def test_a_script_that_fails_does_not_stop_the_rest(driver):
    code, page = driver("1 / 0", "1.5")
    assert code == 1
    assert "Not measured: it failed with `ZeroDivisionError: division by zero`" in page
    assert "| first | | | not measured | |" in page
    assert "| second | t: r | s <= 2 | 1.50 | yes |" in page


def test_what_was_measured_is_kept_and_what_failed_is_measured_again(driver):
    driver("1 / 0", "1.5")
    code, page = driver("2.5", "9.9")
    assert code == 0
    assert "| first | t: r | s <= 2 | 2.50 | no |" in page
    assert "| second | t: r | s <= 2 | 1.50 | yes |" in page
    _, page = driver("2.5", "9.9", "--fresh", "second")
    assert "| second | t: r | s <= 2 | 9.90 | no |" in page


def test_a_script_of_a_small_size_is_measured_again_at_the_whole(driver):
    _, page = driver("1.0", "1.0", "--small")
    assert page.count("at small size") == 2
    _, page = driver("1.0", "1.0")
    assert "at small size" not in page


def test_every_script_that_measures_speed_is_in_the_driver():
    """Who takes the shared arguments is measured by `make bench`."""
    found = {p.stem for p in speeds.HERE.glob("*.py") if "speed.main(" in p.read_text()}
    assert found - {"speed"} == set(speeds.SCRIPTS)


def test_every_peer_has_its_program_and_every_program_a_script():
    scripts = "".join(p.read_text() for p in speeds.HERE.glob("*.py"))
    programs = [p.name for p in (speeds.HERE / "peers").glob("*.py")]
    assert [name for name in programs if f'"{name}"' not in scripts] == []
    assert [name for name in speeds.PEERS if f'speed.peer("{name}",' not in scripts] == []


def test_the_page_holds_every_script():
    text = (speed.ROOT / "docs" / "benchmarks.md").read_text()
    assert [
        name for name in speeds.SCRIPTS if f"## `python benchmarks/{name}.py`" not in text
    ] == []
