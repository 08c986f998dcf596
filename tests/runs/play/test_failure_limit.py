"""A run stops where too many attempts fail by no act of the agent's own."""

from collections import Counter
from dataclasses import replace

import pytest
from msgspec import structs

from owa_bench.errors import FailureLimitError, FieldError
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records.protocol import Stopping
from owa_bench.records.trace import Leaf
from owa_bench.runs.plan.request import RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.episode_setup import failure_end
from owa_bench.runs.play.failures import FailureLimit
from owa_bench.runs.play.loop import AttemptResult
from owa_bench.runs.store import files
from tests.builders.stub_server import completion, error, serving

RULE = Stopping(failure_share=0.25, failures_min=3)


def attempt(status="complete", reason="", outcome="infrastructure", helpless=False):
    leaf = Leaf(
        attempt_id="0.0",
        index=0,
        attempt=0,
        status=status,
        count=1,
        head="",
        replay="",
        shard="",
        frames=(),
    )
    ended = structs.replace(failure_end(reason, 0.0), outcome=outcome)
    return AttemptResult(leaf=leaf, end=ended, helpless=helpless)


def test_it_is_a_share_of_each_arm_with_a_least_count():
    limit = FailureLimit(RULE, None)
    for _ in range(9):
        limit.add("model", attempt())
        limit.add("other", attempt())
    limit.add("model", attempt("infrastructure", reason="disk full"))
    limit.add("model", attempt("provider", "HTTP 401"))  # not the harness' failure
    for _ in range(2):
        limit.add("model", attempt("infrastructure"))  # without a cause it still failed
        limit.add("other", attempt(reason="an agent's own failure"))
    with pytest.raises(FailureLimitError, match=r"4 of 14 .* of model .*: disk full"):
        limit.add("model", attempt("infrastructure"))


def test_three_failures_of_a_provider_in_a_row_stop_one_arm():
    limit = FailureLimit(RULE, None)
    for status in ("provider", "provider", "complete", "provider", "provider"):
        limit.add("model", attempt(status, "HTTP 401: no such key"))
        limit.add("other", attempt())
        assert not limit.is_stopped("model")
    limit.add("model", attempt("provider", "HTTP 402: no credit"))
    assert limit.provider == {"model": "HTTP 402: no credit"}
    assert limit.is_stopped("model")
    assert not limit.is_stopped("other")


def test_an_arm_whose_episodes_all_fail_before_an_act_is_stopped():
    raised = {"outcome": "agent_raised", "reason": "no such file"}
    limit = FailureLimit(RULE, None, frozenset({"known"}))
    for arm, helpless in (("typo", True), ("weak", False), ("known", True)):
        for _ in range(3):
            assert not limit.is_stopped(arm)
            limit.add(arm, attempt(**raised, helpless=helpless))
    limit.add("slow", attempt(**raised | {"outcome": "agent_timeout"}, helpless=True))
    limit.add("slow", attempt(outcome="finished", helpless=True))
    for _ in range(3):
        limit.add("slow", attempt(**raised, helpless=True))
    assert limit.idle == {"typo": "agent_raised: no such file"}


@pytest.mark.parametrize("limit", [FailureLimit(RULE, 1.0), FailureLimit(None, None)])
def test_a_share_of_one_and_a_protocol_without_a_rule_never_stop(limit):
    for _ in range(50):
        limit.add("model", attempt("infrastructure", reason="x"))


def test_a_share_of_one_stops_no_arm_either():
    limit = FailureLimit(RULE, 1.0)
    for _ in range(50):
        limit.add("model", attempt("provider", reason="x"))
        limit.add("typo", attempt(outcome="agent_raised", helpless=True))
    assert not limit.is_stopped("model")
    assert not limit.is_stopped("typo")


@pytest.mark.parametrize("share", [0.0, -1.0, 1.01, float("nan")])
def test_a_share_that_is_none(share, tmp_path):
    with pytest.raises(FieldError, match=r"--failure-share.*\(0, 1\]"):
        RunOptions(home=tmp_path, failure_share=share)


@pytest.mark.slow
def test_a_provider_that_is_gone_stops_the_arm_before_anything_is_scored(
    tmp_path, small, run_options
):
    answers = [error(503, "no capacity today")]

    with serving(lambda _: answers[0]) as url:
        reach = GatewayOptions(model_url=url)
        here = replace(run_options, in_process=False, gateway=reach, workers=2)
        request = small("odd_agents:AsksModel", episodes=12, sandbox="none")
        summary = batch.play(request, tmp_path / "run", here)
        layout = batch.RunLayout(tmp_path / "run")
        statuses = Counter(leaf.status for leaf in files.rebuild_leaves(layout))
        assert statuses.keys() <= {"provider", "unfinished"}
        assert 3 <= statuses["provider"] < 8
        assert summary.missing == 12
        assert summary.missing_through_provider >= 3
        [words] = summary.stopped.values()
        assert "HTTP 503: no capacity today" in words
        answers[0] = completion(("finish", {}))
        assert batch.resume(layout.root, here).missing == 0
