"""A run stops where too many attempts fail by no act of the agent's own."""

from collections import Counter
from dataclasses import replace

import pytest

from owa_bench.errors import FailureLimitError, FieldError
from owa_bench.records.protocol import Stopping
from owa_bench.records.trace import Leaf
from owa_bench.run.gateway.options import GatewayOptions
from owa_bench.run.plan.request import RunOptions
from owa_bench.run.play import batch
from owa_bench.run.play.episode_setup import failure_end
from owa_bench.run.play.failures import FailureLimit
from owa_bench.run.play.loop import AttemptResult
from owa_bench.run.store import files
from tests.builders.stub_server import completion, error, serving

RULE = Stopping(failure_share=0.25, failures_min=3)


def attempt(status="complete", refusal="", reason=""):
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
    ended = failure_end(reason, 0.0)
    return AttemptResult(leaf=leaf, end=ended, provider_failure=refusal)


def test_it_is_a_share_of_each_arm_with_a_least_count():
    limit = FailureLimit(RULE, None)
    for _ in range(9):
        limit.add("model", attempt())
        limit.add("other", attempt())
    limit.add("model", attempt("infrastructure", reason="disk full"))
    limit.add("model", attempt(refusal="HTTP 401: no such key"))
    limit.add("model", attempt("infrastructure"))  # without a cause it still failed
    for _ in range(2):
        limit.add("other", attempt(reason="an agent's own failure"))
    with pytest.raises(FailureLimitError, match=r"4 of 13 .* of model .*: disk full"):
        limit.add("model", attempt(refusal="HTTP 401: no such key"))


@pytest.mark.parametrize("limit", [FailureLimit(RULE, 1.0), FailureLimit(None, None)])
def test_a_share_of_one_and_a_protocol_without_a_rule_never_stop(limit):
    for _ in range(50):
        limit.add("model", attempt("infrastructure", reason="x"))


@pytest.mark.parametrize("share", [0.0, -1.0, 1.01, float("nan")])
def test_a_share_that_is_none(share, tmp_path):
    with pytest.raises(FieldError, match=r"--failure-share.*\(0, 1\]"):
        RunOptions(home=tmp_path, failure_share=share)


@pytest.mark.slow
def test_a_provider_that_is_gone_stops_the_run_before_anything_is_scored(
    tmp_path, small, run_options
):
    """Failed entries wait behind the others, so that none is retried into a score."""
    answers = [error(503, "no capacity today")]

    with serving(lambda _: answers[0]) as url:
        reach = GatewayOptions(model_url=url)
        here = replace(run_options, in_process=False, gateway=reach, workers=2)
        request = small("odd_agents:AsksModel", episodes=12, sandbox="none")
        with pytest.raises(
            FailureLimitError, match=r"10 of 10 .*HTTP 503: .*no capacity today"
        ):
            batch.play(request, tmp_path / "run", here)
        layout = batch.RunLayout(tmp_path / "run")
        statuses = Counter(leaf.status for leaf in files.rebuild_leaves(layout))
        assert statuses["complete"] == 0
        assert statuses["infrastructure"] >= 10
        answers[0] = completion(("finish", {}))
        assert batch.resume(layout.root, here).missing == 0
