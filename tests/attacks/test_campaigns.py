"""Attacks on R, kappa and the closures by agents that play real campaigns."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.records.score import AgentVerdict, AxisScore
from owa_bench.reports import statement
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from owa_bench.scoring.axes.self_revision import GATED
from owa_bench.scoring.observe.attempt_sets import PLACEBO, REVISION
from owa_bench.scoring.verdict import scores
from tests.builders.episodes import PROTOCOL_BYTES

pytestmark = pytest.mark.slow  # real runs

BUILDERS = Path(__file__).parents[1] / "builders"
CHECKPOINT = Draw(
    name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), interventions=(0,)
)
SMALL = Campaign(checkpoint=(CHECKPOINT,), days=1, practice=3, holdout=3, placebo=("reconcile",))


@pytest.fixture
def campaign(tmp_path: Path):
    """Return a function that plays a campaign and returns its verdict and directory."""
    text = PROTOCOL_BYTES.decode()
    for number in ("set_min = 110", "practice_min = 20"):
        assert number in text
        text = text.replace(number, number.partition("=")[0] + "= 1")
    protocol = tmp_path / "protocol.toml"
    protocol.write_text(text)

    def play(
        agent: str, name: str = "run", also: tuple[str, ...] = (), **changes: Any
    ) -> SimpleNamespace:
        asked = Request(
            agents=(f"revising_agents:{agent}", *also),
            campaign=msgspec.structs.replace(SMALL, **changes),
            protocol=str(protocol),
        )
        home, out = tmp_path / f"home-{name}", tmp_path / name
        options = RunOptions(home=home, folder=BUILDERS, in_process=True)
        assert batch.play(asked, out, options).missing == 0
        verdicts = statement.write(out, keys.load(home)).verdicts
        return SimpleNamespace(verdict=verdicts[0], layout=RunLayout(out))

    return play


def revision_axis(verdict: AgentVerdict) -> AxisScore:
    return next(axis for axis in verdict.axes if axis.symbol == "R")


def closure(verdict: AgentVerdict, name: str):
    return next(found for found in verdict.closures if found.name == name)


def gate(verdict: AgentVerdict, name: str, level: int = 2):
    return next(g for g in verdict.gates if (g.gate, g.level) == (name, level))


def test_a_declarer_has_no_gain_and_is_named(campaign) -> None:
    """It read R = 1.000 for doing nothing and declaring a revision."""
    verdict = campaign("Declares", holdout=8).verdict
    found = revision_axis(verdict)
    assert found.value == 0.0
    [revision] = found.details["revisions"]
    assert (revision["lines changed"], revision["counted"]) == (0, False)
    assert gate(verdict, "R").status == "BELOW"
    assert any("declared" in warning for warning in verdict.warnings)


def test_declared_measurements_end_the_episode(campaign) -> None:
    played = campaign("DeclaresNumbers", holdout=0, practice=1)
    ends = [trace.end for trace in bundle.read(played.layout.root).traces()]
    own = [end for end in ends if end.outcome == "agent_raised"]
    assert len(own) == len(ends)
    assert "before" in own[0].reason
    assert revision_axis(played.verdict).value is None


def test_a_planted_handicap_gains_nothing_over_the_placebo(campaign) -> None:
    """Its attempts, control and ablation are honest: only the placebo tells."""
    verdict = campaign("PlantedHandicap", holdout=8).verdict
    found = revision_axis(verdict)
    assert found.value == 1.0
    assert found.details["beside"][GATED]["value"] == pytest.approx(0.0, abs=0.05)
    assert gate(verdict, "R").status == "BELOW"


def test_without_a_placebo_lane_the_gate_has_no_evidence(campaign) -> None:
    draw = msgspec.structs.replace(CHECKPOINT, families=())
    verdict = campaign(
        "PlantedHandicap", checkpoint=(draw,), placebo=(), practice=1, holdout=1
    ).verdict
    assert gate(verdict, "R").status == "NO EVIDENCE"


def test_small_sets_are_no_evidence_under_the_shipped_protocol(tmp_path: Path) -> None:
    asked = Request(agents=("revising_agents:PlantedHandicap",), campaign=SMALL)
    options = RunOptions(home=tmp_path / "h", folder=BUILDERS, in_process=True)
    batch.play(asked, tmp_path / "run", options)
    verdict = statement.write(tmp_path / "run", keys.load(tmp_path / "h")).verdicts[0]
    assert revision_axis(verdict).reason == "an attempt set holds 3 tasks of 110"
    assert gate(verdict, "R").status == "NO EVIDENCE"


def test_a_shipped_skill_that_waits_for_the_holdouts_family_passes_no_gate(
    campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complete as shipped; idles until it has practised a family of the holdout."""
    played = campaign("Installs", holdout=8, placebo=("restock",))
    found = revision_axis(played.verdict)
    capability = found.details["revisions"][0]["capability"]
    assert capability["after"] > capability["before"] + 0.5
    assert capability["placebo"] == capability["before"]  # the placebo tells nothing
    line = gate(played.verdict, "R")
    assert line.status == "NO EVIDENCE"
    assert "R of practice" in line.reason

    # The control: the old rule, by which the gain over the placebo was enough.
    monkeypatch.setattr(scores, "practice_reason", lambda found: "")
    report = statement.write(played.layout.root, None)
    assert gate(report.verdicts[0], "R").status == "PASS"


def test_help_in_practice_takes_the_credit_and_the_kappa(campaign) -> None:
    helped = msgspec.structs.replace(CHECKPOINT, interventions=("unlimited",))
    verdict = campaign(
        "AsksInPractice", checkpoint=(helped,), days=8, practice=1, holdout=2
    ).verdict
    found = revision_axis(verdict)
    assert found.value == 0.0
    assert "help in" in found.details["revisions"][0]["human"]
    line = gate(verdict, "kappa")
    assert line.status == "NO EVIDENCE"  # no checkpoint was played without help


def test_a_family_that_the_harness_can_take_away_expands(campaign) -> None:
    verdict = campaign("Installs", holdout=6, placebo=("restock",)).verdict
    found = closure(verdict, "expansion")
    assert found.status == "PASS", found.reason
    assert found.reason.startswith("reconcile expands")
    names = [text.partition(":")[0] for text in found.evidence]
    assert names == [*REVISION, PLACEBO]


def test_a_family_that_was_shipped_and_unlocked_is_no_expansion(campaign) -> None:
    """It passed: its ablation is honest, and only the placebo lane unlocks it too."""
    verdict = campaign("Unlocks", holdout=6, placebo=("restock",)).verdict
    found = closure(verdict, "expansion")
    assert found.status == "FAIL", found.reason
    gain = re.search(r"gain ([\d.]+) .* over the placebo ([\d.]+),", found.reason)
    assert gain is not None
    assert float(gain[1]) > 0.5
    assert float(gain[2]) == 0.0


def test_a_family_whose_loss_is_another_reason_to_play_badly_is_no_expansion(campaign) -> None:
    """Its ablation costs all that it can do, and before the family it did the same."""
    verdict = campaign("Sulks", holdout=6, placebo=("restock",)).verdict
    found = closure(verdict, "expansion")
    assert found.status == "FAIL", found.reason
    assert "reconcile" in found.reason
    revisions = revision_axis(verdict).details["revisions"][0]["capability"]
    assert revisions["before"] == revisions["after"] > revisions["ablated"] + 0.5


def test_without_a_placebo_lane_expansion_has_no_evidence(campaign) -> None:
    draw = msgspec.structs.replace(CHECKPOINT, families=())
    verdict = campaign("Installs", checkpoint=(draw,), placebo=(), practice=1, holdout=1).verdict
    found = closure(verdict, "expansion")
    assert (found.status, "no placebo lane" in found.reason) == ("NO EVIDENCE", True)


def test_the_oracles_attempts_are_no_expansion_of_another_agent(campaign) -> None:
    """They gave PASS. The oracle plays beside, an empty family is installed."""
    played = campaign("InstallsNothing", also=("oracle",), holdout=6)
    found = closure(played.verdict, "expansion")
    assert found.status == "FAIL", found.reason
    read = bundle.read(played.layout.root)
    traces = list(read.traces())
    arms = {trace.leaf.attempt_id: trace.start.arm for trace in traces}
    ends = {t.start.arm: t.end.q_state for t in traces}
    assert ends["oracle"] == 1.0
    cited = [e for line in found.evidence for e in line.split(": ")[1].split(" to ")]
    assert len(cited) == 12
    own = played.verdict.arm
    assert {arms[attempt] for attempt in cited} == {own, f"{own} (frozen)", f"{own} (placebo)"}


@pytest.mark.parametrize(("stride", "days"), [(1, 7), (10, 1)])
def test_days_that_are_not_consecutive_are_no_window(
    campaign, monkeypatch: pytest.MonkeyPatch, stride: int, days: int
) -> None:
    """Days 0, 10, .., 60 passed as seven consecutive ones: a plan of one's own."""
    draft_plan = batch.draft_plan

    def spread(*args: Any, **options: Any) -> Any:
        draft = draft_plan(*args, **options)
        entries = [
            msgspec.structs.replace(e, day=e.day and e.day * stride) for e in draft.plan.entries
        ]
        plan = msgspec.structs.replace(draft.plan, entries=tuple(entries))
        return draft._replace(plan=plan)

    monkeypatch.setattr(batch, "draft_plan", spread)
    verdict = campaign("PlantedHandicap", days=8, practice=1, holdout=0).verdict
    [kappa] = [found for found in verdict.kappas if found.family is not None]
    assert kappa.checkpoints == days
    line = gate(verdict, "kappa")
    # One task a family-day: where there is a window, its gain has no error over tasks.
    assert line.status == "NO EVIDENCE", line
    assert ("fewer than two tasks" in line.reason) == (days == 7), line.reason


def test_a_gain_outside_the_family_is_no_expansion(campaign) -> None:
    found = closure(campaign("PlantedHandicap").verdict, "expansion")
    assert (found.status, "no tool family" in found.reason) == ("NOT TESTED", True)


def test_a_wasteful_checkpointer_has_the_same_kappa_unit(
    campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's own cheapest checkpoint was the unit, and could be inflated."""
    monkeypatch.setattr(escrow, "fresh_bytes", lambda: bytes(range(32)))
    asked = {"days": 8, "practice": 1, "holdout": 0}
    frugal, dear = (
        campaign(agent, name=agent, **asked).verdict for agent in ("PlantedHandicap", "Wastes")
    )
    units = [v.kappas[1].details["kappa unit, USD"] for v in (frugal, dear)]
    assert units[0] == units[1]
    costs = [v.cost_micro_usd["evaluation"] or 0 for v in (frugal, dear)]
    assert costs[1] > costs[0]


def test_lanes_of_maintenance_begin_with_each_mornings_memory(campaign) -> None:
    """Checkpoints replayed one frozen snapshot, and static agents read 1.000."""
    played = campaign("PlantedHandicap", days=8, practice=1, holdout=0, maintenance=2)
    traces = list(bundle.read(played.layout.root).traces())
    mornings, lanes = {0: None}, {}
    for trace in traces:
        start = trace.start
        if start.phase == "practice":
            mornings[start.day + 1] = trace.leaf.memory
        elif start.condition and start.lane:
            lanes.setdefault(start.day, set()).add(trace.leaf.memory)
    assert all(len(memory) == 1 for memory in lanes.values())
    assert all(lanes[day] == {mornings[day]} for day in range(1, 8))
    found = closure(played.verdict, "maintenance")
    # from day 1 on the lanes are a window of 7 days; what is left to say is its verdict
    assert "consecutive days" not in found.reason
