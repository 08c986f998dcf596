"""SAIL-ON metrics from traces, on planted agents whose figures are known by hand.

Trial 0: five episodes, novelty from the third; trial 1: six, novelty from the fourth.
The baseline scores .8 before the novelty and .4 after it, planted agents .8 and .6.
"""

import math

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Belief, EpisodeEnd, EpisodeStart
from owa_bench.records.instance import Instance
from owa_bench.records.plan import Arm, Budget, Plan, PlanEntry, SuiteEntry
from owa_bench.records.trace import Leaf, Trace
from owa_bench.scoring.novelty import measure as novelty
from owa_bench.scoring.novelty import trials
from tests.builders.episodes import drift

TRIALS = ((5, 2), (6, 3))  # (episodes, introduced)
PERFECT, BLIND, HAPPY, SLOW = "perfect", "blind", "trigger-happy", "slow"
PLANTED = {  # what is said in an episode, by its place from the introduction
    PERFECT: lambda offset: 0.9 if offset >= 0 else 0.1,
    BLIND: lambda offset: 0.1,
    HAPPY: lambda offset: 0.9,
    SLOW: lambda offset: 0.9 if offset >= 2 else 0.1,
}
ARMS = ("baseline", *PLANTED)


def pair(trial, place):
    return f"trial/s@1/f/T3/{trial:04d}/{place:04d}"


def entries():
    return [
        PlanEntry(
            index=0, arm=arm, pair=pair(trial, place), suite="s", version=1, family="f", tier=3
        )
        for trial, (count, _) in enumerate(TRIALS)
        for arm in ARMS
        for place in range(count)
    ]


def plan():
    suite = SuiteEntry(
        name="s", version=1, source_digest="0", families=("f",), tiers=(3,), native=True
    )
    return Plan(
        name="toy",
        battery=None,
        suites=(suite,),
        arms=tuple(Arm(name=arm, agent=arm, fingerprint="") for arm in ARMS),
        entries=tuple(entries()),
        budget=Budget(),
        commitment="",
        protocol_digest="",
        price_digest="",
        calendar="nested",
    )


def trace(arm, trial, place):
    offset = place - TRIALS[trial][1]
    quality = 0.8 if offset < 0 else 0.4 if arm == "baseline" else 0.6
    begun = EpisodeStart(
        index=0,
        attempt=0,
        arm=arm,
        pair=pair(trial, place),
        repeat=0,
        env_id="",
        instance=Instance(suite="s", version=1, family="f", tier=3, seed=1),
        delta=float(offset >= 0),
        realised=0.0,
        world="",
        agent=arm,
        fingerprint="",
        interventions=None,
        horizon=0,
        depth=0,
        theta=0.9,
        needs_tools=False,
    )
    said = ()
    if arm in PLANTED:
        early = Belief(step=1, proposition="novelty", kind="interim", p=0.5)
        p = PLANTED[arm](offset)
        late = Belief(step=9, proposition="novelty", kind="interim", p=p)
        line = Belief(step=9, proposition="novelty_threshold", kind="interim", p=0.7)
        said = (early, late, line)
    ended = EpisodeEnd(
        outcome="finished",
        q_state=quality,
        quality=quality,
        success=False,
        stated=None,
        failed_attempts=0,
        reason="",
        steps=9,
        simulated_s=0.2,
        wall_s=0.0,
    )
    leaf = Leaf(
        attempt_id="000000.0",
        index=0,
        attempt=0,
        status="complete",
        count=1,
        head="",
        replay="",
        shard="",
        frames=(),
    )
    return Trace(leaf, (begun, *((drift("o"),) if offset >= 0 else ()), *said, ended))


def notes():
    return [
        trials.read_trial(trace(arm, trial, place))
        for trial, (count, _) in enumerate(TRIALS)
        for arm in ARMS
        for place in reversed(range(count))
    ]


@pytest.fixture
def lanes():
    return trials.complete_trials(plan(), notes())


@pytest.fixture
def found(lanes):
    made = trials.measure_arms(lanes, "baseline", last=2)
    return {one.arm: one for one in made}


def test_every_arm_has_both_trials(lanes):
    assert len(lanes) == len(TRIALS) * len(ARMS)
    assert {trials.introduction(lane) for lane in lanes} == {2, 3}


@pytest.mark.parametrize(
    ("arm", "detected", "late", "early"),
    [
        (PERFECT, 1.0, 0.0, 0.0),  # says so in every novel episode and in no other
        (BLIND, 0.0, math.nan, 0.0),  # never says so: no CDT to average over
        (HAPPY, 0.0, math.nan, 1.0),  # always says so: every first detection is early
        (SLOW, 1.0, 2.0, 0.0),  # two novel episodes pass first, in both trials
        ("baseline", 0.0, math.nan, 0.0),
    ],
)
def test_detection_is_what_the_definitions_say(found, arm, detected, late, early):
    one = found[arm].result
    assert (one.m2, one.m2_1) == (detected, early)
    assert one.m1 == pytest.approx(late, nan_ok=True)
    assert found[arm].silent == (arm == "baseline")


@pytest.mark.parametrize("arm", PLANTED)
def test_reaction_is_what_the_definitions_say(found, arm):
    one = found[arm].result
    assert one.m3 == pytest.approx(0.6 / 0.8)
    assert math.isnan(one.m4)  # no trial of Given Detection
    assert one.m5 == pytest.approx(0.6 / (0.6 + 0.4))
    assert one.m6 == pytest.approx(0.6 / (0.6 + 0.4))


def test_against_itself_an_arm_stands_at_one_half(found):
    one = found["baseline"].result
    assert (one.m5, one.m6) == (0.5, 0.5)
    assert one.m3 == pytest.approx(0.4 / 0.8)


def test_the_last_statement_of_an_episode_counts(lanes):
    lane = next(x for x in lanes if (x.arm, len(x.episodes)) == (PERFECT, 5))
    assert [e.novelty for e in lane.episodes] == [0.1, 0.1, 0.9, 0.9, 0.9]
    assert {e.threshold for e in lane.episodes} == {0.7}


def test_a_trial_that_lacks_an_episode_is_left_out():
    kept = [n for n in notes() if n.episode.place != 5]
    assert {x.trial for x in trials.complete_trials(plan(), kept)} == {"trial/s@1/f/T3/0000"}


def test_a_lane_without_novelty_is_no_trial():
    plain = [n._replace(episode=n.episode._replace(novel=False)) for n in notes()]
    assert trials.complete_trials(plan(), plain) == ()


def test_an_episode_outside_trials_is_no_note():
    one = trace(BLIND, 0, 0)
    start = one.start
    other = EpisodeStart(
        **{n: getattr(start, n) for n in start.__struct_fields__ if n != "pair"},
        pair="s@1/f/T3/0000",
    )
    assert trials.read_trial(Trace(one.leaf, (other, *one.events[1:]))) is None


def test_curves_count_from_the_introduction(lanes):
    curve = next(x for x in trials.quality_curves(lanes) if x.arm == "baseline")
    assert curve.offsets == (-3, -2, -1, 0, 1, 2)
    assert curve.mean == pytest.approx((0.8, 0.8, 0.8, 0.4, 0.4, 0.4))
    assert curve.low == pytest.approx(curve.mean)


def test_the_table_has_a_row_per_arm(lanes):
    made = trials.novelty_table(lanes, "baseline", last=2)
    assert len(made.rows) == len(ARMS)  # one group of trials: no rows of its own
    assert dict(zip(made.columns, made.rows[0], strict=True))["note"] == "silent"


def test_a_baseline_that_played_nothing_is_refused(lanes):
    with pytest.raises(ScoringError, match="must be an arm that played trials"):
        trials.measure_arms(lanes, "nobody")


@pytest.mark.parametrize(("agents", "panels"), [(2, 1), (7, 7)])
def test_every_agent_has_its_curve(agents, panels):
    from owa_bench.measures.figures import novelty_figure

    curves = [
        trials.QualityCurve(f"a{i}", (-1, 0), (0.9, i / 10), (0.8, 0.0), (1.0, 0.7))
        for i in range(agents)
    ]
    axes = [one for one in novelty_figure(curves).axes if one.get_visible()]
    assert len(axes) == panels
    drawn = {
        (line.get_label(), tuple(line.get_ydata())) for each in axes for line in each.get_lines()
    }
    assert {(one.arm, one.mean) for one in curves} <= drawn


def arrays(said, introduced, agent=None, baseline=None):
    n = len(said)
    return novelty.NoveltyTrial(
        np.ones(n) if agent is None else np.array(agent, float),
        np.ones(n) if baseline is None else np.array(baseline, float),
        np.array(said, float),
        np.full(n, 0.5),
        introduced,
    )


def test_novelty_metrics_by_hand():
    given = [
        arrays([0, 0, 0, 1, 0, 1], 2, agent=[1, 1, 0, 0, 3, 3], baseline=[2, 2, 1, 1, 1, 1]),
        arrays([1, 0, 1, 1, 1, 1], 2),  # a false alarm: no correct detection
        arrays([0] * 6, 2),  # never detected
    ]
    told = [arrays([0] * 4, 2, agent=[1, 1, 4, 2], baseline=[2, 2, 1, 1])]
    found = novelty.measure(given, told, last=2)
    assert found.m1 == 2.0
    assert found.m2 == pytest.approx(1 / 3)
    assert found.m2_1 == pytest.approx(1 / 3)
    assert found.m3 == pytest.approx((3 / 2 + 1 + 1) / 3)
    assert found.m4 == pytest.approx(3 / 2)
    assert found.m5 == pytest.approx((6 / 10 + 0.5 + 0.5) / 3)
    assert found.m6 == pytest.approx((6 / 8 + 0.5 + 0.5) / 3)
    assert (found.trials, found.detected, found.given) == (3, 1, 1)


def test_nothing_detected_leaves_m1_open():
    found = novelty.measure([arrays([0] * 4, 1)], last=1)
    assert math.isnan(found.m1)
    assert math.isnan(found.m4)
    assert found.m2 == 0.0


@pytest.mark.parametrize(
    ("given", "last", "said"),
    [
        ([], 1, "`trials` is empty"),
        ([arrays([0, 0], 0)], 1, "`introduced` needs an instance before it"),
        ([arrays([0, 0], 1)], 2, "last = 2"),
        ([arrays([0, 0], 1, agent=[1])], 1, "of one length"),
        ([arrays([0, 0], 1, agent=[1, math.nan])], 1, "`agent` must hold finite"),
    ],
)
def test_bad_trials_are_named(given, last, said):
    with pytest.raises(ScoringError) as raised:
        novelty.measure(given, last=last)
    assert said in str(raised.value)


def test_a_statement_at_its_threshold_is_a_detection():
    one = arrays([0.1, 0.4, 0.5, 0.4, 0.5], 2)
    assert novelty.detection(one) == 2
    found = novelty.measure([one], last=1)
    assert found.m1 == 1.0  # the fourth lies below, the fifth does not
    assert novelty.detection(arrays([0.1, 0.4], 1)) is None
    at_0 = novelty.measure([arrays([0.9, 0.0, 0.0], 1)], last=2)
    assert (at_0.m2, at_0.m2_1) == (0.0, 1.0)


def test_a_baseline_that_scored_nothing_before_gives_no_reaction():
    dead = arrays([0, 0, 1], 1, agent=[1, 1, 1], baseline=[0, 1, 1])
    live = arrays([0, 0, 1], 1, agent=[1, 1, 3], baseline=[2, 1, 1])
    assert math.isnan(novelty.measure([dead], last=2).m3)
    assert novelty.measure([dead, live], last=2).m3 == pytest.approx(2.0 / 2)


def test_parity_is_one_half_and_nothing_is_too():
    assert novelty.task_improvement([0.0, 0.0], [0.0, 0.0]) == 0.5
    assert novelty.task_improvement([0.2, 0.4], [0.1, 0.1]) == pytest.approx(0.75)
    assert novelty.task_improvement([0.0], [0.5]) == 0.0
    with pytest.raises(ScoringError, match="must lie in"):
        novelty.task_improvement([-0.1], [0.5])


def test_the_last_instances_may_be_all_novel_ones():
    found = novelty.measure([arrays([0, 1, 1], 1)], last=2)
    assert found.m3 == 1.0
    with pytest.raises(ScoringError, match="last = 0"):
        novelty.measure([arrays([0, 1, 1], 1)], last=0)


def lane(arm, *qualities, first=1, stated=True, group="g", name="t"):
    episodes = (
        trials.TrialEpisode(i, q, 0.0, 0.5, i >= first, stated) for i, q in enumerate(qualities)
    )
    return trials.ArmTrial(arm, name, group, tuple(episodes))


def test_bands_of_curves_are_the_error_of_the_mean_within_0_and_1():
    lanes = [lane("a", 0.9, 0.1), lane("a", 1.0, 0.3), lane("a", 0.9, 0.5, 0.4)]
    (curve,) = trials.quality_curves(lanes)
    assert curve.offsets == (-1, 0, 1)
    half = 1.96 * np.std([0.1, 0.3, 0.5], ddof=1) / math.sqrt(3)
    assert curve.mean[1] == pytest.approx(0.3)
    assert curve.low[1] == pytest.approx(0.3 - half)
    assert curve.high[1] == pytest.approx(0.3 + half)
    top = 1.96 * np.std([0.9, 1.0, 0.9], ddof=1) / math.sqrt(3)
    assert curve.high[0] == pytest.approx(min(2.8 / 3 + top, 1.0))
    assert (curve.low[2], curve.high[2]) == (0.4, 0.4)
    (wide,) = trials.quality_curves([lane("a", 0.0, 1.0), lane("a", 0.1, 0.0)])
    assert (wide.low[0], wide.low[1], wide.high[1]) == (0.0, 0.0, 1.0)


def test_groups_have_rows_of_their_own_where_there_are_two():
    lanes = [
        lane("base", 0.5, 0.5, name="t", group="g"),
        lane("base", 0.5, 0.25, name="u", group="h"),
        lane("own", 0.5, 0.75, name="u", group="h", stated=False),
        lane("own", 0.5, 0.5, name="only here", group="h"),
    ]
    rows = trials.novelty_table(lanes, "base", last=1).rows
    assert [row[:3] for row in rows] == [
        ("all", "base", 2),
        ("all", "own", 1),
        ("g", "base", 1),
        ("h", "base", 1),
        ("h", "own", 1),
    ]
    assert trials.apti_by_group(lanes, "base", last=1) == {
        "base": {"g": 0.5, "h": 0.5},
        "own": {"h": 0.75},
    }
    assert trials.novelty_table(lanes, "base", last=1).rows[1][-1] == "silent"


def test_only_trials_of_given_detection_enter_m4_and_only_the_others_the_rest():
    def trial(name, quality, novelty, *, given, named=""):
        played = [
            trials.TrialEpisode(i, quality, novelty, 0.5, i > 0, True, named) for i in range(3)
        ]
        return trials.ArmTrial("a", name, "table1/9 T3", tuple(played), given)

    own = [
        trial("t", 0.5, 0.0, given=False, named="9"),
        trial("u", 0.5, 0.0, given=False, named="4"),
        trial("given/t", 0.25, 1.0, given=True, named="9"),
    ]
    (found,) = trials.measure_arms(own, "a", last=1)
    assert (found.result.trials, found.result.given) == (2, 1)
    assert (found.result.m2, found.result.m2_1) == (0.0, 0.0)  # told is not detected
    assert (found.result.m3, found.result.m4) == (1.0, 1.0)
    assert found.named == 0.5
    silent = [trial("t", 0.5, 0.0, given=False)]
    assert math.isnan(trials.measure_arms(silent, "a", last=1)[0].named)


def stated(*beliefs, place=0, struck=False):
    """Return the episode of a trial with beliefs of (proposition, p)."""
    begun, *_, ended = trace("baseline", 0, place).events
    said = [Belief(step=1, proposition=n, kind="interim", p=p) for n, p in beliefs]
    leaf = trace("baseline", 0, place).leaf
    events = (begun, *((drift("o"),) if struck else ()), *said, ended)
    return trials.read_trial(Trace(leaf, events))


def test_what_an_episode_states_and_what_holds_without():
    found = stated(place=4)
    assert (found.arm, found.trial) == ("baseline", "trial/s@1/f/T3/0000")
    assert found.group == "f T3"
    assert found.episode == trials.TrialEpisode(4, 0.4, 0.0, 0.5, False, False, "")
    levels = (("level/2", 0.3), ("level/9", 0.6), ("level/4", 0.1))
    found = stated(("novelty", 0.8), *levels, struck=True)
    assert found.episode == trials.TrialEpisode(0, 0.8, 0.8, 0.5, True, True, "9")


def test_the_last_five_episodes_are_asymptotic_unless_stated_otherwise():
    own = lane("own", 0.5, 0.1, 0.1, 0.1, 0.3, 0.3, 0.3, 0.3, 0.3)
    base = lane("base", 0.5, *([0.2] * 8))
    by_default = trials.measure_arms([own, base], "base")
    assert by_default[0].result.m6 == pytest.approx(0.3 / 0.5)
    assert trials.apti_by_group([own, base], "base")["own"]["g"] == pytest.approx(0.6)
    table = trials.novelty_table([own, base], "base")
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["APTI"] == pytest.approx(0.6)
    assert "the last 5 episodes" in table.note


def test_a_trial_is_whole_and_begins_plain_and_told_if_its_plan_tells():
    def planned(count, told=None):
        one = entries()[0]
        return [
            msgspec.structs.replace(one, arm="a", pair=pair(0, i), told=told) for i in range(count)
        ]

    def found(count, *novel, told=None):
        played = [
            trials.TrialTrace(
                "a", "trial/s@1/f/T3/0000", "g", trials.TrialEpisode(i, 0.5, 0.0, 0.5, mark, True)
            )
            for i, mark in enumerate(novel)
        ]
        whole = msgspec.structs.replace(plan(), entries=tuple(planned(count, told)))
        return [one.given for one in trials.complete_trials(whole, [None, *played])]

    assert found(3, False, True, True) == [False]
    assert found(3, False, True, True, told=2) == [True]
    assert found(4, False, True, True) == []
    assert found(2, False, True, True) == []
    assert found(3, True, True, True) == []
    assert found(3, False, True, False) == []


def test_columns_of_a_pair_are_each_arms_own():
    own = trials.ArmTrial("a", "t", "g", (trials.TrialEpisode(0, 0.1, 0.2, 0.3, True, True),))
    base = trials.ArmTrial("b", "t", "g", (trials.TrialEpisode(0, 0.4, 0.6, 0.7, True, True),))
    found = trials.paired_arrays(own, base)
    assert [column.tolist() for column in found[:4]] == [[0.1], [0.4], [0.2], [0.3]]
    assert found.introduced == 0
