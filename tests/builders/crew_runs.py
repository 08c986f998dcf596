"""Runs of the toy suite with seats, as a stranger's installed package."""

import shutil
from pathlib import Path

from owa_bench.records.layout import RunLayout
from owa_bench.runs.store import files
from tests.builders import plugin_package

BUILDERS = Path(__file__).parent
POINTS = {
    "owa_bench.suites": {"relay": "owa_relay:SUITE"},
    "owa_bench.operators": {"relay/new_code": "owa_relay:new_code"},
}


class Crew:
    """The command line in a folder where suite and agents are installed."""

    def __init__(self, folder):
        self.folder = folder
        code = {"owa_relay.py": (BUILDERS / "toy_crew.py").read_text()}
        self.env = plugin_package.install(folder, "owa-relay", code, POINTS)
        for name, place in (("toy_crew_agents", "crew"), ("spy_agent", "spy")):
            text = (BUILDERS / f"{name}.py").read_text()
            (folder / f"{place}.py").write_text(text)

    def owa(self, *arguments):
        done = plugin_package.owa(self.env, *arguments, folder=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def plan(self, name, agent, *terms):
        words = ("run", *terms, "--agent", agent, "--plan-only")
        self.owa(*words, "--out", self.folder / name)
        return self.folder / name

    def play(self, planned, name, *how):
        """Play a copy of a planned run."""
        shutil.copytree(planned, self.folder / name)
        self.owa("run", "--resume", "--out", self.folder / name, *how)
        return RunLayout(self.folder / name)


def traces(layout):
    """Return the traces of a run in order of its plan."""
    leaves = files.rebuild_leaves(layout)
    return [files.read_trace(layout, leaf) for leaf in leaves]
