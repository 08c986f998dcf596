"""Root API: an agent in Python played, reported, checked and compared.

    >>> import owa_bench
    >>> run = owa_bench.run("noop", suite="toolquest", tier=1, out="runs/mine")  # doctest: +SKIP
    >>> owa_bench.report(run).verdicts[0].level_text  # doctest: +SKIP

Every function does what the command of its name does (docs/cli.md), with the same defaults.
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from owa_bench.cli.run_output import Outcomes, run_progress
from owa_bench.errors import UsageError, one_of
from owa_bench.interfaces import AgentCard
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

if TYPE_CHECKING:
    from owa_bench.records.score import Judgement
    from owa_bench.reports.check.integrity_checks import CheckResult
    from owa_bench.reports.read.comparison import ArmComparison

_PREFIX = "owa_bench/"
_SHAPE = {"agents", "battery", "draws", "campaign", "trials", "name"}
_REQUEST = set(Request.__struct_fields__) - _SHAPE
_OPTIONS = {field.name for field in dataclasses.fields(RunOptions)} - {"home", "folder"}


def make(env_id: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return a Gymnasium env, as `gymnasium.make` does.

    Args:
        env_id: Such as "ToolQuest-v3"; "owa_bench/" before it may be left out.
        options: For the env, such as tier=2, delta=0.5, view="vector".
    """
    return gymnasium.make(_PREFIX + env_id.removeprefix(_PREFIX), **options)


def run(
    *agents: Any,
    out: str | Path,
    suite: str | Iterable[str] = (),
    battery: str | None = None,
    family: str | Iterable[str] = (),
    tier: int | Iterable[int] = (),
    delta: float | Iterable[float] = (),
    interventions: draws.Budgeted | Iterable[draws.Budgeted] = (),
    episodes: int = 1,
    **terms: Any,
) -> Path:
    """Play agents on suites or on a battery, recorded as evidence.

    Args:
        agents: One arm each: a spec as for `owa-bench run --agent`, or a class, a function `act` or
            an `AgentCard` that stands at the top of a file.
        out: The run directory to make.
        suite: Suites; none where a battery is named.
        battery: Its name or file.
        family: Families; none: all public ones.
        tier: Tiers; none: all.
        delta: Drift magnitudes; none: the published ones.
        interventions: Budgets of help; none: those that the axes read.
        episodes: Instances per family and tier.
        terms: Fields of `Request` (calendar, protocol, budget, sandbox, ..) and of `RunOptions`
            (workers, in_process, gateway, failure_share, ..).
    Returns: The run directory.
    Raises:
        UsageError: What is asked for cannot be played; the message says what can.
        RunDirectoryError: `out` holds something else.
    """
    if not agents:
        raise UsageError("Name at least one agent: owa_bench.run(AGENT, suite=.., out=..).")
    names = _several(suite)
    if bool(names) == (battery is not None):
        raise UsageError(f"Give `suite` or `battery`, one of them; got {names} and {battery}.")
    _check_terms(terms)
    drawn = tuple(
        draws.Draw(
            name=name,
            families=_several(family),
            tiers=_several(tier),
            deltas=_several(delta) or draws.usual_magnitudes(name),
            interventions=_several(interventions) or draws.usual_budgets(name),
            episodes=episodes,
        )
        for name in names
    )
    shaped = {name: terms.pop(name) for name in _REQUEST & set(terms)}
    request = Request(
        agents=tuple(spec_of(agent) for agent in agents),
        battery=battery,
        draws=drawn,
        name=Path(out).name,
        **shaped,
    )
    with run_progress(Outcomes()) as progress:
        batch.play(request, Path(out), _options(progress=progress, **terms))
    return Path(out)


def resume(out: str | Path, **terms: Any) -> Path:
    """Go on with a run that was stopped; nothing that is complete is played again.

    Args:
        out: The run directory.
        terms: Fields of `RunOptions`.
    Returns: The run directory.
    """
    _check_terms(terms)
    with run_progress(Outcomes()) as progress:
        batch.resume(Path(out), _options(progress=progress, **terms))
    return Path(out)


def place(
    agent: Any,
    *,
    out: str | Path,
    level: int = 1,
    usd: float | None = None,
    hours: float | None = None,
    episodes: int | None = None,
    verifier: str | None = None,
    **terms: Any,
) -> "Judgement":
    """Play an agent until its level is decided; go on with a placement that is there.

    Args:
        agent: As for `run`.
        out: The run directory to make, or to go on with.
        level: Stop when this level is decided.
        usd: Stop before a batch that would take the agent's own cost above this.
        hours: Stop before a batch that would take longer.
        episodes: Stop before a batch beyond so many.
        verifier: Address of a verifier's service, asked for the challenge and for dates.
        terms: Fields of `Request` (sandbox, challenger, ..) and of `RunOptions`.
    Returns: The judgement; its verdict says level, below or undecided.
    """
    from owa_bench.placement import place as placing  # brings the judging half
    from owa_bench.placement.limits import BATTERY, PlacementLimits
    from owa_bench.runs.plan.dates import VerifierService  # brings an HTTP client

    _check_terms(terms)
    shaped = {name: terms.pop(name) for name in _REQUEST & set(terms)}
    request = Request(agents=(spec_of(agent),), battery=BATTERY, name=Path(out).name, **shaped)
    limits = PlacementLimits(level, usd, hours, episodes)
    with run_progress(Outcomes()) as progress:
        options = _options(progress=progress, **terms)
        desk = None if verifier is None else VerifierService(verifier)
        return placing.place(
            request, Path(out), options, limits, lambda news: None, resume=True, verifier=desk
        )


def report(run_dir: str | Path, *, key: str = keys.DEFAULT) -> "Judgement":
    """Judge a run; write report.json, report.dsse.json (signed) and report.html.

    Args:
        run_dir: The run directory.
        key: Name of the key that signed the plan.
    Returns: The judgement: a verdict for each agent.
    """
    from owa_bench.reports import statement  # brings SciPy and the figures

    return statement.write(Path(run_dir), keys.load(keys.data_folder(), key))


def verify(run_dir: str | Path) -> "tuple[CheckResult, ...]":
    """Return every check of a run's evidence and report: nothing added, removed or edited."""
    from owa_bench.reports import verify as checks

    return checks.verify(Path(run_dir))


def recompute(run_dir: str | Path) -> "tuple[CheckResult, ...]":
    """Return whether every signed figure follows from the raw events."""
    from owa_bench.reports import verify as checks

    return checks.recompute(Path(run_dir))


def compare(first: str | Path, second: str | Path) -> "ArmComparison":
    """Return two agents compared on the instances that both played.

    Args:
        first: "RUN:ARM", or the run directory alone where it has one arm.
        second: The same, of the same run or of another.
    Returns: Paired differences with intervals.
    """
    from owa_bench.reports.read import comparison

    return comparison.compare(str(first), str(second))


def spec_of(agent: Any) -> str:
    """Return the spec by which an agent's own process finds it.

    >>> spec_of("agentic")
    'agentic'

    Raises: UsageError: It is nothing that another process can import.
    """
    if isinstance(agent, str):
        return agent
    made = agent.make if isinstance(agent, AgentCard) else agent
    module, name = getattr(made, "__module__", ""), getattr(made, "__qualname__", "")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not (inspect.isclass(made) or callable(made)) or not file or "<" in name or "." in name:
        raise UsageError(
            "An agent in Python is a class, a function or an AgentCard at the top of a file, "
            f"since it runs in a process of its own; got {agent!r}."
        )
    if isinstance(agent, AgentCard) and module.startswith("owa_bench."):
        return agent.name
    return str(Path(file)) if module == "__main__" else f"{module}:{name}"


def _several(value: Any) -> tuple[Any, ...]:
    """Return one value or several as a tuple."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _check_terms(terms: dict[str, Any]) -> None:
    known = sorted(_REQUEST | _OPTIONS)
    for name in terms:
        if name not in known:
            raise UsageError(f"`{name}` {one_of(name, known)}.")


def _options(**terms: Any) -> RunOptions:
    return RunOptions(home=keys.data_folder(), folder=Path.cwd(), **terms)
