"""`owa-bench run --dry-run`: what a run would take, printed."""

from owa_bench.cli.console import OUT, as_json, table
from owa_bench.run.plan import estimate
from owa_bench.run.plan.estimate import RunEstimate
from owa_bench.run.plan.request import Request, RunOptions

_MICRO = 10**6


def show(request: Request, options: RunOptions, *, json: bool) -> None:
    """Print episodes, time and the most a request can cost; plays nothing."""
    found = estimate.estimate(request, options)
    if json:
        as_json(found)
        return
    table("would be played", ("agent", "episodes"), [*found.by_arm.items()])
    rows = [
        ("episodes", found.episodes),
        ("agents that answer at once", f"about {_span(found.scripted_s)}"),
        ("every deadline used up", f"{_span(found.longest_s)} at most"),
        ("calls, hints, ceilings", _cost(found)),
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


def _span(seconds: float) -> str:
    """Return seconds as a time that people read."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
