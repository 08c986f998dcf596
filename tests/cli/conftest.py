"""The command line in this process: its exit code and what it wrote."""

import shlex
import shutil
from typing import NamedTuple

import pytest

from owa_bench.cli import app
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys


class Said(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with a data folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OWA_BENCH_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def owa(place, monkeypatch, capfd):
    """Return a function that runs `owa-bench ARGUMENTS` as the shell would."""

    def call(arguments):
        monkeypatch.setattr("sys.argv", ["owa-bench", *shlex.split(arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            app.main()
        out, err = capfd.readouterr()
        return Said(left.value.code or 0, out, err)

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with a data folder `home/..` and a played, reported run `run`."""
    folder = tmp_path_factory.mktemp("finished")
    home = folder / "home" / ".local" / "share" / "owa-bench"
    draw = Draw(name="toolquest", families=("restock",), tiers=(1,), deltas=(0.0, 1.0))
    request = Request(agents=("fixed", "noop"), draws=(draw,))
    batch.play(request, folder / "run", RunOptions(home=home, in_process=True))
    statement.write(folder / "run", keys.load(home))
    return folder


@pytest.fixture
def run(finished, place):
    """A copy of a played, reported, unrevealed run in the working folder."""
    shutil.copytree(finished, place, dirs_exist_ok=True)
    return RunLayout(place / "run")
