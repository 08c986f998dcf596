import gymnasium
import msgspec
import pytest

from owa_bench.discovery import get
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order as orders
from owa_bench.drift import timeline as timelines
from owa_bench.errors import InstanceError, UnknownNameError, UsageError
from owa_bench.records.instance import Instance
from owa_bench.runs import assembly
from owa_bench.shells.solution import solve


def instance(seed=0, **more):
    terms = {"family": "reconcile", "tier": 1, **more}
    return Instance(suite="toolquest", version=3, seed=seed, **terms)


def test_a_timeline_without_drift_is_the_generated_world():
    timeline = timelines.source("toolquest")(instance())
    assert timeline.worlds == (get("suites", "toolquest").generate(instance()),)
    assert (timeline.starts, timeline.changes, timeline.realised) == ((0,), ((),), 0.0)


def test_changes_form_a_chain_of_digests_from_base_to_world():
    timeline = timelines.source("toolquest")(instance(drift_step=12))
    [made] = timeline.changes
    assert len(made) == 12
    heads = [timelines.base_world(instance()).digest(), *(c.after for c in made)]
    assert [c.before for c in made] == heads[:-1]
    assert timeline.worlds[0].digest() == heads[-1]
    assert len(set(heads)) == 13
    assert all(c.operator.startswith("api/") and c.version == 1 for c in made)


def test_a_longer_prefix_begins_with_the_changes_of_a_shorter_one():
    play = timelines.source("toolquest")
    [short], [long] = (play(instance(drift_step=d)).changes for d in (7, 20))
    assert long[:7] == short
    shares = [play(instance(drift_step=d)).realised for d in (0, 7, 20, 999)]
    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0


def test_the_timeline_is_a_function_of_the_instance_alone():
    first = timelines.source("toolquest")(instance(drift_step=9))
    timelines.source("toolquest")(instance(seed=8, drift_step=3))
    assert timelines.source("toolquest")(instance(drift_step=9)) == first
    noisy = timelines.source("toolquest")(instance(drift_step=9, repeat=2))
    assert noisy.worlds == first.worlds
    assert noisy.instance.repeat == 2


def test_drift_may_strike_in_the_middle_of_an_episode():
    schedule = calendars.nested("api", onset_ms=4000)
    timeline = timelines.source("toolquest", schedule)(instance(drift_step=3))
    assert timeline.starts == (0, 4000)
    assert [len(made) for made in timeline.changes] == [0, 3]
    assert timeline.worlds[0] == timelines.base_world(instance())
    assert timeline.worlds[1].digest() == timeline.changes[1][-1].after


def test_any_function_may_be_a_schedule():
    def first_two(chosen, world):
        return orders.drift_order(chosen, world, "api")[:2]

    timeline = timelines.source("toolquest", first_two)(instance())
    assert [len(made) for made in timeline.changes] == [2]
    assert 0 < timeline.realised < 0.2


def test_the_drift_step_of_a_magnitude_realises_at_most_that():
    play = timelines.source("toolquest")
    for delta in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        step = timelines.drift_step("toolquest", instance(seed=3), delta)
        realised = play(instance(seed=3, drift_step=step)).realised
        assert delta - 0.06 < realised <= delta


def test_the_drift_step_follows_the_calendar_given():
    silent = calendars.nested("api", ("D3",))
    step = timelines.drift_step("toolquest", instance(), 1.0, silent)
    assert step == 4  # two units, the status, the bound
    timeline = timelines.source("toolquest", silent)(instance(drift_step=step))
    assert {c.announcement for c in timeline.changes[0]} == {"D3"}
    assert timeline.realised == 1.0


@pytest.mark.parametrize("family", ["reconcile", "sla_report", "restock"])
@pytest.mark.parametrize("tier", [1, 2, 3])
def test_the_oracle_solves_every_prefix(family, tier):
    suite = get("suites", "toolquest")
    for seed in range(2):
        for delta in (0.0, 0.5, 1.0):
            plain = instance(seed=seed, family=family, tier=tier)
            step = timelines.drift_step("toolquest", plain, delta)
            drifted = msgspec.structs.replace(plain, drift_step=step)
            solved = solve(suite, timelines.source("toolquest")(drifted))
            assert solved.q_state == 1.0


def test_the_script_is_that_of_the_world_without_drift():
    script = assembly.script("toolquest", instance())
    assert script == assembly.script("toolquest", instance(drift_step=20))
    assert '"finish"' in script[-1]


def test_gymnasium_makes_an_env_of_any_magnitude():
    env = gymnasium.make("owa_bench/ToolQuest-v3", tier=2, family="restock", delta=0.5).unwrapped
    env.reset(seed=11)
    played = env.timeline
    assert (played.instance.family, played.instance.tier) == ("restock", 2)
    assert played.instance.drift_step > 0
    assert 0.4 < played.realised <= 0.5
    env.close()


def test_gymnasium_makes_an_env_of_a_drift_step():
    env = gymnasium.make("owa_bench/ToolQuest-v3", drift_step=4).unwrapped
    env.reset(seed=11)
    assert [len(made) for made in env.timeline.changes] == [4]
    env.close()


def test_wrong_wishes_are_refused_by_name():
    with pytest.raises(UnknownNameError, match="Did you mean `toolquest`"):
        assembly.make_env("toolquests")
    with pytest.raises(UsageError, match="`delta` or `drift_step`"):
        assembly.make_env("toolquest", drift_step=2, delta=0.5)
    with pytest.raises(InstanceError, match="`tier`"):
        assembly.make_env("toolquest", tier=9)
