"""`owa-bench place`: play until an agent's level is decided, and not longer."""

import contextlib
import dataclasses
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from owa_bench.cli import options, play_options
from owa_bench.cli.console import ERR, OUT, as_json, ended_by_signals, plain, progress, table
from owa_bench.cli.options import Fields, Panel
from owa_bench.cli.play_options import HOW, TERMS
from owa_bench.errors import EntriesMissingError, FailureLimitError, NeverActedError, UsageError
from owa_bench.placement.limits import BATTERY, PlacementLimits
from owa_bench.records import price_card, protocol
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import GateLine
from owa_bench.records.plan import Budget
from owa_bench.records.price_card import PriceCard
from owa_bench.records.score import Judgement
from owa_bench.runs.plan import request as requests
from owa_bench.runs.plan.dates import VerifierService
from owa_bench.runs.plan.tokens import TokenUse, token_use, total
from owa_bench.runs.play import batch

if TYPE_CHECKING:
    from owa_bench.placement.forecast import Forecast, StageForecast
    from owa_bench.placement.place import PlacementNews

WHAT = Panel("Who is placed, and how far")
# Options that a resume needs again: they are no part of the plan.
_AGAIN = ("level", "usd", "hours", "episodes", "verifier", *play_options.AGAIN)
_SHAPING = ("act_seconds", "nonce", "challenger", "dated", "sandbox", "price_card")
_MICRO = 10**6
_PRICES = ("USD", "USD without cache")
_EPISODE = ("suite", "tier", "tokens read", "from cache", "written", "steps")
# Least widths: one line a gate on 80 columns, where the words at its end are cut.
_COLUMNS: Mapping[str, int | None] = {
    "gate": 5,
    "worlds": 6,
    "value": 5,
    "bounds": 12,
    "required": 8,
    "evidence": 8,
    "answer": 9,
    "": None,
}


def place(
    context: typer.Context,
    agent: str | None = typer.Argument(
        None, help="The agent, as for `owa-bench run --agent`; none with --resume."
    ),
    out: Path = WHAT(..., play_options.OUT_TEXT),
    level: int = WHAT(1, "Stop when this level is decided: 1, or 2 with stages after it."),
    usd: float | None = WHAT(
        None, "Stop before a batch that would take the agent's own cost above this, in USD."
    ),
    hours: float | None = WHAT(None, "Stop before a batch that would take longer, in hours."),
    episodes: int | None = WHAT(None, "Stop before a batch beyond so many episodes."),
    terms: Fields = play_options.terms("price_card", "sandbox"),
    act_seconds: float = play_options.ActSeconds,
    nonce: str | None = play_options.Nonce,
    challenger: str = play_options.Challenger,
    verifier: str | None = TERMS(
        None,
        "A verifier's service, asked for the challenge and, for a served model, for its dates "
        "(docs/placement.md#dates).",
        metavar="URL",
    ),
    dated: bool = TERMS(
        False, "The agent asks a model though its name does not say so: its level needs dates."
    ),
    reach: Fields = play_options.Reach,
    how: Fields = play_options.how("workers", "concurrency", "key", "failure_share"),
    no_preflight: bool = play_options.NoPreflight,
    resume: bool = HOW(False, "Go on with the placement in --out, with a new budget."),
    plan_only: bool = HOW(False, "Sign the pool, play nothing yet: for a challenge or a witness."),
    dry_run: bool = HOW(False, "Say what it would take, by the agent's success, and stop."),
    json: bool = HOW(False, "Print JSON: an event a look, and the verdict."),
) -> None:
    """Place an agent on the scale: play until its level is decided, and not longer.

    The pool of tasks and the rule are signed first. Then the agent plays batch by batch; after each
    one a signed look says of every gate PASS, BELOW or UNDECIDED. It stops at the first gate that
    is BELOW, when all gates PASS, or at a budget; --resume goes on. An agent that is clearly above
    or below AAI-1 takes some 100 to 400 episodes. --level 2 goes on from AAI-1 by stages of a fixed
    size, each judged once; it may be said from the start or with --resume.

      owa-bench place agentic --out runs/agentic

      owa-bench place "language-model:model=NAME" --usd 50 --out runs/model

      owa-bench place --resume --usd 150 --out runs/model

      owa-bench place agentic --dry-run --out runs/none
    """
    run_options = play_options.run_options(how, reach, no_preflight=no_preflight)
    limits = PlacementLimits(level, usd, hours, episodes)
    limits.check()
    given = options.given_names(context)
    if resume:
        why = "shapes a plan, and --resume goes on with the plan that is there: leave it out."
        options.refuse_together(given, _SHAPING, why)
    elif agent is None:
        raise UsageError("Say who is placed: owa-bench place AGENT --out RUN.")
    if verifier and (challenger or plan_only or nonce):
        raise UsageError("--verifier asks that verifier for the challenge by itself.")
    if challenger and not plan_only:
        raise UsageError("--challenger goes with --plan-only: the seeds wait for the challenge.")
    request = requests.Request(
        agents=(agent,) if agent else (),
        battery=BATTERY,
        name=out.name,
        budget=Budget(act_s=act_seconds),
        verifier_nonce=nonce,
        challenger=challenger,
        dated=dated,
        **terms,
    )
    if dry_run:
        _print_forecast(request, run_options, level, json=json)
        return
    if plan_only:
        batch.play(request, out, run_options, plan_only=True)
        OUT.print(f"Signed in {out}; when it is challenged: {_again(out, '')}")
        return
    again = _again(out, options.flags(context, _AGAIN))
    desk = None if verifier is None else VerifierService(verifier)
    judgement = _play(request, out, run_options, limits, again, desk, resume=resume, json=json)
    _print_verdict(judgement, out, json=json)


def _again(out: Path, flags: str) -> str:
    return f"owa-bench place --resume --out {shlex.quote(str(out))}{flags}"


def _play(
    request: requests.Request,
    out: Path,
    run_options: requests.RunOptions,
    limits: PlacementLimits,
    again: str,
    verifier: VerifierService | None,
    *,
    resume: bool,
    json: bool,
) -> Judgement:
    """Play a placement under the eyes of whoever called, and return its judgement."""
    from owa_bench.placement import place as placing  # brings SciPy and the figures

    try:
        with ended_by_signals(), _screen(json=json) as screen:
            told = dataclasses.replace(run_options, progress=screen.take)
            if resume:
                judgement = placing.go_on(out, told, limits, screen.look, verifier)
            else:
                judgement = placing.place(
                    request, out, told, limits, screen.look, verifier=verifier
                )
        if screen.is_open:
            ERR.print(f"to go on: {again}")
        return judgement
    except KeyboardInterrupt:
        if RunLayout(out).plan.exists():
            with contextlib.suppress(OSError):  # of a terminal that is gone
                ERR.print(f"{again} continues from here.")
        raise
    except (FailureLimitError, EntriesMissingError, NeverActedError) as error:
        raise type(error)(f"{str(error).rstrip('.')}. When it is mended: {again}") from error


# --- while it runs --------------------------------------------------------------------


class _Watch:
    """Shows each look and, on a terminal, how far its batch is."""

    def __init__(self, live: Live | None, *, json: bool) -> None:
        self._live, self._json = live, json
        self._news: PlacementNews | None = None
        self._bar = progress()
        self._task = self._bar.add_task("", total=None)
        self._played = 0

    @property
    def is_open(self) -> bool:
        """Whether a budget stopped it although the rule goes on."""
        return self._news is not None and self._news.is_open

    def take(self, news: requests.Progress) -> None:
        """Count one closed attempt."""
        self._played += news.leaf.status == "complete"
        text = f"{news.entry.suite} {news.entry.family} T{news.entry.tier}  {news.usd:,.2f} USD"
        self._bar.update(self._task, completed=self._played, description=text)

    def look(self, news: "PlacementNews") -> None:
        """Show a look."""
        self._news, self._played = news, 0
        size = len(news.state.batch.indices)
        self._bar.reset(self._task, total=size or 1)
        if self._json:
            OUT.out(msgspec.json.encode(plain(_event(news)), enc_hook=str).decode())
        elif self._live is not None:
            self._live.update(Group(_gates_table(news), self._bar))
        else:
            ERR.print(_line(news))


@contextmanager
def _screen(*, json: bool) -> Iterator[_Watch]:
    """Show a placement in place on a terminal, a line a look in a log, JSON events for machines."""
    if json or not ERR.is_terminal:
        yield _Watch(None, json=json)
        return
    with Live(console=ERR, refresh_per_second=4, transient=False) as live:
        yield _Watch(live, json=False)


def _event(news: "PlacementNews") -> dict[str, Any]:
    state = news.state
    return {
        "look": state.number,
        "episodes": news.episodes,
        "usd": news.usd,
        "gates": [msgspec.to_builtins(line) for line in state.gates],
        "decision": state.decision,
        "stop": news.stop,
        "next": len(state.batch.indices),
        "reads": list(state.batch.reads),
    }


def _line(news: "PlacementNews") -> str:
    gates = "; ".join(
        f"{_name(line)} {_number(line.mean)} [{line.low:.2f}, {line.high:.2f}] {line.status}"
        for line in news.state.gates
    )
    size = len(news.state.batch.indices)
    then = f"stops: {news.stop}" if news.stop else f"next {size} episodes"
    return (
        f"look {news.state.number}, {news.episodes} episodes, {news.usd:,.2f} USD: {gates}; {then}"
    )


def _gates_table(news: "PlacementNews") -> Table:
    """Return one line a gate: value, bounds, evidence, answer, and what it plays next."""
    state = news.state
    size = len(state.batch.indices)
    then = f"stops: {news.stop}" if news.stop else f"next {size} episodes"
    title = f"look {state.number}, {news.episodes} episodes, {news.usd:,.2f} USD, {then}"
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name, width in _COLUMNS.items():
        shown.add_column(name, no_wrap=True, min_width=width)
    colours = {"PASS": "green", "BELOW": "red"}
    for line in state.gates:
        evidence = f"{math.exp(min(line.log_pass, 9.2)):.3g}/{line.bar:g}" if line.bar else ""
        follows = "next" if line.gate in state.batch.reads and not news.stop else ""
        shown.add_row(
            _name(line),
            str(line.worlds),
            _number(line.mean),
            f"[{line.low:.2f}, {line.high:.2f}]",
            f"{line.required:.2f}",
            evidence,
            Text(line.status, style=colours.get(line.status, "")),
            "; ".join(filter(None, (line.note, follows))),
        )
    return shown


def _name(line: GateLine) -> str:
    return line.gate if line.level == 1 else f"{line.gate}/{line.level}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


# --- before and after -----------------------------------------------------------------


def _print_forecast(
    request: requests.Request, run_options: requests.RunOptions, level: int, *, json: bool
) -> None:
    """Print what a placement would take, by the share of tasks in which the agent succeeds."""
    from owa_bench.placement.forecast import forecasts, stage_forecasts  # bring SciPy

    draft = requests.draft_plan(request, run_options.folder)
    rules, prices = protocol.load(draft.protocol), price_card.load(draft.price_card)
    found = forecasts(draft.plan, rules)
    stages = stage_forecasts(draft.plan, rules) if level > 1 else ()
    uses = token_use(draft.plan.entries, prices)
    if json:
        agents = [
            {**one._asdict(), **dict(zip(_PRICES, _usd(one, uses), strict=True))} for one in found
        ]
        as_json({"agents": agents, "stages": [_stage_event(one, prices) for one in stages]})
        return
    rows = [
        (
            f"{one.success:.2f}",
            f"{one.passed:.2f}",
            f"{one.below:.2f}",
            f"{one.expected:.0f}",
            one.most,
            *("" if usd is None else f"{usd:,.2f}" for usd in _usd(one, uses)),
        )
        for one in found
    ]
    columns = ("success", "AAI-1 said", "below said", "episodes", "most", *_PRICES)
    table("would take, by the agent's success", columns, rows)
    each = [
        (
            use.suite,
            use.tier,
            *(f"{n:,.0f}" for n in (use.each or ())),
            *(f"{(usd or 0) / use.episodes / _MICRO:.3f}" for usd in use[-2:]),
        )
        for use in uses
    ]
    table("an episode of a chat agent, reckoned", (*_EPISODE, *_PRICES), each)
    OUT.print(
        "By simulation of agents whose success is the same at every magnitude, and the suites' "
        "cards; docs/tables/placement.md has more. The simulated supervisor is paid by nobody and "
        "is not in it."
    )
    if stages:
        _print_stages(stages, prices)


def _stage_event(one: "StageForecast", prices: PriceCard) -> dict[str, Any]:
    usd = dict(zip(_PRICES, _stage_usd(one, prices), strict=True))
    return {"stage": one.stage.name, "episodes": len(one.entries), "powers": one.powers, **usd}


def _stage_usd(one: "StageForecast", prices: PriceCard) -> tuple[float | None, float | None]:
    """Return USD of a stage's episodes of a chat agent with the provider's cache and without."""
    uses = token_use(one.entries, prices)
    sums = (total(use.cached_micro_usd for use in uses), total(u.plain_micro_usd for u in uses))
    cached, plain_ = (None if usd is None else usd / _MICRO for usd in sums)
    return cached, plain_


def _print_stages(stages: "Sequence[StageForecast]", prices: PriceCard) -> None:
    """Print what AAI-2 takes after AAI-1, stage by stage."""
    from owa_bench.placement.forecast import MARGINS

    rows = []
    products = [1.0] * len(MARGINS)
    for one in stages:
        money = ["" if usd is None else f"{usd:,.2f}" for usd in _stage_usd(one, prices)]
        head = [one.stage.name, len(one.entries), *money]
        for gate, powers in one.powers.items() or [("", ("",) * len(MARGINS))]:
            shown = [f"{p:.2f}" if isinstance(p, float) else "" for p in powers]
            rows.append((*head, gate, *shown))
            head = [""] * len(head)
            known = zip(products, powers, strict=True)
            products = [whole * (p if isinstance(p, float) else 1.0) for whole, p in known]
    episodes = sum(len(one.entries) for one in stages)
    rows.append(("all", episodes, "", "", "", *(f"{whole:.2f}" for whole in products)))
    columns = ("stage", "episodes", *_PRICES, "gate", *(f"+{margin:g}" for margin in MARGINS))
    title = "AAI-2 after that, by stages: chance to pass at so much above a requirement"
    table(title, columns, rows)
    OUT.print(
        "Of kappa: at a gain of so much. Of maintenance: for an agent that keeps everything and "
        "whose episodes are not alike from lane to lane; where they are it is greater "
        "(docs/tables/maintenance_power.md). A gate without a number has no formula. All: the "
        "product of the numbers."
    )


def _usd(one: "Forecast", uses: Sequence[TokenUse]) -> tuple[float | None, float | None]:
    """Return USD of a chat agent's placement with the provider's cache and without."""
    cached = _usd_of(one, [(use.suite, use.episodes, use.cached_micro_usd) for use in uses])
    return cached, _usd_of(one, [(use.suite, use.episodes, use.plain_micro_usd) for use in uses])


def _usd_of(one: "Forecast", uses: Sequence[tuple[str, int, int | None]]) -> float | None:
    """Return USD of a forecast by the mean cost of an episode of each suite."""
    episodes, costs = Counter[str](), Counter[str]()
    for suite, count, cost in uses:
        if cost is None:
            return None
        episodes[suite] += count
        costs[suite] += cost
    return sum(n * costs[s] / episodes[s] for s, n in one.suites.items()) / _MICRO


def _print_verdict(judgement: Judgement, out: Path, *, json: bool) -> None:
    verdict = judgement.verdicts[0]
    if json:
        OUT.out(msgspec.json.encode({"verdict": plain(verdict)}, enc_hook=str).decode())
        return
    OUT.print(Text.assemble((verdict.arm, "bold"), f": {verdict.level_text}"))
    for warning in verdict.warnings:
        OUT.print(f"  {warning}")
    OUT.print(f"Report: {RunLayout(out).page.resolve()}")
