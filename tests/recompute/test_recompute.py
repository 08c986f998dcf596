"""Every axis, index, kappa, lift, AUF and closure of six stored runs, counted again.

The modules beside read JSON lines and TOML and know no name of the package; runs that
are played here are played by its command line.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.slices import by_commit
from tests.golden.test_stored_runs import ARCHIVES, NAMES, owa_bench, unpack
from tests.recompute.comparison import figures
from tests.recompute.reading import read_run

HERE = Path(__file__).parent
PROTOCOL = HERE.parents[1] / "owa_bench" / "protocols" / "default.toml"
BATTERY = """
name = "short"
protocol = "{protocol}"
gives_level = false

[[suite]]
name = "toolquest"
families = ["reconcile", "restock"]
tiers = [1]
deltas = [0]
episodes = 2
interventions = [0, "protocol"]

[[suite]]
name = "recall"
families = ["retrieval"]
tiers = [1]
deltas = [0]
once = true

[campaign]
days = 6
holdout = 4
maintenance = 4
dynamics = ["A", "P", "$"]
"""
RECORDER = HERE.parents[1] / "benchmarks" / "record_runs.py"
SHORT = {"set_min": 4, "practice_min": 1, "checkpoints_min": 5}


def play(folder, *words):
    """Play and report a run whose worlds are the same every time."""
    command = [sys.executable, str(RECORDER), "--under", "5a" * 32]
    command += ["run", "--out", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    done = owa_bench("report", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr


def differences(folder):
    """Return the number of figures compared, and those that differ at 6 decimals."""
    run, count, found = read_run(folder), 0, []
    for verdict in run.report["judgement"]["verdicts"]:
        for name, printed, own in figures(run, verdict):
            count += 1
            if not same(printed, own):
                found.append(f"{verdict['arm']}: {name} is {own}, printed {printed}")
    return count, found


def same(printed, own):
    """Return whether two figures agree; reports print seven significant digits."""
    if isinstance(printed, (int, float)) and isinstance(own, (int, float)):
        return abs(printed - own) <= 6e-7 * max(1.0, abs(printed))
    return printed == own


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=NAMES)
def test_every_figure_of_a_stored_run_is_counted_again(archive, tmp_path):
    count, found = differences(unpack(archive, tmp_path))
    assert not found, "\n".join(found)
    assert count >= 20


@pytest.mark.part(4)
@pytest.mark.slow
def test_revision_kappa_and_maintenance_of_a_short_campaign(tmp_path):
    """The stored campaign is too short for them, so one is played on lower numbers."""
    text = PROTOCOL.read_text()
    for name, number in SHORT.items():
        text = re.sub(rf"(?m)^{name} = \d+", f"{name} = {number}", text)
    text = re.sub(r"(?m)^days = 7( +# \[D\] N_days)", r"days = 4\1", text)
    # Four tasks of tier 1 may be shallow.
    text = text.replace("depth_share = 0.75", "depth_share = 0.5")
    protocol = tmp_path / "short.toml"
    protocol.write_text(text.replace('name = "default', 'name = "short'))
    battery = tmp_path / "short_battery.toml"
    battery.write_text(BATTERY.format(protocol=protocol))
    folder = tmp_path / "sets"
    play(folder, "--battery", str(battery), "--agent", "self_improving")
    run = read_run(folder)
    shown = {n: p for n, p, _ in figures(run, run.report["judgement"]["verdicts"][0])}
    # theta too, unless the drift of these drawn days did not bite
    for name in ("R", "kappa of toolquest/restock, slope", "kappa, slope"):
        assert shown[name] is not None
    assert not differences(folder)[1]


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.timeout(900)  # 464 s beside other tests
def test_revision_of_campaigns_inside_episodes(tmp_path):
    """R of SelfRev, every capability and e-value from the inner attempts."""
    folder = tmp_path / "selfrev"
    families = ",".join(("rules", *by_commit(("memory", "mixed", "programs"), 3)))
    terms = f"--suite selfrev --family {families} --tier 1 --delta 0"
    agents = ["--agent", "revise_bonferroni", "--agent", "revise_greedy"]
    play(folder, *terms.split(), "--no-transcripts", *agents)
    run = read_run(folder)
    honest = figures(run, run.report["judgement"]["verdicts"][0])
    assert {name: printed for name, printed, _ in honest}["R"] > 0.05
    assert not differences(folder)[1]


@pytest.mark.part(4)
@pytest.mark.slow
def test_memory_and_the_cognitive_gate_of_a_run_of_recall(tmp_path):
    """No stored run holds memory probes, so one is played."""
    terms = "--suite recall --family learning,retrieval --tier 1 --delta 0"
    terms += " --episodes 4 --interventions 0 --no-transcripts"
    agents = ["--agent", "fading_store:half_life=40", "--agent", "bm25"]
    folder = tmp_path / "recall"
    play(folder, *terms.split(), *agents)
    run = read_run(folder)
    for verdict in run.report["judgement"]["verdicts"]:
        shown = {name: printed for name, printed, _ in figures(run, verdict)}
        assert 0 < shown["M"] < 1
        assert 0 < shown["delayed recall"] < 1
    assert not differences(folder)[1]


def test_nothing_of_the_package_is_imported():
    for path in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", ())]
            module = getattr(node, "module", None)
            for name in [module] if module else names:
                assert not str(name).startswith("owa_bench"), f"{path.name}: {name}"
