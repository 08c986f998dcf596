"""What the gates of an arm read, and warnings, on rows written by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.records.observables import NO_DAY
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.verdict import findings
from tests.builders.columns import Columns
from tests.builders.episodes import PROTOCOL


def rows(**columns):
    """Return two checkpoints and two days of practice, with changes."""
    fields = {
        "day": np.array([0, 1, 0, 1]),
        "phase": np.array(["checkpoint", "checkpoint", "practice", "practice"]),
        "cost_human": np.zeros(4),
        "patched": np.zeros(4, int),
    }
    return Columns(**fields | columns)


def adopted(table, *places, decision="adopted"):
    """Return the rows with revisions adopted at some places."""
    table.revisions = SimpleNamespace(
        row=np.array(places, dtype=int), decision=np.array([decision] * len(places))
    )
    return table


def test_a_run_has_days_where_a_checkpoint_has_one():
    assert findings._has_days(rows())
    assert not findings._has_days(rows(phase=np.full(4, "practice")))
    assert not findings._has_days(rows(day=np.array([NO_DAY, NO_DAY, 0, 1])))


@pytest.mark.parametrize(
    ("columns", "places", "words"),
    [
        ({}, (2,), None),
        ({"cost_human": np.array([0, 0, 0, 5e6])}, (2,), None),  # a day later
        ({"cost_human": np.array([5e6, 5e6, 0, 0])}, (3,), None),  # no practice
        ({"cost_human": np.array([0, 0, 5e6, 0])}, (), None),
        (
            {"cost_human": np.array([0, 0, 5e6, 2e6])},
            (3, 3),
            "human costs of 7 USD in 2 episodes feed 1 episodes with adopted revisions, 0 patches",
        ),
        (
            {"patched": np.array([0, 0, 1, 0])},
            (2, 3),
            "human costs of 0 USD in 1 episodes feed 2 episodes with adopted revisions, 1 patches",
        ),
        (
            {"cost_human": np.array([0, 1e6, 0, 0])},
            (1,),
            "human costs of 1 USD in 1 episodes feed 1 episodes",
        ),
        (
            {"cost_human": np.array([0, 0, math.nan, 0])},
            (3,),
            "human costs of unknown size in 1 episodes",
        ),
        ({"patched": np.array([0, 0, 1, 0]), "day": np.array([0, 1, NO_DAY, 1])}, (3,), None),
    ],
)
def test_human_help_up_to_the_day_of_an_adoption_is_warned_of(columns, places, words):
    table = adopted(rows(**columns), *places)
    found = list(findings._human_help(table))
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith(words)
    proposed = adopted(rows(**columns), *places, decision="proposed")
    assert list(findings._human_help(proposed)) == []


def test_adoptions_that_changed_no_line_are_warned_of():
    def warned(table, *lines):
        sets = tuple(SimpleNamespace(lines=n) for n in lines)
        sample = SimpleNamespace(practised=SimpleNamespace(sets=sets))
        return list(findings._empty_adoptions(sample, table))

    (words,) = warned(adopted(rows(), 2, 3), 0, 0)
    assert words.startswith("2 revisions were declared as adopted, and no line")
    assert warned(adopted(rows(), 2), 0, 1) == []
    assert warned(adopted(rows(), 2)) == []
    assert warned(adopted(rows(), 2, decision="proposed"), 0) == []
    none = SimpleNamespace(practised=None)
    assert list(findings._empty_adoptions(none, adopted(rows(), 2))) == []


@pytest.mark.parametrize(
    ("suites", "axes", "warned"),
    [
        (("toolquest", "toolquest"), "AP", True),
        (("toolquest", "toolquest", "recall"), "AP", True),  # the third row counts nowhere
        (("toolquest", "changesurf"), "AP", False),
        (("changesurf", "changesurf"), "AP", False),
        (("toolquest", "toolquest"), "A", False),
    ],
)
def test_a_and_p_of_toolquest_alone_are_said_to_be_one_finding(suites, axes, warned):
    names = np.array([*suites, "recall"][:3])
    sample = SimpleNamespace(table=SimpleNamespace(suite=names), base=np.array([True, True, False]))
    known = SimpleNamespace(point={StatisticKey(symbol): 0.818 for symbol in axes})
    found = list(findings._one_number(sample, known))
    assert bool(found) == warned
    assert all("A, P and mean quality are one finding there" in words for words in found)
    assert list(findings._one_number(sample, None)) == []


def test_checkpoints_of_few_instances_are_warned_of():
    least = PROTOCOL.improvement.family_min
    families, pairs = ["s/f"] * least + ["s/g"] * (least + 1), range(2 * least + 1)
    table = SimpleNamespace(family=np.array(families), pair=np.array([*pairs]))
    sample = SimpleNamespace(table=table, protocol=PROTOCOL)

    def warned(*daily, table=rows()):  # noqa: B008  read only
        return list(findings._small_checkpoints(sample, table, daily))

    assert warned("s/f", "s/g") == []
    table.pair[0] = table.pair[1]
    words = f"{least - 1} instances a checkpoint, fewer than {least}"
    assert words in warned("s/f", "s/g")[0]
    assert warned("s/g") == []
    assert "rests on 0 instances" in warned()[0]
    assert warned("s/f", table=rows(phase=np.full(4, "holdout"))) == []


def estimates(smallest, **intervals):
    """Return estimates of axes with the bounds of their intervals."""

    def over_tasks(key):
        low, high = intervals[key.of]
        return SimpleNamespace(interval=lambda level: SimpleNamespace(low=low, high=high))

    return SimpleNamespace(
        smallest=smallest,
        coverage=dict.fromkeys([*intervals, "E"]),
        point=dict.fromkeys(map(StatisticKey, intervals), 0.5),
        over_tasks=over_tasks,
    )


def test_families_of_few_tasks_are_warned_of_with_half_widths():
    sample, least = SimpleNamespace(protocol=PROTOCOL), PROTOCOL.statistics.warn_family
    bounds = {"A": (0.25, 0.75), "G": (None, 0.5), "P": (0.5, None)}
    (words,) = findings._small_families(sample, estimates(least - 1, **bounds))
    assert words == (
        f"a family holds {least - 1} tasks, fewer than {least}: "
        "A +/- 0.25, G +/- unknown, P +/- unknown"
    )
    assert list(findings._small_families(sample, estimates(least, **bounds))) == []
    assert list(findings._small_families(sample, None)) == []


def test_what_lost_attempts_cost_is_counted_by_the_day_of_their_lane():
    def entry(arm, day, *, keeps_memory=True):
        return SimpleNamespace(arm=arm, day=day, keeps_memory=keeps_memory)

    entries = (
        *(entry("a", 0), entry("a", 1), entry("b", 1), entry("a", 1, keeps_memory=False)),
        *(entry("a", None), entry("a", 1)),
    )
    context = SimpleNamespace(
        plan=SimpleNamespace(entries=entries), lost={i: 10.0**i for i in range(len(entries))}
    )
    found = findings._lost_by_day(context, SimpleNamespace(name="a"))
    assert found == {0: 1.0, 1: 10.0 + 1e5}


def test_a_learner_s_control_is_the_same_agent_frozen():
    def arm(name, agent="x", fingerprint="f", *, frozen=False):
        return SimpleNamespace(name=name, agent=agent, fingerprint=fingerprint, frozen=frozen)

    learner, control = arm("a"), arm("a (frozen)", frozen=True)
    others = (arm("b", "y", frozen=True), arm("c", "x", "g", frozen=True), arm("d"))
    names = np.array(["a", "a (frozen)", "a (frozen)", "b"])
    table = Columns(arm=names, honeypot=np.array([0, 0, 1, 0], bool), day=np.arange(4))

    def found(own, arms):
        context = SimpleNamespace(plan=SimpleNamespace(arms=arms))
        episodes = SimpleNamespace(arm=own, every_arm=table)
        rows = findings._control(context, episodes)
        return None if rows is None else rows.day.tolist()

    assert found(learner, (learner, *others, control)) == [1]
    assert found(learner, (learner, *others)) is None
    assert found(control, (learner, control)) is None


def test_evidence_is_a_range_of_attempts_of_the_base():
    table = SimpleNamespace(attempt=np.array(["a", "b", "c", "d"]))
    sample = SimpleNamespace(table=table, base=np.array([0, 1, 1, 1], bool))
    assert findings._evidence(sample) == ("b to d, 3 attempts",)
    sample.base[:] = False
    assert findings._evidence(sample) == ()
