"""Planted agents that play trials: their SAIL-ON metrics are what definitions say.

Two trials of six episodes, novelty from the third on (`--before 2,2`). All do nothing
and meet the same starts, so they score the same; they differ in what they state. One
gives up with the novelty: it pushes one way, so that its APTI is known from its scores.
"""

import json

import pytest

from owa_bench.reports.read import bundle
from owa_bench.scoring.novelty import trials

pytest.importorskip("pybullet")
pytestmark = [pytest.mark.physics, pytest.mark.slow]

NOVEL, EPISODES, LAST = 2, 6, 3
PRINTED = 5e-7  # tables hold six decimals
AGENT = '''"""A planted agent: counts its episodes in its memory and states {said}."""

from owa_bench.interfaces import Move


class Planted:
    def reset(self, brief, tools, memory_dir):
        path = memory_dir / "episodes"
        self.place = len(path.read_text()) if path.exists() else 0
        path.write_text("x" * (self.place + 1))

    def act(self, observation, info):
        p = {said}
        said = (("novelty", float(p)), ("novelty_threshold", 0.5))
        return Move({action}, beliefs=said)

    def close(self):
        pass
'''
SAID = {
    "perfect": "self.place >= 2",
    "blind": "False",
    "happy": "True",
    "late": "self.place >= 4",
    "early": "self.place == 1",
    "edge": "0.5 if self.place >= 2 else 0.49",
}


@pytest.fixture
def table(owa, place):
    """Rows of `measure novelty` by agent, and the lanes they were made of."""
    (place / "still.py").write_text("def act(observation, info):\n    return 0\n")
    for name, said in SAID.items():
        (place / f"{name}.py").write_text(AGENT.format(said=said, action=0))
    quits = "1 if self.place >= 2 else 0"
    (place / "quits.py").write_text(AGENT.format(said="False", action=quits))
    agents = " ".join(f"--agent {name}.py" for name in ("still", *SAID, "quits"))
    said = owa(
        "run --suite cartpole3d --family table1/9 --tier 3 --trials 2 "
        f"--episodes {EPISODES} --before {NOVEL},{NOVEL} {agents} --in-process --out t"
    )
    assert said.code == 0, said
    found = owa(f"measure novelty t --last {LAST} --json")
    assert found.code == 0, found
    read = bundle.read(place / "t")
    lanes = trials.complete_trials(read.plan, map(trials.read_trial, read.traces()))
    return {row["agent"]: row for row in json.loads(found.out)["table"]}, lanes


def test_what_is_stated_decides_detection_and_nothing_else(table):
    rows, _ = table
    shown = {
        name: (row["CDT"], row["FN_CDT"], row["FP"], row["count"]) for name, row in rows.items()
    }
    assert shown == {
        "still": (0.0, None, 0.0, 2),
        "perfect": (1.0, 0.0, 0.0, 2),
        "blind": (0.0, None, 0.0, 2),
        "happy": (0.0, None, 1.0, 2),  # its first detection comes before the novelty
        "late": (1.0, 2.0, 0.0, 2),  # episodes 2 and 3 went by
        "early": (0.0, None, 1.0, 2),
        "edge": (1.0, 0.0, 0.0, 2),  # p equal to the threshold is a detection
        "quits": (0.0, None, 0.0, 2),
    }
    assert rows["still"]["note"] == "silent"
    assert rows["blind"]["note"] == ""


def test_equal_play_is_parity_and_reaction_is_a_ratio_of_scores(table):
    rows, lanes = table
    by_hand = []
    for lane in (lane for lane in lanes if lane.arm == "still"):
        scores = [episode.quality for episode in lane.episodes]
        assert [e.novel for e in lane.episodes] == [i >= NOVEL for i in range(EPISODES)]
        by_hand.append((sum(scores[-LAST:]) / LAST) / (sum(scores[:NOVEL]) / NOVEL))
    for name in ("still", *SAID):
        assert (rows[name]["OPTI"], rows[name]["APTI"]) == (0.5, 0.5)
        assert rows[name]["NRP"] == pytest.approx(sum(by_hand) / 2, abs=PRINTED)
    assert all(row["NRP told"] is None for row in rows.values())  # nobody was told


def test_giving_up_shows_in_improvement_alone(table):
    rows, lanes = table
    own = {lane.trial: lane for lane in lanes if lane.arm == "quits"}
    base = {lane.trial: lane for lane in lanes if lane.arm == "still"}

    def improvement(last):
        each = []
        for trial, lane in own.items():
            mine = sum(e.quality for e in lane.episodes[-last:])
            theirs = sum(e.quality for e in base[trial].episodes[-last:])
            each.append(mine / (mine + theirs))
        return sum(each) / len(each)

    assert rows["quits"]["APTI"] == pytest.approx(improvement(LAST), abs=PRINTED)
    assert rows["quits"]["OPTI"] == pytest.approx(improvement(EPISODES - NOVEL), abs=PRINTED)
    assert rows["quits"]["APTI"] < 0.4
    assert rows["quits"]["CDT"] == rows["blind"]["CDT"]
