"""The agent in a campaign: revisions in the record, resumed to the same bytes."""

from pathlib import Path
from typing import Any

import pytest

from owa_bench.records.events import Revision
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

CHECKPOINT = Draw(
    name="toolquest",
    families=("reconcile",),
    tiers=(1,),
    deltas=(0.0,),
    episodes=3,
    interventions=(0,),
)
ASKED = Request(
    agents=("self_improving",), campaign=Campaign(checkpoint=(CHECKPOINT,), days=3, practice=3)
)


def options(folder: Path, **changes: Any) -> RunOptions:
    return RunOptions(home=folder / "home", in_process=True, **changes)


@pytest.fixture(scope="module")
def draft_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed plan that is not played yet."""
    folder = tmp_path_factory.mktemp("planned")
    with pytest.MonkeyPatch.context() as patch:
        # Three tasks of a fresh master each time may be three easy ones.
        patch.setattr(escrow, "fresh_bytes", lambda: bytes(range(32)))
        batch.play(ASKED, folder / "run", options(folder), plan_only=True)
    return folder


def copied(draft_plan: Path, name: str) -> Path:
    out = draft_plan / name
    out.mkdir()
    for path in (draft_plan / "run").iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


@pytest.fixture(scope="module")
def whole(draft_plan: Path) -> Path:
    """The campaign played in one go."""
    out = copied(draft_plan, "whole")
    batch.resume(out, options(draft_plan))
    return out


def test_checkpoints_rise_with_the_adopted_habit_and_the_control_stays(whole: Path) -> None:
    quality: dict[tuple[bool, int], list[float]] = {}
    decisions = []
    for trace in bundle.read(whole).traces():
        start = trace.start
        if start.phase == "checkpoint":
            key = ("frozen" in start.arm, start.day)
            quality.setdefault(key, []).append(trace.end.q_state)
        else:
            decisions += [(start.day, e.decision) for e in trace.of(Revision)]
    assert ("adopted" in {decision for _, decision in decisions}) is True
    assert quality[True, 0] == quality[True, 1] == quality[True, 2]
    assert quality[False, 0] == quality[True, 0]
    assert sum(quality[False, 2]) > sum(quality[True, 2]) + 1.0


def test_revisions_say_what_was_planned_and_by_whom(whole: Path) -> None:
    practice = [
        event
        for trace in bundle.read(whole).traces()
        if trace.start.phase == "practice"
        for event in trace.of(Revision)
    ]
    first, second = practice[:2]
    assert (first.decision, second.decision) == ("proposed", "adopted")
    assert first.plan == second.plan
    assert first.source == "agent"
    assert "wins 3, losses 0, ties 0" in second.proposal


def test_a_stopped_campaign_resumes_to_the_same_roots(draft_plan: Path, whole: Path) -> None:
    seen = []

    def interrupt(progress: Any) -> None:
        seen.append(progress)
        if len(seen) == 13:
            raise KeyboardInterrupt

    out = copied(draft_plan, "stopped")
    with pytest.raises(KeyboardInterrupt):
        batch.resume(out, options(draft_plan, progress=interrupt))
    resumed = batch.resume(out, options(draft_plan))
    assert resumed.missing == 0
    assert resumed.replay_root == batch.resume(whole, options(draft_plan)).replay_root
