"""What an agent is given is the same, byte for byte, in a control and in a scored arm.

The agent is a program of its own that hands back its protocol lines, arguments,
environment, working folder and memory folder (`spy_agent`).
"""

import json
import re
import sys

import pytest

from owa_bench.records.events import Message
from owa_bench.records.packs import Transcripts
from tests.builders.crew_runs import Crew, traces

pytestmark = pytest.mark.slow  # programs in processes of their own

SPY = f"{sys.executable} spy.py"
PLACE = re.compile(r"(?:/[^/\"]+)+/owa-memory-[^/\"]+/memory")
BARE = ("--delta", 0, "--interventions", 0)
CAMPAIGN = ("--days", 3, "--practice", 1, *BARE)
# What a brief may hold. A marker of phase, day, lane, arm, cap or mute is not in it.
TOLD = {
    *("text", "goal", "propositions", "budgets", "interventions_left"),
    *("role", "session", "seed"),
}


@pytest.fixture(scope="module")
def crew(tmp_path_factory):
    """Return the folder of a stranger's crew suite and of the program."""
    return Crew(tmp_path_factory.mktemp("blind"))


@pytest.fixture(scope="module", params=["auto", "none"])
def hosted(request):
    """Return how the program is held: sandboxed, and in the open."""
    return ("--sandbox", request.param)


@pytest.fixture(scope="module")
def crewed(crew, hosted):
    """Return a run of crews of one and two, muted and not."""
    terms = ("--suite", "relay", *BARE, "--crews", "1,2,2:muted,open")
    name = f"crews-{hosted[1]}"
    return crew.play(crew.plan(f"plan-{name}", SPY, *terms, *hosted), name)


@pytest.fixture(scope="module")
def days(crew, hosted):
    """Return campaigns of three days, without a word in memory and with one a day."""

    def play(agent, name):
        terms = ("--suite", "relay", *CAMPAIGN)
        return crew.play(crew.plan(f"plan-{name}", agent, *terms, *hosted), name)

    name = f"days-{hosted[1]}"
    return play(SPY, name), play(f"{SPY} --keep", f"{name}-kept")


def given(layout, trace, seat=None):
    """Return the texts that the program of a seat handed back, in order.

    Folders of memory have random names: each stands as "MEMORY".
    """
    blobs = Transcripts(layout)
    found = (m for m in trace.of(Message) if m.source == "agent")
    texts = (blobs.read(m.digest).decode() for m in found if seat in (None, m.role))
    return [PLACE.sub("MEMORY", text) for text in texts]


def places(layout):
    """Return the memory folders of all episodes, as the program was told them."""
    blobs = Transcripts(layout)
    for trace in traces(layout):
        texts = [blobs.read(m.digest).decode() for m in trace.of(Message)]
        yield json.loads(texts[0])["memory_dir"]


def test_a_mute_and_a_ceiling_are_not_told(crewed):
    arms = {(t.start.role_cap, t.start.muted): t for t in traces(crewed)}
    seats = ("opener", "scout")
    whole = [given(crewed, arms[2, False], seat) for seat in seats]
    assert [given(crewed, arms[2, True], seat) for seat in seats] == whole
    assert [given(crewed, arms[None, False], seat) for seat in seats] == whole
    # Alone the opener gets every turn, so the world's clock differs after its first.
    first = 3  # surroundings, reset, act
    assert given(crewed, arms[1, False])[:first] == whole[0][:first]
    assert len(whole[0]) > first


def test_a_frozen_control_is_given_what_the_learner_is_given(days):
    layout, _ = days
    checkpoints = {}
    for trace in traces(layout):
        if trace.start.phase == "checkpoint":
            texts = checkpoints.setdefault((trace.start.pair, trace.start.day), {})
            texts[trace.start.arm] = given(layout, trace)
    assert len(checkpoints) == 3
    for arms in checkpoints.values():
        assert len(arms) == 2
        frozen, learner = arms.values()
        assert frozen == learner


def test_a_checkpoint_is_given_the_same_on_each_day(days):
    layout, _ = days
    texts = [
        given(layout, t)
        for t in traces(layout)
        if (t.start.phase, t.start.lane) == ("checkpoint", None)
    ]
    assert len(texts) == 3
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("kept", [False, True])
def test_practice_checkpoint_and_holdout_differ_in_their_task_alone(crewed, days, kept):
    """The same process, the same kind of folder, the same fields and tools."""
    layout = days[kept]
    shapes = [_shape(layout, trace) for trace in traces(layout) if trace.start.lane]
    first = shapes[0][1]
    assert {"practice", "checkpoint"} == {t.start.phase for t in traces(layout)}
    for phase, shape in shapes:
        assert shape == first, phase
    if not kept:
        whole = [_shape(crewed, trace) for trace in traces(crewed)]
        assert {phase for phase, _ in whole} == {"holdout"}
        assert all(shape == first for _, shape in whole)


def _shape(layout, trace):
    """Return an episode's phase, and all it was given but the task itself."""
    texts = given(layout, trace, "opener")
    around, reset, act = (json.loads(text) for text in texts[:3])
    brief = reset["reset"]["brief"]
    assert set(brief) == TOLD
    folder = {entry[0]: (entry[1], entry[3]) for entry in around.pop("folder")}
    assert folder in ({}, {"kept": folder.get("kept")})
    return trace.start.phase, {
        **{k: v for k, v in around.items() if k != "argv"},
        **{k: v for k, v in reset["reset"].items() if k != "brief"},
        **{k: v for k, v in brief.items() if k != "seed"},
        "info": {k: v for k, v in act["act"]["info"].items() if k != "goal"},
    }


def test_files_of_memory_look_the_same_in_practice_and_in_a_checkpoint(days):
    """Neither times nor modes tell the copy from the folder it was copied from."""
    layout = days[1]
    looks = {}
    for trace in traces(layout):
        if trace.start.lane and trace.start.day:
            (around, *_) = given(layout, trace, "opener")
            for _, mode, _, modified in json.loads(around)["folder"]:
                looks.setdefault(trace.start.phase, set()).add((mode, modified))
    assert len(looks["practice"]) == 1
    assert looks["practice"] == looks["checkpoint"]


def test_no_episode_knows_the_folder_of_another(days, hosted):
    found = list(places(days[1]))
    if hosted[1] == "auto":
        assert set(found) == {"/memory"}
    else:
        assert len(set(found)) == len(found)
