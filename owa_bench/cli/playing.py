"""`owa-bench run`: plan, sign, play, resume."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.progress import Progress as Bar

from owa_bench.cli import options
from owa_bench.cli.console import ERR, OUT, as_json, progress, table
from owa_bench.cli.dry_run import print_estimate
from owa_bench.cli.options import Fields, Panel
from owa_bench.errors import FieldError, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import WEAK_HOSTINGS, Budget
from owa_bench.run.gateway.options import GatewayOptions
from owa_bench.run.plan import request as requests
from owa_bench.run.plan.campaign import Campaign, Trials
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.plan import read_plan
from owa_bench.run.play import batch
from owa_bench.run.store import keys

WHAT = Panel("What is played")
TERMS = Panel("Under which terms")
REACH = Panel("What agents may reach (docs/model-gateway.md)")
HOW = Panel("How it is played (no effect on the replay root)")

# Options that shape what is drawn, and the rest of those that shape a plan.
_DRAWN = (
    *("family", "tier", "delta", "episodes", "repeats", "interventions", "crews"),
    "tools_off",
    *("practice", "trials", "before"),
)
_SHAPING = (
    *("battery", "suite", "days", "protocol", "price_card", "calendar", "act_seconds"),
    *("steps", "budget", "run_budget", "nonce", "no_transcripts", "plan_only"),
    "sandbox",
)
_FAILED = ("agent_raised", "agent_timeout", "infrastructure")
_LONGEST_REASON = 160  # characters of a failure that are shown
_MICRO = 10**6


def run(
    context: typer.Context,
    out: Path = WHAT(..., "Run directory to make, or to resume."),
    agent: list[str] | None = WHAT(
        None,
        "A name (owa-bench list agents), module:Name, a .py file, a command that "
        "speaks JSON lines, or http://... Repeat for several arms.",
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
    interventions: str = WHAT(
        "unlimited", "Supervisor budgets, such as 0,2,unlimited: gives the frontier."
    ),
    crews: str = WHAT(
        "open", "Ceilings on an agent's roles, such as 1,4,4:muted: gives axis S."
    ),
    tools_off: str | None = WHAT(
        None, "Tools taken from those on offer, such as note,recall."
    ),
    days: int | None = WHAT(
        None,
        "Campaign over so many simulated days: practice in a lane, a checkpoint a "
        "day, a frozen control.",
    ),
    practice: int = WHAT(1, "Campaign: new tasks a day."),
    trials: int | None = WHAT(
        None,
        "SAIL-ON trials per family and tier: --episodes each, a novelty comes in at a "
        "drawn one and stays.",
    ),
    before: str = WHAT("5,10", "Trials: fewest, most plain episodes."),
    terms: Fields = TERMS.fields(
        requests.Request,
        protocol="Name or TOML file.",
        price_card="Name or TOML file.",
        calendar="nested, nested:D3, single:api/silent_units@1, reversing:0.25@4, ..",
        sandbox="Around agents: auto, namespaces, docker, or none (V2 at most).",
    ),
    act_seconds: float = TERMS(Budget().act_s, "Deadline for one act."),
    steps: int | None = TERMS(None, "Most steps an episode."),
    budget: list[str] | None = TERMS(
        None, "Ceiling an episode, such as api_calls=200."
    ),
    run_budget: list[str] | None = TERMS(None, "The same for the whole run."),
    nonce: str | None = TERMS(None, "A verifier's nonce, mixed into seeds."),
    no_transcripts: bool = TERMS(False, "Keep digests only, not what was read."),
    model: Fields = REACH.fields(
        GatewayOptions,
        model_url="Address of the models' provider, such as http://127.0.0.1:8000/v1; "
        "$OPENAI_BASE_URL if left out.",
        model_key_env="Variable that holds the API key, which no agent sees.",
        model_cache="Folder of replies by request: each is paid for once.",
    ),
    allow_host: list[str] | None = REACH(
        None, "HOST:PORT that agents may connect to; their cost is unknown then."
    ),
    pass_env: list[str] | None = REACH(None, "Variable that agents get; no other."),
    how: Fields = HOW.fields(
        requests.RunOptions,
        workers="Worker processes.",
        executor="local, or ray: workers on the nodes of a cluster.",
        ray_address="Ray's cluster; else one is started on this machine.",
        concurrency="Episodes at once, for slow agents.",
        in_process="Agents share the worker: fast, V2 at most.",
        wire="HTTP over loopback sockets.",
        key="Name of the signing key.",
    ),
    resume: bool = HOW(False, "Go on with the run in --out."),
    plan_only: bool = HOW(False, "Sign the plan, play nothing yet."),
    dry_run: bool = HOW(False, "Say how much it would be, and stop."),
    json: bool = HOW(False, "Print JSON."),
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
    gateway = GatewayOptions(
        **model, allow_host=tuple(allow_host or ()), pass_env=tuple(pass_env or ())
    )
    run_options = requests.RunOptions(
        home=keys.data_folder(), folder=Path.cwd(), gateway=gateway, **how
    )
    given = options.given_names(context)
    calendar = terms["calendar"]
    _refuse_contradictions(given, calendar)
    if resume and not agent:
        _play(out, lambda o: batch.resume(out, o), run_options, json=json)
        return
    if trials is not None:
        delta = delta or "1"  # a trial has one novelty, whole
    draws = options.draws_of(
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
    chosen = calendar if "calendar" in given else ""
    request = requests.Request(
        agents=_agents(agent),
        battery=battery,
        draws=() if days is not None or trials is not None else draws,
        campaign=_campaign(days, practice, draws, chosen),
        trials=_trials(trials, before, draws),
        name=out.name,
        budget=Budget(
            steps=steps,
            act_s=act_seconds,
            episode_meters=options.meters("--budget", budget),
            run_meters=options.meters("--run-budget", run_budget),
        ),
        transcripts=not no_transcripts,
        verifier_nonce=nonce,
        **terms,
    )
    if dry_run:
        print_estimate(request, run_options, json=json)
        return

    def play(told: requests.RunOptions) -> batch.RunSummary:
        return batch.play(request, out, told, resume=resume, plan_only=plan_only)

    _play(out, play, run_options, json=json)


def _refuse_contradictions(given: frozenset[str], calendar: str) -> None:
    """Refuse options that would be ignored beside others."""
    if "dry_run" in given:
        why = "does not go with --dry-run: leave one out."
        options.refuse_together(given, ("resume", "plan_only"), why)
    if "calendar" in given and not calendar:
        raise FieldError("--calendar", calendar, "must name one, such as nested")
    if "battery" in given:
        why = (
            "goes with --suite; a battery says itself what is drawn and judged by "
            "which protocol. Copy its TOML file and change it there."
        )
        options.refuse_together(given, (*_DRAWN, "suite", "days", "protocol"), why)
    if "days" not in given:
        options.refuse_together(given, ("practice",), "goes with --days.")
    if "trials" in given:
        why = "does not go with --trials: a trial draws its own episodes."
        options.refuse_together(given, ("days", "repeats", "interventions"), why)
    else:
        options.refuse_together(given, ("before",), "goes with --trials.")
    if "resume" in given and "agent" not in given:
        why = (
            "shapes a plan, and --resume goes on with the plan that is there: leave "
            "it out, or give the whole command again with --resume."
        )
        options.refuse_together(given, (*_DRAWN, *_SHAPING), why)


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
    [draw] = draws
    return Campaign(checkpoint=draw, days=days, practice=practice, calendar=calendar)


def _trials(count: int | None, before: str, draws: tuple[Draw, ...]) -> Trials | None:
    if count is None:
        return None
    if len(draws) != 1:
        raise UsageError("Trials (--trials) need exactly one --suite.")
    ends = [options.number("--before", text, int) for text in options.split(before)]
    if len(ends) != 2:
        raise FieldError("--before", before, "must be two counts, such as 5,10")
    return Trials(draw=draws[0], count=count, before=(ends[0], ends[1]))


# --- playing and what came of it ------------------------------------------------------


def _play(
    out: Path,
    play: Callable[[requests.RunOptions], batch.RunSummary],
    run_options: requests.RunOptions,
    *,
    json: bool,
) -> None:
    """Play behind a progress bar and print what the directory then holds."""
    outcomes = Outcomes()
    with progress() as bar:
        report = _reporter(bar, outcomes)
        try:
            summary = play(dataclasses.replace(run_options, progress=report))
        except KeyboardInterrupt:
            if RunLayout(out).plan.exists():
                ERR.print(f"{_resume_command(out)} goes on from here.")
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
    for hosting, arms in _weak_hostings(out):
        ERR.print(
            f"{hosting}: V{WEAK_HOSTINGS[hosting]} at most, for {', '.join(arms)}"
        )
    if left := summary.missing:
        ERR.print(f"{left} episodes are not played yet: {_resume_command(out)}")
    else:
        ERR.print(f"next: owa-bench report {shlex.quote(str(out))}")


def _weak_hostings(out: Path) -> list[tuple[str, list[str]]]:
    """Return the hostings of a run that lower its assurance, each with its arms."""
    arms: dict[str, list[str]] = {}
    for arm in read_plan(RunLayout(out)).arms:
        arms.setdefault(arm.hosting, []).append(arm.name)
    return [
        (hosting, names) for hosting, names in arms.items() if hosting in WEAK_HOSTINGS
    ]


def _resume_command(out: Path) -> str:
    return f"owa-bench run --out {shlex.quote(str(out))} --resume"


def _reporter(bar: Bar, outcomes: "Outcomes") -> Callable[[requests.Progress], None]:
    """Return the callback that counts a closed attempt and moves the bar."""
    task = bar.add_task("playing", total=None)

    def report(news: requests.Progress) -> None:
        outcomes.take(news)
        mean = "" if outcomes.mean is None else f"mean quality {outcomes.mean:.2f}"
        text = f"{news.entry.arm} {news.entry.family} T{news.entry.tier}  {mean}"
        bar.update(task, completed=news.done, total=news.total, description=text)

    return report


class Outcomes:
    """Outcomes and qualities of the attempts that closed, arm by arm."""

    def __init__(self) -> None:
        self._ends: dict[str, Counter[str]] = {}
        self._quality: dict[str, list[float]] = {}
        self._first: dict[str, str] = {}

    def take(self, news: requests.Progress) -> None:
        """Count one closed attempt."""
        arm, end = news.entry.arm, news.end
        self._ends.setdefault(arm, Counter())[end.outcome] += 1
        values = self._quality.setdefault(arm, [])
        if news.leaf.status == "complete":
            values.append(end.q_state)
        if end.outcome in _FAILED:
            reason = " ".join(end.reason.split())
            self._first.setdefault(arm, f"{end.outcome}: {reason}"[:_LONGEST_REASON])

    @property
    def mean(self) -> float | None:
        """Mean quality of all that counted, None before the first."""
        return _mean([value for each in self._quality.values() for value in each])

    def as_data(self) -> list[dict[str, Any]]:
        """Return a row per arm, for machines."""
        return [
            {
                "arm": arm,
                "episodes": len(self._quality[arm]),
                "mean_quality": _mean(self._quality[arm]),
                "outcomes": dict(ends),
                "first_failure": self._first.get(arm),
            }
            for arm, ends in self._ends.items()
        ]

    def show(self) -> None:
        """Print the table, and the first failure of every arm that has one."""
        if not self._ends:
            return
        rows = []
        for row in self.as_data():
            mean = "" if row["mean_quality"] is None else f"{row['mean_quality']:.2f}"
            ends = ", ".join(f"{n} {name}" for name, n in row["outcomes"].items())
            rows.append((row["arm"], row["episodes"], mean, ends))
        columns = ("agent", "episodes", "mean quality", "how they ended")
        table("played now", columns, rows)
        for arm, words in self._first.items():
            ERR.print(f"first failure of {arm}: {words}")


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
