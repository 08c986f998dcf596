"""`owa-bench run --dry-run`: what a request would take, printed."""

from typing import TYPE_CHECKING

from owa_bench.cli.console import OUT, as_json, table
from owa_bench.records import protocol
from owa_bench.run.plan.request import (
    PlanDraft,
    Request,
    RunEstimate,
    RunOptions,
    draft_plan,
    estimate,
)
from owa_bench.run.plan.sample_sizes import sample_sizes

if TYPE_CHECKING:
    from owa_bench.scoring.power import GatePower

_MICRO = 10**6


def print_estimate(request: Request, run_options: RunOptions, *, json: bool) -> None:
    """Print episodes, time, the most a request can cost, and the gates' power.

    Nothing is played. Power is shown of batteries that give a level.

    Args:
        request: What would be played; a wrong one raises as in `draft_plan`.
        run_options: How it would be played.
        json: Whether it is printed as JSON.
    """
    draft = draft_plan(request, run_options.folder, in_process=run_options.in_process)
    found = estimate(draft, run_options)
    powers = _powers(draft)
    if json:
        gates = [power._asdict() for power in powers]
        as_json({**found._asdict(), "gates": gates})
        return
    record, texts = found.record_bytes / _MICRO, found.transcript_bytes / _MICRO
    table("would be played", ("agent", "episodes"), [*found.by_arm.items()])
    rows = [
        ("episodes", found.episodes),
        ("agents that answer at once", f"about {_duration(found.scripted_s)}"),
        ("every deadline used up", f"{_duration(found.longest_s)} at most"),
        ("calls, hints, ceilings", _cost(found)),
        ("run directory", f"{record:,.1f} MB, with transcripts {texts:,.1f} more"),
    ]
    table("would take", ("", ""), rows)
    if found.unknown:
        OUT.print(
            f"Not in it, because no ceiling bounds it: {', '.join(found.unknown)}. "
            f"--budget {found.unknown[0]}=AMOUNT sets one."
        )

    if powers:
        _print_powers(powers, protocol.load(draft.protocol))


def _powers(draft: PlanDraft) -> "tuple[GatePower, ...]":
    """Return the power of every gate, nothing where the plan gives no level."""
    if draft.plan.battery is None:
        return ()
    from owa_bench.scoring.power import gate_powers  # brings SciPy

    rules = protocol.load(draft.protocol)
    return gate_powers(rules, sample_sizes(draft.plan, rules.projects.suite))


def _print_powers(powers: "tuple[GatePower, ...]", rules: protocol.Protocol) -> None:
    numbers = rules.statistics
    decided = [one for one in powers if one.power is not None]
    table(
        f"power of the gates, for an agent at required + {numbers.power_margin:g}",
        ("level", "gate", "required", "true", "planned", "power"),
        [
            (
                f"AAI-{one.level}",
                one.gate,
                _short(one.required),
                _short(one.true),
                str(one.planned),
                f"{one.power:.2f}",
            )
            for one in decided
        ],
    )
    weak = [
        f"AAI-{one.level} {one.gate}"
        for one in decided
        if (one.power or 0.0) < numbers.power
    ]
    OUT.print(
        "planned: tasks; families for G; episodes a family-day for kappa; tasks a "
        "lane for maintenance. Gates that no count decides are left out."
    )
    if weak:
        OUT.print(f"Below {numbers.power:g}: {', '.join(weak)}.")


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _cost(found: RunEstimate) -> str:
    """Return the most it can cost in words."""
    if found.cost_micro_usd is None:
        return "unknown: a meter has no price on the card"
    return f"{found.cost_micro_usd / _MICRO:,.2f} USD at most, supervisor included"


def _duration(seconds: float) -> str:
    """Return seconds as a time that people read."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
