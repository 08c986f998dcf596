"""`owa-bench measure cartpole3d` on units that are done: tables, prints, figures."""

import csv

import msgspec
import pytest
from typer.testing import CliRunner

from owa_bench.cli.app import app
from owa_bench.seeding import stream

pytest.importorskip("torch")
pytestmark = [pytest.mark.rl, pytest.mark.physics, pytest.mark.slow]

from owa_bench.subjects import cartpole, cartpole3d  # noqa: E402


def made(unit, plan):
    """Return rows such as a unit could have, without training anything."""
    rng = stream(0, unit.name)
    if unit.kind in ("force", "gravity"):
        base = 5 if unit.kind == "force" else 200
        return [
            {
                "table": unit.kind,
                "domain": float(base + i),
                "size": size + 3 * i,
                "performance": min(1.0, size / 100),
            }
            for i in range(4)
            for size in (20, 40, 60)
        ] + [
            {
                "table": "entropy",
                "check": unit.kind,
                "domain": float(base + i),
                "coordinate": name,
                "counts": [8, 8 * (i < 2)],
            }
            for i in range(4)
            for name in ("x", "v", "angle", "rate")
        ]
    if unit.kind == "gravities":
        return [
            {
                "table": "gravities",
                "first": first,
                "second": other,
                "p": p,
                "performance": 0.9 - (other - first) / 500 * 4 * p * (1 - p),
            }
            for first in [cartpole.MIXED[unit.first]]
            for other in cartpole.MIXED[unit.first :]
            for p in cartpole3d.SHARES
        ]
    if unit.kind in ("controls", "played"):
        agents = [one.name for one in plan.agents]
        names = cartpole3d.CONTROL_NAMES if unit.kind == "controls" else agents
        return [
            {
                "table": "performances",
                "agent": name,
                "domain": unit.first,
                "performance": float((place + 1) / 10 + 0.2 * rng.random()),
            }
            for place, name in enumerate(names)
        ]
    if unit.kind == "pool":
        sizes = [37, 100, 400]
        rows = [("pool", "x", size) for size in sizes]
        rows += [
            ("handicapped", "x".join(str(n) for n in one), 10 * sum(one))
            for one in cartpole3d.HANDICAPPED
        ]
        return [
            {
                "table": table,
                "domain": unit.first,
                "repeat": unit.repeat,
                "network": name,
                "size": size,
                "performance": min(1.0, 0.2 + size / 500 + 0.1 * rng.random()),
            }
            for table, name, size in rows
        ]
    return [
        {
            "table": "mixtures",
            "first": first,
            "second": other,
            "p": p,
            "performance": 0.9
            - (0.05 + 0.01 * other) * 4 * p * (1 - p) * (first != other)
            + 0.01 * float(rng.random()),
        }
        for first, other in cartpole3d._mixed_pairs(unit, plan)
        for p in cartpole3d.SHARES
        for _ in range(plan.retrained)
    ]


@pytest.fixture
def folder(tmp_path):
    return finished(cartpole3d.MeasurementPlan(), tmp_path)


def finished(plan, tmp_path):
    """Return a folder whose units are done."""
    cartpole3d._write_plan(plan, tmp_path)
    (tmp_path / "units").mkdir()
    for unit in cartpole3d.units(plan):
        data = msgspec.json.encode(made(unit, plan))
        (tmp_path / "units" / f"{unit.name}.json").write_bytes(data)
    return tmp_path


def test_a_finished_run_is_measured_and_drawn(folder):
    found = CliRunner().invoke(app, ["measure", "cartpole3d", "--out", str(folder)])
    assert found.exit_code == 0, found.output
    for words in ("MCCP complexity", "effective dimension", "handicapped", "gravity"):
        assert words in found.output
    said = " ".join(found.output.split())
    assert "entropy 4.00 to 0.00 bits, r = -0.89" in said
    # planted: DS = 2/3 of the dip less the trapezoid's rest, so exactly proportional
    assert "gravities 0 to 200" in said
    assert "(15 of 15 pairs above); with their difference r = 1.00" in said
    names = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert names == {
        "complexity",
        "dissimilarity",
        "dimensions",
        "space",
        "hulls",
        "agents",
        "handicapped",
        "classic",
        "gravities",
    }
    with (folder / "pool.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["domain"] for row in rows[::3]] == [str(n) for n in range(17)]


def test_repeats_give_intervals_of_complexity(tmp_path):
    finished(cartpole3d.MeasurementPlan(repeats=3), tmp_path)
    command = ["measure", "cartpole3d", "--out", str(tmp_path), "--repeats", "3"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    with (tmp_path / "pool.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["domain"] == "4"]
    assert sorted({row["repeat"] for row in rows}) == ["0", "1", "2"]
    assert len({row["performance"] for row in rows}) > 6  # of 9: trained apart
    read = ["measure", "aiq", "--pool", str(tmp_path / "pool.csv"), "--json"]
    whole = msgspec.json.decode(CliRunner().invoke(app, read).output)
    spans = [one["span"] for one in whole["complexities"]]
    assert all(span["low"] < span["high"] for span in spans)


def test_the_tables_can_be_read_again(folder):
    run = CliRunner().invoke
    assert run(app, ["measure", "cartpole3d", "--out", str(folder)]).exit_code == 0
    tables = []
    for name in ("pool", "mixtures", "performances"):
        tables += [f"--{name}", str(folder / f"{name}.csv")]
    found = run(app, ["measure", "aiq", *tables])
    assert found.exit_code == 0, found.output
    assert "one_step" in found.output


@pytest.fixture
def tried(tmp_path):
    """A run of trials at levels 14 and 16, planted: `good` is twice `poor` at 16."""
    from owa_bench.scoring.novelty.trials import ArmTrial, TrialEpisode

    def lane(arm, level, quality):
        said = [TrialEpisode(i, q, 0.0, 0.5, i > 0, False) for i, q in enumerate(quality)]
        return ArmTrial(arm, f"trial/{level}", f"table1/{level} T1", tuple(said))

    return (
        lane("poor", 14, [0.9, 0.3]),
        lane("poor", 16, [0.9, 0.3]),
        lane("good", 14, [0.9, 0.3]),
        lane("good", 16, [0.9, 0.6]),
        lane("good", 9, [0.9, 0.6])._replace(group="table1/9 T3"),
    )


def test_trials_scale_aiq_by_mean_apti(folder, tried, monkeypatch):
    from owa_bench.cli import measuring_trials as trials

    monkeypatch.setattr(trials, "read_lanes", lambda _run, baseline: (tried, baseline or "poor"))
    arguments = ["measure", "cartpole3d", "--out", str(folder)]
    found = CliRunner().invoke(app, [*arguments, "--trials", "runs/x", "--last", "1"])
    assert found.exit_code == 0, found.output
    assert "AIQ scaled by APTI" in found.output
    assert (folder / "figures" / "apti.svg").exists()
    with (folder / "apti.csv").open() as file:
        rows = {(r["agent"], r["domain"]): r["performance"] for r in csv.DictReader(file)}
    assert rows == {
        ("poor", "14"): "0.500000",
        ("poor", "16"): "0.500000",
        ("good", "14"): "0.500000",
        ("good", "16"): "0.666667",
    }
    # two levels span a triangle: its area goes with the product of the APTIs
    tables = [f"--{name}={folder / name}.csv" for name in ("pool", "mixtures")]
    again = CliRunner().invoke(
        app,
        [
            *("measure", "aiq", *tables, f"--performances={folder / 'apti.csv'}"),
            *("--domains", "14,16", "--json"),
        ],
    )
    assert again.exit_code == 0, again.output
    agents = msgspec.json.decode(again.output)["agents"]
    ratio = agents["good"]["volume"] / agents["poor"]["volume"]
    assert ratio == pytest.approx((0.5 * 0.666667) / 0.25, rel=1e-4)


def test_a_run_without_trials_of_two_levels_is_refused(folder, tried, monkeypatch):
    from owa_bench.cli import measuring_trials as trials

    monkeypatch.setattr(trials, "read_lanes", lambda _run, _baseline: (tried[:1], "poor"))
    found = CliRunner().invoke(
        app, ["measure", "cartpole3d", "--out", str(folder), "--trials", "runs/x"]
    )
    assert found.exit_code != 0
    assert "needs two levels" in str(found.exception or found.output)


def test_another_plan_needs_another_folder(folder):
    found = CliRunner().invoke(app, ["measure", "cartpole3d", "--out", str(folder), "--pool", "5"])
    assert found.exit_code != 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--trials", "x", "--last", "9"), "with last = 9"),
        (("--trials", "x", "--last", "1", "--level", "1", "--level", "2"), "levels 14, 16 too"),
        (("--trials", "gone"), "A run directory must exist, got gone"),
        (("--baseline", "good"), "`--baseline` goes with --trials"),
        (("--spec", "tabel1"), "`--spec` must be one of table1, released"),
    ],
)
def test_wrong_trials_are_said_before_anything_is_trained(
    tmp_path, tried, monkeypatch, flags, said
):
    from owa_bench.cli import measuring_trials as trials

    read = trials.read_lanes
    monkeypatch.setattr(
        trials,
        "read_lanes",
        lambda run, name: (tried, "poor") if run.name == "x" else read(run, name),
    )
    out = tmp_path / "new"
    found = CliRunner().invoke(app, ["measure", "cartpole3d", "--out", str(out), *flags])
    assert said in str(found.exception)
    assert not out.exists()
