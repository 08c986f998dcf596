"""What `self_improving` learns in campaigns on ToolQuest: a table for the docs.

    python benchmarks/campaigns.py             writes docs/tables/campaigns.md
    python benchmarks/campaigns.py --runs 1    each campaign once, printed only

A campaign is played several times, each under a master secret of its own, through the
whole pipeline (plan, run, verified traces) in a temporary directory: so the spread from
run to run stands in the table beside the mean. Of the longest one kappa is reported.
"""

import argparse
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from owa_bench.records.events import Intervention, Revision
from owa_bench.records.score import AgentVerdict
from owa_bench.records.trace import Trace
from owa_bench.reports import statement
from owa_bench.reports.read import bundle
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Budgeted, Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "campaigns.md"
RUNS = 4
NOTHING = "not computable"
AGENT = "self_improving"
# Ten days on which drift grows by a tenth, twenty practice episodes each. The index is
# that of the axes on which a beginner stands above 0.
LEARNING = Campaign(
    checkpoint=(
        Draw(
            name="toolquest",
            families=("reconcile", "restock"),
            tiers=(2,),
            episodes=2,
            interventions=(0, "protocol"),
        ),
    ),
    days=10,
    practice=10,
    drift_per_day=0.1,
    dynamics=("A", "P", "W", "$"),
)


class Setting(NamedTuple):
    """A campaign as its command has it."""

    days: int
    practice: int
    episodes: int
    interventions: Budgeted

    @property
    def flags(self) -> str:
        """The flags of `owa-bench run` that play it."""
        limit = self.interventions
        text = f"--days {self.days} --practice {self.practice}"
        text += f" --episodes {self.episodes}"
        return text if limit == "unlimited" else f"{text} --interventions {limit}"


SETTINGS = (Setting(8, 3, 4, 0), Setting(10, 10, 8, 0), Setting(8, 3, 4, "unlimited"))


class Outcome(NamedTuple):
    """What one run of a campaign shows: means of first and last checkpoint."""

    first: float
    last: float
    control_first: float
    control_last: float
    help_first: float
    help_last: float
    adopted: tuple[str, ...]


def main() -> None:
    """Play, print, and write the table when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="runs of each campaign")
    given = parser.parse_args()
    runs = given.runs or RUNS
    with Progress() as bar:
        task = bar.add_task("campaigns", total=runs * (len(SETTINGS) + 1))
        found = []
        for setting in SETTINGS:
            outcomes = []
            for _ in range(runs):
                outcomes.append(outcome(setting))
                bar.advance(task)
            found.append(outcomes)
        kappas = []
        for _ in range(runs):
            kappas.append(kappa())
            bar.advance(task)
    text = page(found, runs) + kappa_section(kappas)
    print(text)
    if given.runs is None:
        TABLE.write_text(text)


def outcome(setting: Setting) -> Outcome:
    """Play one campaign and return what it shows."""
    draw = Draw(
        name="toolquest",
        families=("reconcile",),
        tiers=(1,),
        episodes=setting.episodes,
        interventions=(setting.interventions,),
    )
    campaign = Campaign(checkpoint=(draw,), days=setting.days, practice=setting.practice)
    with tempfile.TemporaryDirectory() as folder:
        return shown(played(campaign, Path(folder)), setting)


def played(campaign: Campaign, folder: Path) -> Path:
    """Play a campaign under a fresh master and return its run directory."""
    request = Request(agents=(AGENT,), campaign=campaign, transcripts=False)
    options = RunOptions(home=folder / "home", in_process=True)
    batch.play(request, folder / "run", options)
    return folder / "run"


class Kappa(NamedTuple):
    """The learner's kappa and its frozen control's, with intervals, and the index."""

    slope: float | None
    low: float | None
    high: float | None
    frozen: float | None
    frozen_low: float | None
    frozen_high: float | None
    first: float | None
    last: float | None


def kappa() -> Kappa:
    """Play the campaign of kappa once and return what its report says."""
    with tempfile.TemporaryDirectory() as folder:
        run = played(LEARNING, Path(folder))
        judged = statement.write(run, keys.load(Path(folder) / "home")).verdicts[0]
    return kappa_of(judged)


def kappa_of(verdict: AgentVerdict) -> Kappa:
    """Return kappa of the index and that of the frozen control on the same cost."""
    whole = next(one for one in verdict.kappas if one.family is None)
    rows = {
        table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for table in verdict.tables
    }
    [beside] = [r for t, r in rows.items() if t.startswith("Counterfactual")]
    daily = [row["AAI_dyn"] for row in rows["Checkpoints in order"]]
    bounds = whole.interval
    return Kappa(
        whole.slope,
        bounds and bounds.low,
        bounds and bounds.high,
        *(beside[0][name] for name in ("slope frozen", "frozen low", "frozen high")),
        daily[0],
        daily[-1],
    )


def kappa_section(found: Sequence[Kappa]) -> str:
    """Return the kappas as Markdown."""
    lines = [
        "",
        "## Kappa",
        "",
        f"{LEARNING.days} days, {LEARNING.drift_per_day:g} of all drift more a day,"
        f" {LEARNING.practice} practice tasks a family and day, families"
        f" {', '.join(LEARNING.checkpoint[0].families)} at tier 2, AAI_dyn over"
        f" {', '.join(LEARNING.dynamics)}; a row a master secret, 95 percent. A unit is"
        " a tenth of what an expert costs for one pass over the checkpoint; the agent"
        " spends a few hundredths of it, so kappa is read by its sign.",
        "",
        "| AAI_dyn, first day | last day | kappa | kappa of the frozen control |",
        "|---" * 4 + "|",
    ]
    for one in found:
        ends = [NOTHING if v is None else f"{v:.2f}" for v in (one.first, one.last)]
        own = _slope(one.slope, one.low, one.high)
        frozen = _slope(one.frozen, one.frozen_low, one.frozen_high)
        lines.append(f"| {' | '.join((*ends, own, frozen))} |")
    return "\n".join(lines) + "\n"


def _slope(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return NOTHING
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def shown(run: Path, setting: Setting) -> Outcome:
    """Return what the checkpoints of a played campaign show."""
    traces = list(bundle.read(run).traces())
    last = setting.days - 1
    return Outcome(
        _quality(_checkpoint(traces, 0)),
        _quality(_checkpoint(traces, last)),
        _quality(_checkpoint(traces, 0, frozen=True)),
        _quality(_checkpoint(traces, last, frozen=True)),
        _help(_checkpoint(traces, 0)),
        _help(_checkpoint(traces, last)),
        tuple(
            _habit(event)
            for trace in traces
            if trace.start.phase == "practice"
            for event in trace.of(Revision)
            if event.decision == "adopted"
        ),
    )


def _checkpoint(traces: Sequence[Trace], day: int, *, frozen: bool = False) -> list[Trace]:
    """Return the checkpoint episodes of a day, the agent's or its control's."""
    return [
        trace
        for trace in traces
        if trace.start.phase == "checkpoint"
        and trace.start.day == day
        and trace.start.arm.endswith("(frozen)") == frozen
    ]


def _quality(traces: Sequence[Trace]) -> float:
    return statistics.fmean(trace.end.q_state for trace in traces)


def _help(traces: Sequence[Trace]) -> float:
    """Return how often the supervisor helped, per episode."""
    return statistics.fmean(
        sum(event.kind == "hint" for event in trace.of(Intervention)) for trace in traces
    )


def _habit(event: Revision) -> str:
    """Return the habit that a revision turns on."""
    return event.proposal.split("`")[1]


def page(found: Sequence[Sequence[Outcome]], runs: int) -> str:
    """Return the table as Markdown."""
    lines = [
        "# What self_improving learns in a campaign",
        "",
        f"Made by `python benchmarks/campaigns.py --runs {runs}`: each campaign so"
        " often, every run under seeds of its own; mean [least, most] where there are"
        " several. A run's number is the mean q_state of a day's checkpoint, the same"
        " tasks every"
        " day. The control is the same agent with its memory thrown away. *Help* is how"
        " often the supervisor helped per episode of the checkpoint.",
        "",
        "`owa-bench run --suite toolquest --family reconcile --tier 1 --agent"
        " self_improving --in-process --out DIR` and:",
        "",
        "| flags | first day | last day | control, first day | control, last day"
        " | help, first day | help, last day | adopted in so many runs |",
        "|---" * 8 + "|",
    ]
    for setting, outcomes in zip(SETTINGS, found, strict=True):
        columns = list(zip(*(one[:6] for one in outcomes), strict=True))
        cells = [_cell(values) for values in columns]
        counts = Counter(habit for one in outcomes for habit in set(one.adopted))
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        adopted = ", ".join(f"{name} {n}" for name, n in ordered)
        row = [f"`{setting.flags}`", *cells, adopted or "nothing"]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _cell(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.2f}"
    if len(values) == 1:
        return mean
    return f"{mean} [{min(values):.2f}, {max(values):.2f}]"


if __name__ == "__main__":
    main()
