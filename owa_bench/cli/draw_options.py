"""Options of the commands that say what is played, read as draws and trials.

Faults name the flag, the value and the rule.
"""

from owa_bench import discovery
from owa_bench.cli.options import number, split
from owa_bench.errors import FieldError, PlanError, UsageError, one_of
from owa_bench.runs.assembly import tool_names
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Budgeted, Draw
from owa_bench.runs.plan.trials import Trials

_DRAW_FLAGS = {
    "suite.name": "--suite",
    "suite.families": "--family",
    "suite.tiers": "--tier",
    "suite.deltas": "--delta",
}


def draws_of(
    *,
    suite: str | None,
    family: str | None = None,
    tier: str | None = None,
    delta: str | None = None,
    interventions: str | None = None,
    crews: str = draws.OPEN,
    tools_off: str | None = None,
    episodes: int = 1,
    repeats: int = 1,
) -> tuple[Draw, ...]:
    """Return the draws that options stand for, checked.

    Args:
        suite: suites; like all texts here, parts with commas between.
        family: families, none: all.
        tier: tiers, none: all.
        delta: drift magnitudes, none: the published ones.
        interventions: supervisor budgets, none: those that the axes read.
        crews: ceilings on an agent's roles.
        tools_off: tools taken from those on offer.
        episodes: instances per family and tier.
        repeats: noise seeds per instance.
    Returns: One draw a suite.
    Raises: FieldError: an option breaks a rule; names flag, value and rule.
    """
    deltas = tuple(number("--delta", part, float) for part in split(delta))
    made = tuple(
        Draw(
            name=name,
            families=tuple(split(family)),
            tiers=tuple(number("--tier", part, int) for part in split(tier)),
            deltas=deltas or draws.usual_magnitudes(name),
            interventions=tuple(_budget(part) for part in split(interventions))
            or draws.usual_budgets(name),
            crews=tuple(split(crews)),
            tools_off=tuple(split(tools_off)),
            episodes=episodes,
            repeats=repeats,
        )
        for name in split(suite)
    )
    for draw in made:
        try:
            draws.check(draw, PlanError)
        except PlanError as error:
            plain = f"--{error.field.removeprefix('suite.')}"
            flag = _DRAW_FLAGS.get(error.field, plain)
            raise FieldError(flag, error.value, error.rule) from error
        _check_tools_off(draw)
    return made


def trials_of(
    count: int | None, before: str, draws: tuple[Draw, ...], *, given: bool, hints: int
) -> Trials | None:
    """Return the trials that options stand for, None without any.

    Args:
        count: per family and tier.
        before: fewest and most plain episodes, with a comma between.
        draws: one.
        given: whether trials of Given Detection are added.
        hints: what is told in those.
    Raises:
        UsageError: there is not one draw.
        FieldError: `before` is no two counts.
    """
    if count is None:
        return None
    if len(draws) != 1:
        raise UsageError("Trials (--trials) need exactly one --suite.")
    ends = [number("--before", text, int) for text in split(before)]
    if len(ends) != 2:
        raise FieldError("--before", before, "must be two counts, such as 5,10")
    (draw,), (low, high) = draws, ends
    return Trials(draw=draw, count=count, before=(low, high), given=given, hints=hints)


def _check_tools_off(draw: Draw) -> None:
    """Refuse the name of a tool that the suite never offers: nothing would be off."""
    card = discovery.get("suites", draw.name).card
    if not draw.tools_off or card.native:
        return
    known = tool_names(draw.name, draw.families or card.families)
    for name in draw.tools_off:
        if known and name not in known:
            raise FieldError("--tools-off", name, one_of(name, sorted(known)))


def _budget(text: str) -> Budgeted:
    """Return a supervisor budget of `--interventions`."""
    if text == "protocol":
        return "protocol"
    if text == "unlimited":
        return "unlimited"
    try:
        return int(text)
    except ValueError as error:
        rule = "must be whole numbers, `protocol` or `unlimited`"
        raise FieldError("--interventions", text, rule) from error
