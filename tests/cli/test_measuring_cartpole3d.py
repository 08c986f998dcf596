"""`owa-bench measure cartpole3d` on units that are done: tables, prints, figures."""

import csv

import msgspec
import pytest
from typer.testing import CliRunner

from owa_bench.cli.app import app
from owa_bench.seeding import stream

pytest.importorskip("torch")
pytestmark = [pytest.mark.rl, pytest.mark.physics]

from owa_bench.subjects import cartpole3d, unit_runs  # noqa: E402


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
        ]
    if unit.kind in ("controls", "played"):
        names = cartpole3d.CONTROLS if unit.kind == "controls" else plan.agents
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
        for first, other in cartpole3d._pairs(plan, (unit.first, *unit.others))
        for p in cartpole3d.SHARES
        for _ in range(plan.retrained)
    ]


@pytest.fixture
def folder(tmp_path):
    plan = cartpole3d.Plan()
    unit_runs._settle(plan, tmp_path)
    (tmp_path / "units").mkdir()
    for unit in cartpole3d.units(plan):
        data = msgspec.json.encode(made(unit, plan))
        (tmp_path / "units" / f"{unit.name}.json").write_bytes(data)
    return tmp_path


def test_a_finished_run_is_measured_and_drawn(folder):
    found = CliRunner().invoke(
        app, ["measure", "cartpole3d", "--out", str(folder), "--resamples", "10"]
    )
    assert found.exit_code == 0, found.output
    for words in ("MCCP complexity", "effective dimension", "handicapped", "gravity"):
        assert words in found.output
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
    }
    with (folder / "pool.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["domain"] for row in rows[::3]] == [str(n) for n in range(17)]


def test_the_tables_can_be_read_again(folder):
    run = CliRunner().invoke
    assert run(app, ["measure", "cartpole3d", "--out", str(folder)]).exit_code == 0
    tables = []
    for name in ("pool", "mixtures", "performances"):
        tables += [f"--{name}", str(folder / f"{name}.csv")]
    found = run(app, ["measure", "aiq", *tables, "--resamples", "10"])
    assert found.exit_code == 0, found.output
    assert "one_step" in found.output


def test_another_plan_needs_another_folder(folder):
    found = CliRunner().invoke(
        app, ["measure", "cartpole3d", "--out", str(folder), "--pool", "5"]
    )
    assert found.exit_code != 0
