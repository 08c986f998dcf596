"""Every axis, index, kappa, lift, AUF and closure of six stored runs, counted again.

The modules beside read JSON lines and TOML and know no name of the package; runs that
are played here are played by its command line.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.golden.test_stored_runs import RUNS, owa_bench, unpack
from tests.recompute.comparison import figures
from tests.recompute.reading import read_run

HERE = Path(__file__).parent
PROTOCOL = HERE.parents[1] / "owa_bench" / "protocols" / "default.toml"
SHORT = {"set_min": 4, "practice_min": 1, "checkpoints_min": 5}


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


@pytest.mark.parametrize("archive", RUNS)
def test_every_figure_of_a_stored_run_is_counted_again(archive, tmp_path):
    count, found = differences(unpack(archive, tmp_path))
    assert not found, "\n".join(found)
    assert count >= 20


@pytest.mark.slow
def test_revision_kappa_and_maintenance_of_a_short_campaign(tmp_path):
    """The stored campaign is too short for them, so one is played on lower numbers."""
    text = PROTOCOL.read_text()
    for name, number in SHORT.items():
        text = re.sub(rf"(?m)^{name} = \d+", f"{name} = {number}", text)
    text = re.sub(r"(?m)^days = 7( +# \[D\] N_days)", r"days = 4\1", text)
    protocol = tmp_path / "short.toml"
    protocol.write_text(text.replace('name = "default', 'name = "short'))
    terms = "--suite toolquest --family reconcile,restock --tier 1 --delta 0"
    terms += " --episodes 2 --days 6 --holdout 4 --maintenance 4 --no-transcripts"
    words = [*terms.split(), "--agent", "self_improving", "--protocol", str(protocol)]
    folder = tmp_path / "sets"
    for command in (["run", "--out", str(folder), *words], ["report", str(folder)]):
        done = owa_bench(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    run = read_run(folder)
    shown = {n: p for n, p, _ in figures(run, run.report["judgement"]["verdicts"][0])}
    # theta too, unless the drift of these drawn days did not bite
    for name in ("R", "kappa of toolquest/restock, slope"):
        assert shown[name] is not None
    assert not differences(folder)[1]


@pytest.mark.slow
def test_memory_and_the_cognitive_gate_of_a_run_of_recall(tmp_path):
    """No stored run holds memory probes, so one is played."""
    terms = "--suite recall --family learning,retrieval --tier 1 --delta 0"
    terms += " --episodes 4 --interventions 0 --no-transcripts"
    agents = ["--agent", "fading_store:half_life=40", "--agent", "bm25"]
    folder = tmp_path / "recall"
    played = ["run", "--out", str(folder), *terms.split(), *agents]
    for command in (played, ["report", str(folder)]):
        done = owa_bench(*command)
        assert done.returncode == 0, done.stdout + done.stderr
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
