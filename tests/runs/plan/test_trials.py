"""Plans of SAIL-ON trials."""

import msgspec
import pytest

from owa_bench.errors import PlanError
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.plan.trials import Trials
from owa_bench.runs.play.episode_setup import told_goal


def plan_of(*agents, episodes=8, deltas=(1.0,), **changes):
    draw = Draw(
        name="cartpole3d",
        families=("table1/7", "table1/9"),
        tiers=(2,),
        deltas=deltas,
        episodes=episodes,
    )
    trials = Trials(draw=draw, **{"count": 3, "before": (2, 5), **changes})
    return draft_plan(Request(agents=agents or ("pd", "nothing"), trials=trials)).plan


def lanes(plan):
    found = {}
    for entry in plan.entries:
        found.setdefault(entry.lane, []).append(entry)
    return found


def test_each_trial_is_a_lane_whose_novelty_comes_once_and_stays():
    found = lanes(plan_of())
    assert len(found) == 2 * 2 * 3
    for entries in found.values():
        deltas = [entry.delta for entry in entries]
        first = deltas.index(1.0)
        assert 2 <= first <= 5
        assert deltas == [0.0] * first + [1.0] * (8 - first)


def test_arms_play_the_same_trials_on_the_same_pairs():
    found = lanes(plan_of())
    for lane, entries in found.items():
        if lane.startswith("pd/"):
            other = found["nothing/" + lane.removeprefix("pd/")]
            assert [(e.pair, e.delta) for e in entries] == [(e.pair, e.delta) for e in other]


def test_the_introduction_is_drawn_and_by_the_seed_alone():
    def firsts(plan):
        return [[entry.delta for entry in entries].index(1.0) for entries in lanes(plan).values()]

    assert firsts(plan_of()) == firsts(plan_of())
    assert len(set(firsts(plan_of()))) > 1
    assert firsts(plan_of()) != firsts(plan_of(seed=1))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"count": 0}, "trials"),
        ({"before": (0, 3)}, "before"),
        ({"before": (4, 3)}, "before"),
        ({"before": (2, 8)}, "before"),
        ({"deltas": (0.0,)}, "deltas"),
        ({"deltas": (0.5, 1.0)}, "deltas"),
    ],
)
def test_what_is_no_trial_is_refused(changes, field):
    with pytest.raises(PlanError, match=f"`{field}`"):
        plan_of(**changes)


def test_a_trial_of_given_detection_follows_each_and_tells_when_the_novelty_is_there():
    from owa_bench import discovery

    card = discovery.get("suites", "cartpole3d").card
    plain, told = lanes(plan_of()), lanes(plan_of(given=True, hints=2))
    assert len(told) == 2 * len(plain)
    for lane, entries in told.items():
        goals = [told_goal(card, entry) for entry in entries]
        if lane in plain:  # the agent of System Detection reads nothing of it
            assert entries == [
                msgspec.structs.replace(entry, index=mine.index)
                for entry, mine in zip(plain[lane], entries, strict=True)
            ]
            assert not any(goals)
            continue
        same = plain[lane.replace("trial/given/", "trial/")]
        assert [e.delta for e in entries] == [e.delta for e in same]
        assert [goal["novelty"] for goal in goals] == [e.delta > 0 for e in entries]
        level = entries[0].family.partition("/")[2]
        assert goals[0]["hints"] == []
        assert goals[-1]["hints"][0] == f"level {level}"
        assert len(goals[-1]["hints"]) == 3


def test_hints_are_for_given_detection_and_go_to_three():
    for changes in ({"hints": 0}, {"given": True, "hints": 4}):
        with pytest.raises(PlanError, match="`hints` must be -1 to 3"):
            plan_of(**changes)
    bare = lanes(plan_of(given=True))
    assert all(e.told == -1 for k, es in bare.items() if "given" in k for e in es)
