"""Two episodes side by side: the first step that differs, in action or in reply."""

import pytest
from msgspec.structs import replace

from owa_bench.errors import FieldError, UsageError
from owa_bench.records.events import EpisodeStart
from owa_bench.reports.read.difference import ComparedEpisode, difference, of_episodes
from owa_bench.reports.read.failures import read_episode
from tests.builders.failed_episodes import action, call, failed, finish, solved
from tests.builders.run_directory import make_plan, make_run


def compared(one, other):
    sides = [
        ComparedEpisode(
            label="x", episode=read_episode(trace), cost_micro_usd=None, supervisor_micro_usd=None
        )
        for trace in (one, other)
    ]
    return of_episodes(*sides, (one, other))


def test_equal_episodes_have_no_first_step():
    trace = failed(solved(1, "docs"), finish(2))
    pair = compared(trace, trace)
    assert (pair.first, pair.what) == (None, "")
    assert all(step.same for step in pair.steps)


def test_spaces_and_the_order_of_names_are_no_difference():
    plain = failed(action(1, '{"tool":"http","arguments":{"a":1,"b":2}}'), finish(2))
    spaced = failed(action(1, '{ "arguments": {"b": 2, "a": 1}, "tool": "http" }'), finish(2))
    assert compared(plain, spaced).first is None


def test_the_first_other_action_is_found():
    one = failed(solved(1, "docs"), action(2), action(3), finish(4))
    other = failed(solved(1, "docs"), action(2), action(3, call("read", x=1)), finish(4))
    pair = compared(one, other)
    assert (pair.first, pair.what) == (3, "action")
    assert [(s.step, s.same) for s in pair.steps] == [(1, True), (2, True), (3, False), (4, True)]


def test_the_same_action_with_another_reply_is_a_difference_of_the_reply():
    one = failed(action(1), finish(2))
    other = failed(action(1, observation="f" * 64), finish(2))
    pair = compared(one, other)
    assert (pair.first, pair.what) == (1, "reply")


def test_an_end_before_the_other_is_a_difference():
    one = failed(action(1), action(2), outcome="truncated")
    other = failed(action(1), outcome="truncated")
    pair = compared(one, other)
    assert (pair.first, pair.what) == (2, "action")
    assert (pair.steps[-1].one is None, pair.steps[-1].other is None) == (False, True)


def test_subgoals_have_the_step_of_each():
    one = failed(solved(1, "docs"), solved(2, "key"), finish(3))
    other = failed(action(1), solved(2, "docs"), finish(3))
    rows = {name: steps for name, *steps in compared(one, other).subgoals}
    assert rows["docs"] == [1, 2]
    assert rows["key"] == [2, None]
    assert rows["rows"] == [None, None]


def test_arms_are_compared_on_an_instance_that_one_alone_solved(tmp_path):
    run = make_run(tmp_path / "run").root
    pair = difference(run, "agentic", "fixed")
    rows = (pair.one.episode, pair.other.episode)
    assert pair.apart
    assert rows[0].pair == rows[1].pair
    assert rows[0].success != rows[1].success
    named = difference(run, "fixed", pair.one.episode.attempt)
    assert named.other.episode.attempt == pair.one.episode.attempt
    assert named.one.episode.attempt == pair.other.episode.attempt


def test_another_run_is_named_before_the_colon(tmp_path):
    one, other = make_run(tmp_path / "one").root, make_run(tmp_path / "other").root
    pair = difference(one, "agentic", f"{other}:agentic")
    assert pair.first is None  # the same made-up episodes
    assert not pair.apart
    assert str(other) in pair.other.label


def test_what_cannot_be_compared_is_refused(tmp_path):
    run = make_run(tmp_path / "run").root
    with pytest.raises(FieldError, match="must be an attempt such as"):
        difference(run, "agentic", "nobody")
    with pytest.raises(FieldError, match="must name an attempt that counts"):
        difference(run, "agentic", "009999.0")
    with pytest.raises(UsageError, match="must share an instance"):
        difference(run, "000000.0", "000003.0")


def test_another_world_of_the_same_instance_is_refused(tmp_path):
    def edit(entry, events):
        world = "a" * 64
        return [replace(e, world=world) if isinstance(e, EpisodeStart) else e for e in events]

    one = make_run(tmp_path / "one", make_plan()).root
    other = make_run(tmp_path / "other", make_plan(), edit=edit).root
    with pytest.raises(UsageError, match="must have played the same world"):
        difference(one, "agentic", f"{other}:agentic")
