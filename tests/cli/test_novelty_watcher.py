"""The example agent of trials: it states what it sees, or what it is told."""

import json

import pytest

AGENT = "examples/agents/novelty_watcher.py"


@pytest.mark.physics
def test_it_detects_a_longer_pole_and_states_what_it_is_told(owa, place, request):
    pytest.importorskip("pybullet")
    agent = request.config.rootpath / AGENT
    said = owa(
        "run --suite cartpole3d --family table1/9 --tier 3 --trials 1 --episodes 4 "
        f"--before 2,2 --given-detection --agent {agent} --in-process --out t"
    )
    assert said.code == 0, said
    found = owa("measure novelty t --last 2 --json")
    (row,) = json.loads(found.out)["table"]
    assert (row["CDT"], row["FP"], row["count"]) == (1.0, 0.0, 1)
    assert row["NRP told"] is not None


def test_it_is_as_short_as_it_says(request):
    lines = (request.config.rootpath / AGENT).read_text().split('"""', 2)[2]
    written = [x for x in lines.splitlines() if x.strip() and '"""' not in x]
    assert len(written) <= 37  # with the imports
