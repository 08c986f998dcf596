"""`owa-bench run`: plan, sign, play, go on."""

import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress as Bar

from owa_bench.cli import estimating, flags
from owa_bench.cli.console import ERR, OUT, as_json, data_folder, progress
from owa_bench.cli.outcomes import Outcomes
from owa_bench.errors import FieldError, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.run.plan.campaign import Campaign
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Progress, Request, RunOptions
from owa_bench.run.plan.trials import Trials
from owa_bench.run.play import batch
from owa_bench.run.store import keys


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(run)


def _panel(name: str) -> dict[str, Any]:
    return {"rich_help_panel": name}


WHAT = _panel("What is played")
TERMS = _panel("Under which terms")
HOW = _panel("How it is played (no effect on the replay root)")

_DRAWN = (
    *("family", "tier", "delta", "episodes", "repeats", "interventions", "crews"),
    *("practice", "trials", "before"),
)
_SHAPING = (
    *("battery", "suite", "days", "protocol", "price_card", "calendar", "act_seconds"),
    *("steps", "budget", "run_budget", "nonce", "no_transcripts", "plan_only"),
)


def run(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", help="Run directory to make, or to resume.", **WHAT)
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help="A name (owa-bench list agents), module:Name, a .py file, a command "
            "that speaks JSON lines, or http://... Repeat for several arms.",
            **WHAT,
        ),
    ] = None,
    battery: Annotated[
        str | None,
        typer.Option("--battery", help="Name or TOML file; may give a level.", **WHAT),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite", help="Suites, comma-separated; gives no level.", **WHAT
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option("--family", help="Families of --suite, comma-separated.", **WHAT),
    ] = None,
    tier: Annotated[
        str | None, typer.Option("--tier", help="Tiers, such as 1,2.", **WHAT)
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="Drift magnitudes, such as 0,.25,1.", **WHAT),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", help="Instances per family and tier.", **WHAT)
    ] = 1,
    repeats: Annotated[
        int,
        typer.Option("--repeats", help="Noise seeds per instance (pass^k).", **WHAT),
    ] = 1,
    interventions: Annotated[
        str,
        typer.Option(
            "--interventions",
            help="Supervisor budgets, such as 0,2,unlimited: gives the frontier.",
            **WHAT,
        ),
    ] = "unlimited",
    crews: Annotated[
        str,
        typer.Option(
            "--crews",
            help="Ceilings on an agent's roles, such as 1,4,4:muted: gives axis S.",
            **WHAT,
        ),
    ] = "open",
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            help="Campaign over so many simulated days: practice in a lane, a "
            "checkpoint a day, a frozen control.",
            **WHAT,
        ),
    ] = None,
    practice: Annotated[
        int, typer.Option("--practice", help="Campaign: new tasks a day.", **WHAT)
    ] = 1,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            help="SAIL-ON trials per family and tier: --episodes each, a novelty "
            "comes in at a drawn one and stays.",
            **WHAT,
        ),
    ] = None,
    before: Annotated[
        str,
        typer.Option("--before", help="Trials: fewest, most plain episodes.", **WHAT),
    ] = "5,10",
    protocol: Annotated[
        str, typer.Option("--protocol", help="Name or TOML file.", **TERMS)
    ] = "default",
    price_card: Annotated[
        str, typer.Option("--price-card", help="Name or TOML file.", **TERMS)
    ] = "price_card",
    calendar: Annotated[
        str,
        typer.Option(
            "--calendar",
            help="nested, nested:D3, single:api/silent_units@1, reversing:0.25@4, ..",
            **TERMS,
        ),
    ] = "nested",
    act_seconds: Annotated[
        float, typer.Option("--act-seconds", help="Deadline for one act.", **TERMS)
    ] = 60.0,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Most steps an episode.", **TERMS)
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget", help="Ceiling an episode, such as api_calls=200.", **TERMS
        ),
    ] = None,
    run_budget: Annotated[
        list[str] | None,
        typer.Option("--run-budget", help="The same for the whole run.", **TERMS),
    ] = None,
    nonce: Annotated[
        str | None,
        typer.Option("--nonce", help="A verifier's nonce, mixed into seeds.", **TERMS),
    ] = None,
    no_transcripts: Annotated[
        bool,
        typer.Option(
            "--no-transcripts", help="Keep digests only, not what was read.", **TERMS
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", help="Worker processes.", **HOW)
    ] = 1,
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", help="Episodes at once, for slow agents.", **HOW),
    ] = 1,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Agents share the worker: fast.", **HOW)
    ] = False,
    wire: Annotated[
        bool, typer.Option("--wire", help="HTTP over loopback sockets.", **HOW)
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out.", **HOW)
    ] = False,
    plan_only: Annotated[
        bool,
        typer.Option("--plan-only", help="Sign the plan, play nothing yet.", **HOW),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how much it would be, and stop.", **HOW),
    ] = False,
    key: Annotated[
        str, typer.Option("--key", help="Name of the signing key.", **HOW)
    ] = keys.DEFAULT,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", **HOW)] = False,
) -> None:
    """Play agents on a battery or on suites, recorded as evidence.

    The plan is drawn, signed and written before the first episode. A run that was
    stopped goes on with --resume; nothing that was complete is played again.

      owa-bench run --battery demo --agent agentic --agent fixed --out runs/first

      owa-bench run --suite toolquest --tier 1 --agent mine.py --out runs/mine

      owa-bench run --suite cartpole3d --family table1/9 --tier 3 --trials 2
      --episodes 20 --agent pd --agent model_repair --out runs/trials

      owa-bench run --out runs/first --resume
    """
    options = RunOptions(
        home=data_folder(),
        key=key,
        folder=Path.cwd(),
        workers=workers,
        concurrency=concurrency,
        in_process=in_process,
        wire=wire,
    )
    given = flags.given(context)
    _refuse_contradictions(given, calendar)
    if resume and not agent:
        _shown(out, lambda told: batch.resume(out, told), options, json=json)
        return
    if trials is not None:
        delta = delta or "1"  # a trial has one novelty, whole
    drawn = flags.drawn(
        suite, family, tier, delta, episodes, repeats, interventions, crews
    )
    if battery is None and not drawn:
        raise UsageError(
            "Say what is played: --battery NAME or --suite NAME; `owa-bench list "
            "batteries` and `owa-bench list suites` show those at hand."
        )
    request = Request(
        agents=_agents(agent),
        battery=battery,
        draws=() if days is not None or trials is not None else drawn,
        campaign=_campaign(
            days, practice, drawn, calendar if "calendar" in given else ""
        ),
        trials=_trials(trials, before, drawn),
        name=out.name,
        protocol=protocol,
        price_card=price_card,
        calendar=calendar,
        budget=Budget(
            steps=steps,
            act_s=act_seconds,
            episode_meters=flags.meters("--budget", budget),
            run_meters=flags.meters("--run-budget", run_budget),
        ),
        transcripts=not no_transcripts,
        verifier_nonce=nonce,
    )
    if dry_run:
        estimating.show(request, options, json=json)
        return
    _shown(
        out,
        lambda told: batch.play(request, out, told, resume=resume, plan_only=plan_only),
        options,
        json=json,
    )


def _shown(
    out: Path,
    play: Callable[[RunOptions], batch.RunSummary],
    options: RunOptions,
    *,
    json: bool,
) -> None:
    """Play behind a progress bar and print what the directory then holds."""
    outcomes = Outcomes()
    with progress() as bar:
        told = dataclasses.replace(options, progress=_teller(bar, outcomes))
        try:
            summary = play(told)
        except KeyboardInterrupt:
            if RunLayout(out).plan.exists():
                ERR.print(f"{_resumed(out)} goes on from here.")
            raise
    if json:
        as_json({**summary._asdict(), "played": outcomes.as_data()})
        return
    outcomes.show()
    OUT.print(
        f"{summary.complete} of {summary.entries} episodes complete in {summary.root}"
    )
    OUT.print(f"plan           {summary.plan_digest}")
    OUT.print(f"evidence root  {summary.evidence_root}")
    OUT.print(f"replay root    {summary.replay_root}")
    if summary.missing:
        ERR.print(f"{summary.missing} episodes are not played yet: {_resumed(out)}")
    else:
        ERR.print(f"next: owa-bench report {shlex.quote(str(out))}")


def _resumed(out: Path) -> str:
    """Return the command that goes on with a run."""
    return f"owa-bench run --out {shlex.quote(str(out))} --resume"


def _teller(bar: Bar, outcomes: Outcomes) -> Callable[[Progress], None]:
    """Return what counts a closed attempt and moves the bar."""
    task = bar.add_task("playing", total=None)

    def told(news: Progress) -> None:
        outcomes.take(news)
        mean = "" if outcomes.mean is None else f"mean quality {outcomes.mean:.2f}"
        text = f"{news.entry.arm} {news.entry.family} T{news.entry.tier}  {mean}"
        bar.update(task, completed=news.done, total=news.total, description=text)

    return told


def _refuse_contradictions(found: frozenset[str], calendar: str) -> None:
    """Refuse flags that would be ignored beside others."""
    if "dry_run" in found:
        why = "does not go with --dry-run: leave one out."
        flags.refuse_together(found, ("resume", "plan_only"), why)
    if "calendar" in found and not calendar:
        raise FieldError("--calendar", calendar, "must name one, such as nested")
    if "battery" in found:
        why = (
            "goes with --suite; a battery says itself what is drawn and judged by "
            "which protocol. Copy its TOML file and change it there."
        )
        flags.refuse_together(found, (*_DRAWN, "suite", "days", "protocol"), why)
    if "days" not in found:
        flags.refuse_together(found, ("practice",), "goes with --days.")
    if "trials" in found:
        why = "does not go with --trials: a trial draws its own episodes."
        flags.refuse_together(found, ("days", "repeats", "interventions"), why)
    else:
        flags.refuse_together(found, ("before",), "goes with --trials.")
    if "resume" in found and "agent" not in found:
        why = (
            "shapes a plan, and --resume goes on with the plan that is there: leave "
            "it out, or give the whole command again with --resume."
        )
        flags.refuse_together(found, (*_DRAWN, *_SHAPING), why)


def _agents(agents: list[str] | None) -> tuple[str, ...]:
    if not agents:
        raise UsageError(
            "Name at least one --agent; `owa-bench list agents` shows those at hand."
        )
    return tuple(agents)


def _campaign(
    days: int | None, practice: int, draws: tuple[Draw, ...], calendar: str
) -> Campaign | None:
    if days is None:
        return None
    if len(draws) != 1:
        raise UsageError("A campaign (--days) needs exactly one --suite.")
    return Campaign(
        checkpoint=draws[0], days=days, practice=practice, calendar=calendar
    )


def _trials(count: int | None, before: str, draws: tuple[Draw, ...]) -> Trials | None:
    if count is None:
        return None
    if len(draws) != 1:
        raise UsageError("Trials (--trials) need exactly one --suite.")
    ends = tuple(flags.number("--before", part, int) for part in flags.split(before))
    if len(ends) != 2:
        raise FieldError("--before", before, "must be two counts, such as 5,10")
    return Trials(draw=draws[0], count=count, before=(ends[0], ends[1]))
