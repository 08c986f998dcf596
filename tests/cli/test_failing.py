"""`owa-bench view --failures`, its filters and `--diff`, on agents that fail as planned."""

import json
import shutil
import subprocess
import sys

import pytest

from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

FAKE = "Traceback (most recent call last):\\n  ValueError: budget:steps refused\\x1b[31m"
AGENTS = f'''
import json


def call(tool, **arguments):
    return json.dumps({{"tool": tool, "arguments": arguments}})


class Plain:
    def reset(self, brief, tools, memory_dir):
        self.acts = 0

    def act(self, observation, info):
        self.acts += 1
        print("{FAKE}")
        return self.turn()

    def close(self):
        pass


class Raises(Plain):
    def turn(self):
        if self.acts == 2:
            raise ValueError("of mine\\\\x1b[31m")
        return call("note", text="n")


class Says(Plain):
    """The control of Raises: it says what the other does."""

    def turn(self):
        return call("note", text="{FAKE}") if self.acts < 3 else call("finish", p=0.1)


class Words(Plain):
    def turn(self):
        return "I refuse."


class Refused(Plain):
    def turn(self):
        return call("http", method="GET", url="https://nowhere.example/")


class Slow(Plain):
    def turn(self):
        return call("wait", seconds=1)
'''
KINDS = {
    "agents:Raises": "raised",
    "agents:Says": "idle",
    "agents:Words": "malformed",
    "agents:Refused": "refused",
    "agents:Slow": "budget",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    (folder / "agents.py").write_text(AGENTS)
    draw = Draw(
        name="toolquest", families=("restock",), tiers=(1,), deltas=(0.0, 0.5), interventions=(0,)
    )
    request = Request(agents=tuple(KINDS), draws=(draw,), budget=Budget(steps=4))
    batch.play(request, folder / "run", RunOptions(home=folder / "home", folder=folder))
    return folder / "run"


@pytest.fixture
def here(broken, place):
    shutil.copytree(broken, place / "run")
    return place


def test_each_agent_has_the_kind_of_what_it_did_whatever_it_says(owa, here):
    said = json.loads(owa("view run --failures --json").out)
    kinds = {row["arm"]: row["kind"] for row in said["episodes"]}
    arms = [name.partition(":")[2] for name in KINDS]
    assert {arm: kinds[arm] for arm in arms} == dict(zip(arms, KINDS.values(), strict=True))
    assert {row["detail"] for row in said["episodes"] if row["kind"] == "budget"} == {"steps"}
    assert all(row["missing"] for row in said["episodes"])
    (record,) = said["tracebacks"].values()
    assert 'raise ValueError("of mine' in record


def test_the_screen_says_what_to_look_at_and_shows_the_traceback_whole(owa, here):
    said = owa("view run --failures")
    assert said.code == 0
    for kind in KINDS.values():
        assert f"  {kind}: " in said.out
    assert "Traceback (most recent call last)" in said.out
    assert "\x1b" not in said.out  # what controls a terminal is escaped
    assert "open run/view/index.html#" in said.out
    assert not (here / "run" / "view").exists()


def test_filters_list_what_they_name(owa, here):
    def listed(options):
        return [row["episode"]["arm"] for row in json.loads(owa(f"view run {options} --json").out)]

    assert set(listed("--kind raised")) == {"Raises"}
    assert set(listed("--kind raised,budget:steps")) >= {"Raises", "Slow"}
    assert len(listed("--arm Words --drift 0.5")) == len(listed("--arm Words")) / 2
    assert set(listed('--grep "I refuse."')) == {"Words"}
    assert sorted(listed("--failed") + listed("--solved")) == sorted(listed("--drift 0,0.5"))
    shown = owa("view run --kind idle")
    assert "idle, missed" in shown.out
    assert "off the path at step 1" in shown.out


def test_two_agents_on_one_instance(owa, here):
    said = owa("view run --diff Slow Refused")
    assert said.code == 0
    assert "They differ first at step 1: another action." in said.out
    assert "not reached" in said.out
    for words in ("success", "quality", "own cost, USD", "supervisor, USD, simulated"):
        assert words in said.out
    assert "q_state" not in said.out
    pair = json.loads(owa("view run --diff Slow Slow --json").out)
    assert pair["first"] is None
    line = next(line for line in said.out.splitlines() if line.startswith("own cost, USD"))
    assert f"{pair['one']['cost_usd']:.4f}" in line
    assert "supervisor_usd" in pair["one"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--failed --solved", "must stand without --solved"),
        ("--kind nothing", "`--kind` must be one of"),
        ("--drift much", "`--drift` must be magnitudes"),
        ("--arm nobody", "`--arm` must be one of"),
        ("--diff Slow nobody", "`--diff` must be an attempt"),
        ("--diff Slow Slow --failures", "must stand without --failures"),
        ("--failures --serve", "writes a site"),
        ("--failed --out there", "writes a site"),
    ],
)
def test_options_that_make_no_sense_are_refused(owa, here, options, words):
    said = owa(f"view run {options}")
    assert said.code == 2
    assert words in said.err


def test_help_loads_nothing_heavy():
    code = (
        "import sys; import owa_bench.cli.app, owa_bench.cli.viewing; "
        "print([m for m in ('scipy', 'matplotlib', 'owa_bench.reports') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
