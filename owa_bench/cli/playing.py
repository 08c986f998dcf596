"""`owa-bench run`: plan, sign, play, resume."""

import contextlib
import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from owa_bench.cli import draw_options, options, play_options
from owa_bench.cli.console import ERR, OUT, as_json, ended_by_signals
from owa_bench.cli.options import Fields, Panel
from owa_bench.cli.play_options import HOW, TERMS
from owa_bench.cli.run_output import Outcomes, announce, print_estimate, run_progress
from owa_bench.errors import (
    EntriesMissingError,
    FailureLimitError,
    FieldError,
    NeverActedError,
    UsageError,
)
from owa_bench.hosting.isolation import HOSTINGS
from owa_bench.hosting.spec import SEATS
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import WEAK_HOSTINGS, Budget
from owa_bench.runs.plan import request as requests
from owa_bench.runs.plan.budget import USD
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Draw, load_battery
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play import batch

WHAT = Panel("What is played")

_CAMPAIGN = ("practice", "holdout", "adopt_by", "sustain", "maintenance", "placebo")
# Options that shape what is drawn, and the rest of those that shape a plan.
_OF_TRIALS = ("before", "given_detection", "hints")
_DRAWN = (
    *("family", "tier", "delta", "episodes", "repeats", "interventions", "crews"),
    "tools_off",
    *("trials", *_OF_TRIALS, *_CAMPAIGN),
)
_SHAPING = (
    *("battery", "suite", "days", "protocol", "price_card", "calendar", "act_seconds"),
    *("steps", "budget", "run_budget", "nonce", "no_transcripts", "plan_only"),
    *("sandbox", "worlds_of", "challenger", "model_field"),
)
# Options that a resume needs again: they are no part of the plan.
_AGAIN = (*play_options.AGAIN, "executor", "ray_address", "wire")


def run(
    context: typer.Context,
    out: Path = WHAT(..., play_options.OUT_TEXT),
    agent: list[str] | None = WHAT(
        None,
        "A name (owa-bench list agents), module:Name, a .py file, a command that "
        "speaks JSON lines, clone:COMMAND, or http://... NAME= before it: what it is "
        "called here. Repeat for several arms.",
    ),
    seat: list[str] | None = WHAT(
        None, "One more arm, a mixed crew: ROLE=AGENT for some, '*'=AGENT for all others."
    ),
    battery: str | None = WHAT(None, "Name or TOML file; may give a level."),
    suite: str | None = WHAT(None, "Suites, comma-separated; gives no level."),
    family: str | None = WHAT(None, "Families of --suite, comma-separated."),
    tier: str | None = WHAT(None, "Tiers, such as 1,2."),
    delta: str | None = WHAT(None, "Drift magnitudes, such as 0,.25,1."),
    counts: Fields = WHAT.fields(
        Draw,
        episodes="Instances per family and tier.",
        repeats="Noise seeds per instance (pass^k).",
    ),
    interventions: str | None = WHAT(
        None,
        "Supervisor budgets, such as 0,2,unlimited; 0,protocol if left out. Axes read "
        "0, axis A the protocol's share of the oracle's actions, the frontier all.",
    ),
    crews: str = WHAT("open", "Ceilings on an agent's roles, such as 1,4,4:muted: gives axis S."),
    tools_off: str | None = WHAT(None, "Tools taken from those on offer, such as note,recall."),
    days: int | None = WHAT(
        None,
        "Campaign over so many simulated days: practice in a lane, a checkpoint a "
        "day, a frozen control.",
    ),
    lanes: Fields = WHAT.fields(
        Campaign,
        practice="Campaign: new tasks a day.",
        holdout="Campaign: tasks of each attempt set of the revision (axis R).",
        adopt_by="Campaign: day whose morning ends the revision's window.",
        sustain="Campaign: tasks a later day on which the gain must last.",
        maintenance="Campaign: tasks of each morning's clean and drifted lane.",
    ),
    placebo: str | None = WHAT(
        None, "Campaign: families that the placebo lane practises; others if left out."
    ),
    trials: int | None = WHAT(
        None,
        "SAIL-ON trials per family and tier: --episodes each, a novelty comes in at a "
        "drawn one and stays.",
    ),
    before: str = WHAT("5,10", "Trials: fewest, most plain episodes."),
    given_detection: bool = WHAT(
        False, "Trials: each also with an agent that is told when the novelty comes."
    ),
    hints: int = WHAT(
        -1, "Trials with --given-detection: told of it, 0 the level to 3 what changes."
    ),
    terms: Fields = play_options.terms("protocol", "price_card", "calendar", "sandbox"),
    act_seconds: float = play_options.ActSeconds,
    steps: int | None = TERMS(None, "Most steps an episode."),
    budget: list[str] | None = TERMS(
        None,
        "Ceiling an episode, such as api_calls=200; usd=5 is one of the whole run, by "
        "the price card and without the simulated supervisor.",
    ),
    run_budget: list[str] | None = TERMS(None, "The same for the whole run."),
    nonce: str | None = play_options.Nonce,
    challenger: str = play_options.Challenger,
    model_field: list[str] | None = TERMS(
        None,
        "Field of a model request that the gateway passes on though it is not on its "
        "list; axes M and S are missing where it is used.",
    ),
    worlds_of: Path | None = TERMS(
        None, "Play the worlds of this run of yours, to compare with it; not revealed."
    ),
    no_transcripts: bool = TERMS(False, "Keep digests only, not what was read."),
    reach: Fields = play_options.Reach,
    how: Fields = play_options.how(
        *("workers", "executor", "ray_address", "concurrency"),
        *("in_process", "wire", "key", "failure_share"),
    ),
    no_preflight: bool = play_options.NoPreflight,
    resume: bool = play_options.Resume,
    plan_only: bool = HOW(False, "Sign the plan, play nothing yet."),
    dry_run: bool = play_options.DryRun,
    like: Path | None = HOW(
        None,
        "With --dry-run: a run that was played; say what this one takes by what that one took.",
    ),
    json: bool = play_options.Json,
) -> None:
    """Play agents on a battery or on suites, recorded as evidence.

    The plan is drawn, signed and written before the first episode. A run that was stopped goes on
    with --resume; nothing that was complete is played again.

      owa-bench run --battery demo --agent agentic --agent fixed --out runs/first

      owa-bench run --suite toolquest --tier 1 --agent mine.py --out runs/mine

      owa-bench run --suite cartpole3d --family table1/9 --tier 3 --trials 2
      --episodes 20 --agent pd --agent model_repair --out runs/trials

      owa-bench run --out runs/first --resume
    """
    run_options = play_options.run_options(how, reach, no_preflight=no_preflight)
    given = options.given_names(context)
    calendar = terms["calendar"]
    _refuse_contradictions(given, calendar, battery)
    again = _resume_command(out, options.flags(context, _AGAIN))
    if resume and not agent and not seat:
        play_shown(out, lambda o: batch.resume(out, o), run_options, again, json=json)
        return
    if trials is not None:
        delta = delta or "1"  # a trial has one novelty, whole
    draws = draw_options.draws_of(
        suite=suite,
        family=family,
        tier=tier,
        delta=delta,
        interventions=interventions,
        crews=crews,
        tools_off=tools_off,
        **counts,
    )
    if battery is None and not draws:
        raise UsageError(
            "Say what is played: --battery NAME or --suite NAME; `owa-bench list "
            "batteries` and `owa-bench list suites` show those at hand."
        )
    ceilings = options.meters("--budget", budget)
    chosen = calendar if "calendar" in given else ""
    request = requests.Request(
        agents=_agents(agent, seat),
        battery=battery,
        draws=() if days is not None or trials is not None else draws,
        campaign=_campaign(
            days, draws, calendar=chosen, placebo=tuple(options.split(placebo)), **lanes
        ),
        trials=draw_options.trials_of(trials, before, draws, given=given_detection, hints=hints),
        name=out.name,
        budget=Budget(
            steps=steps,
            act_s=act_seconds,
            episode_meters=tuple(pair for pair in ceilings if pair[0] != USD),
            run_meters=(
                *(pair for pair in ceilings if pair[0] == USD),
                *options.meters("--run-budget", run_budget),
            ),
        ),
        transcripts=not no_transcripts,
        verifier_nonce=nonce,
        challenger=challenger,
        worlds_of=worlds_of,
        model_fields=tuple(model_field or ()),
        **terms,
    )
    if dry_run:
        print_estimate(request, run_options, json=json, like=like)
        return

    def play(told: requests.RunOptions) -> batch.RunSummary:
        told = dataclasses.replace(told, announce=None if json else announce)
        return batch.play(request, out, told, resume=resume, plan_only=plan_only)

    play_shown(out, play, run_options, again, json=json)


def _refuse_contradictions(given: frozenset[str], calendar: str, battery: str | None) -> None:
    """Refuse options that would be ignored beside others."""
    if "dry_run" in given:
        why = "does not go with --dry-run: leave one out."
        options.refuse_together(given, ("resume", "plan_only"), why)
    else:
        options.refuse_together(given, ("like",), "goes with --dry-run.")
    if "calendar" in given and not calendar:
        raise FieldError("--calendar", calendar, "must name one, such as nested")
    if battery is not None:
        why = (
            "does not go with --battery: a battery says itself what is drawn and by "
            "which protocol it is judged. Leave it out, or change a copy of its file."
        )
        options.refuse_together(given, (*_DRAWN, "suite", "days", "protocol"), why)
        if "calendar" in given and load_battery(battery).campaign is not None:
            why = f"does not go with --battery {battery}: its campaign has its own."
            options.refuse_together(given, ("calendar",), why)
    if not {"plan_only", "dry_run", "resume"} & given:
        why = "goes with --plan-only: the seeds wait for the challenge."
        options.refuse_together(given, ("challenger",), why)
    if "days" not in given:
        options.refuse_together(given, _CAMPAIGN, "goes with --days.")
    if "trials" in given:
        why = "does not go with --trials: a trial draws its own episodes."
        options.refuse_together(given, ("days", "repeats", "interventions"), why)
    else:
        options.refuse_together(given, _OF_TRIALS, "goes with --trials.")
    if "resume" in given and "agent" not in given:
        why = (
            "shapes a plan, and --resume goes on with the plan that is there: leave "
            "it out, or give the whole command again with --resume."
        )
        options.refuse_together(given, (*_DRAWN, *_SHAPING), why)


def _agents(agents: list[str] | None, seats: list[str] | None) -> tuple[str, ...]:
    """Return the agent of each arm; the seats of a mixed crew make one more."""
    crew = [SEATS + ";".join(seats)] if seats else []
    if not agents and not crew:
        raise UsageError("Name at least one --agent; `owa-bench list agents` shows those at hand.")
    return (*(agents or ()), *crew)


def _campaign(days: int | None, draws: tuple[Draw, ...], **terms: Any) -> Campaign | None:
    if days is None:
        return None
    if not draws:
        raise UsageError("A campaign (--days) needs a --suite.")
    return Campaign(checkpoint=draws, days=days, **terms)


# --- playing and what came of it ------------------------------------------------------


def play_shown(
    out: Path,
    play: Callable[[requests.RunOptions], batch.RunSummary],
    run_options: requests.RunOptions,
    again: str,
    *,
    json: bool,
) -> None:
    """Play, show progress, and print what the directory then holds.

    Args:
        out: The run directory.
        play: Plays it under `run_options` with progress; returns what it holds.
        again: The command that goes on with the run.
        run_options: How it is played.
        json: Whether the summary is printed as JSON.
    """
    outcomes = Outcomes()
    try:
        with ended_by_signals(), run_progress(outcomes) as report:
            summary = play(dataclasses.replace(run_options, progress=report))
    except KeyboardInterrupt:
        if RunLayout(out).plan.exists():
            with contextlib.suppress(OSError):  # of a terminal that is gone
                ERR.print(f"{again} continues from here.")
        raise
    except FailureLimitError as error:
        if not json:
            outcomes.show()
        raise FailureLimitError(f"{error}. When it is mended: {again}") from error
    if json:
        as_json({**summary._asdict(), "played": outcomes.as_data()})
        _refuse_missing(summary, again)
        return
    outcomes.show()
    OUT.print(f"{summary.complete} of {summary.entries} episodes complete in {summary.root}")
    OUT.print(f"plan           {summary.plan_digest}")
    OUT.print(f"evidence root  {summary.evidence_root}")
    OUT.print(f"replay root    {summary.replay_root}")
    for hosting, arms in _weak_hostings(out):
        where = HOSTINGS.get(hosting, "where the plan does not say")
        most = WEAK_HOSTINGS[hosting]
        ERR.print(f"{', '.join(arms)} ran {where}: V{most} at most")
    if left := summary.missing:
        ERR.print(f"{left} episodes are not played yet: {again}")
    else:
        run = shlex.quote(str(out))
        ERR.print(f"next: owa-bench report {run}")
        ERR.print(f"why episodes failed: owa-bench view {run} --failures")
    _refuse_missing(summary, again)


def _refuse_missing(summary: batch.RunSummary, again: str) -> None:
    """Raise where episodes are missing through a provider, or an agent never began.

    Args:
        summary: What the run directory holds.
        again: The command that continues the run.
    """
    if lost := summary.missing_through_provider:
        stopped = "".join(
            f" {arm} was stopped after three such episodes in a row: {words}."
            for arm, words in summary.stopped.items()
        )
        raise EntriesMissingError(
            f"{lost} episodes are missing, for the model's provider failed them; "
            f"{summary.missing} are not complete. None of them counts as a failure of "
            f"the agent.{stopped} When the provider is well again: {again}"
        )
    for arm, words in summary.never_acted.items():
        raise NeverActedError(
            f"{arm} was stopped: each of its first episodes ended before the env took "
            f"an act of it. The first: {words}. When it is mended: {again}"
        )


def _weak_hostings(out: Path) -> list[tuple[str, list[str]]]:
    """Return the hostings of a run that lower its assurance, each with its arms."""
    arms: dict[str, list[str]] = {}
    for arm in read_plan(RunLayout(out)).arms:
        arms.setdefault(arm.hosting, []).append(arm.name)
    return [(hosting, names) for hosting, names in arms.items() if hosting in WEAK_HOSTINGS]


def _resume_command(out: Path, flags: str) -> str:
    return f"owa-bench run --out {shlex.quote(str(out))} --resume{flags}"
