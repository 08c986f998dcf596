"""`owa-bench run --dry-run`: what a request would take, printed."""

from owa_bench.cli.console import OUT, as_json, table
from owa_bench.run.plan.request import Request, RunEstimate, RunOptions, estimate

_MICRO = 10**6


def print_estimate(request: Request, run_options: RunOptions, *, json: bool) -> None:
    """Print episodes, time and the most a request can cost; plays nothing."""
    found = estimate(request, run_options)
    if json:
        as_json(found)
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
