"""`owa-bench report`, `verify`, `recompute` and `power`: the judging half."""

import contextlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from rich.text import Text

from owa_bench.canonical import is_small_order, public_bytes
from owa_bench.cli.console import OUT, as_json, check_line, figure_text, note, table
from owa_bench.cli.options import AsJson, KeyName, RunDir, option
from owa_bench.errors import CheckFailure, FieldError, UsageError
from owa_bench.records import protocol as protocols
from owa_bench.records import score as score
from owa_bench.records.layout import RunLayout
from owa_bench.records.registry import Registry, read_registry
from owa_bench.records.toml import in_file
from owa_bench.records.validation import default_signs, load_signs
from owa_bench.runs.store import keys

if TYPE_CHECKING:
    from owa_bench.reports.check.integrity_checks import CheckResult
    from owa_bench.reports.read.delegation import Delegation
    from owa_bench.reports.read.outcomes import ArmOutcomes
    from owa_bench.scoring.validation.power import Need

_LONGEST_PATH = 4096  # characters
_KEY_FILE = 4096  # bytes that are read of a key's file
_SPREADS = (0.0, 0.1, 0.25, 0.5)  # of one task's part in a change
_UNITS = (1e-6, 1e6)  # of kappa a day: beyond, a slope is nothing or everything


def report(
    run_dir: Path = RunDir,
    require: str | None = option(None, "Exit 1 unless every agent has this level."),
    norms: Path | None = option(None, "Norms of people, from `owa-bench norms`."),
    registry: Path | None = option(
        None, "Verifiers whose witnesses and replays count (V3, V4), a TOML file."
    ),
    unsigned: bool = option(False, "A draft (V0) of a run not yet whole."),
    key: str = KeyName,
    full: bool = option(False, "Print axes, indices and gates too."),
    json: bool = AsJson,
) -> None:
    """Judge a run; write report.json, report.dsse.json (signed) and report.html.

    Prints of each agent what it does alone and with help, how much of it may be delegated, its
    level and its cost; --full the rest.

    Reads the run directory and nothing else; a second report replaces the first. A level below a
    gate is no error unless --require asks for it. Norms and the registry are copied into the run
    directory, and read from there.

      owa-bench report runs/first

      owa-bench report runs/first --full

      owa-bench report runs/first --require AAI-1

      owa-bench report runs/half --unsigned
    """
    from owa_bench.reports import statement  # brings SciPy and the figures
    from owa_bench.runs.plan.plan import read_plan  # brings the acting half

    required = _level(require) if require else None
    read_plan(RunLayout(run_dir))  # what is no run is said before a missing key
    signer = None if unsigned else keys.load(keys.data_folder(), key)
    if norms is not None:
        statement.add_norms(run_dir, norms)
    if registry is not None:
        statement.add_registry(run_dir, registry)
    made = statement.write_report(run_dir, signer)
    judgement = made.judgement
    if json:
        as_json(judgement)
    else:
        known = {one.arm: one for one in made.outcomes}
        for verdict in judgement.verdicts:
            _print(verdict, known.get(verdict.arm), full=full)
        _print_warnings(judgement.verdicts)
        page = RunLayout(run_dir).page.resolve()
        OUT.print(f"\nReport: {page}")
    if required is not None:
        short = [v.arm for v in judgement.verdicts if v.level is None or v.level < required]
        if short:
            raise CheckFailure(
                f"AAI-{required} was required and not reached by: {', '.join(short)}."
            )


def verify(
    run_dir: Path = RunDir,
    public_key: str | None = option(
        None, "The key that must have signed: hex or NAME.pub, from the signer.", metavar="KEY"
    ),
    verifier_key: str | None = option(
        None, "The key of who ran it for you, hex or NAME.pub.", metavar="KEY"
    ),
    registry: Path | None = option(
        None, "Verifiers whose witnesses and replays you count, a TOML file."
    ),
    json: bool = AsJson,
) -> None:
    """Check that nothing was added, removed, edited or reordered.

    One line per check: ok, FAIL, or -- where there was nothing to check or nothing is lifted. The
    last says what the assurance level leaves open. Needs no agent and no key of yours. Without
    --public-key the run's own key is taken: that shows that nothing was changed since it was
    signed, not by whom. Without --registry nobody's witness or replay counts: V2 at most.

      owa-bench verify runs/first

      owa-bench verify runs/first --public-key signer.pub --registry trusted.toml
    """
    from owa_bench.reports import verify as verifying

    checks = verifying.verify(
        run_dir,
        public_key_of("--public-key", public_key),
        public_key_of("--verifier-key", verifier_key),
        None if registry is None else registry_of(registry),
    )
    _print_checks(checks, json=json)


def recompute(run_dir: Path = RunDir, json: bool = AsJson) -> None:
    """Judge the raw events again; every figure must equal the signed one.

    Tables and page are made again from the trace and the protocol, and compared.

      owa-bench recompute runs/first

      owa-bench recompute runs/first --json
    """
    from owa_bench.reports import verify as verifying

    _print_checks(verifying.recompute(run_dir), json=json)


def compare(
    agents: list[str] = typer.Argument(
        ..., help="RUN or RUN:ARM; two, or with --html any number.", metavar="RUN[:ARM]..."
    ),
    html: Path | None = option(None, "Write a page over all agents of these runs, this file."),
    json: bool = AsJson,
) -> None:
    """Compare two agents on the instances that both played, or any number on a page.

    Says first who succeeds more often, or how many tasks would tell. Then paired differences of
    Q, success and help and the ratio of their own costs, with intervals: over all pairs, by
    family, tier and drift class. Runs on different terms are refused; `run --worlds-of
    RUN` plays the worlds of another run.

      owa-bench compare runs/first:agentic runs/first:fixed

      owa-bench compare runs/monday:agentic runs/tuesday:agentic --json

    With --html any number of agents stand side by side on a page: success, cost, drift, frontiers.
    RUN is all its agents. Those that were played on other terms stand in a group of their own.

      owa-bench compare runs/first runs/second runs/third:agentic --html agents.html
    """
    if html is not None:
        _write_page(agents, html, json=json)
        return
    if len(agents) != 2:
        raise UsageError(
            f"Name two agents to compare pair by pair, got {len(agents)}; --html PAGE.html takes "
            "any number."
        )
    from owa_bench.reports.read import comparison  # brings SciPy

    found = comparison.compare(*agents)
    if json:
        as_json(found)
        return
    OUT.print(comparison.verdict_words(found))
    made = comparison.comparison_table(found)
    for measure in dict.fromkeys(row[0] for row in made.rows):
        rows = [_cells(row[1:]) for row in made.rows if row[0] == measure]
        columns = made.columns[1:]
        if measure == comparison.OWN_COST:
            rows = [_cost_cells(row[1:]) for row in made.rows if row[0] == measure]
            columns = tuple("ratio" if name == "difference" else name for name in columns)
        table(f"{measure}: {made.title}", columns, rows)
    note(made.note, OUT)


def _write_page(agents: Sequence[str], page: Path, *, json: bool) -> None:
    """Write the page of any number of agents, and say which of them compare."""
    from owa_bench.reports.export.lineup_page import group_words, write_lineup  # brings figures

    if page.is_dir() or not page.parent.is_dir():
        raise FieldError("--html", str(page), "must be a file in a folder that exists")
    found = write_lineup(agents, page)
    if json:
        as_json(found)
        return
    for place, group in enumerate(found.groups):
        names = ", ".join(one.label for _, one in found.of(place))
        OUT.print(f"{group.name}: {names}. {group_words(group, found)}")
        if group.differs:
            note(f"{group.name} does not compare with A: {'; '.join(group.differs)}", OUT)
    OUT.print(f"Page: {page.resolve()}")


def _print_checks(checks: "Sequence[CheckResult]", *, json: bool) -> None:
    """Print one line per check; CheckFailure if one does not hold."""
    if json:
        as_json(checks)
    else:
        for check in checks:
            check_line(check.name, ok=check.ok, detail=check.detail, skipped=check.skipped)
    failed = [check.name for check in checks if not check.ok]
    if failed:
        raise CheckFailure(f"These checks failed: {', '.join(failed)}.")


def _level(text: str) -> int:
    """Return the number in AAI-N."""
    digits = text.upper().removeprefix("AAI-")
    if digits not in {"0", "1", "2", "3", "4", "5"}:
        raise FieldError("--require", text, "must be one of AAI-0 .. AAI-5")
    return int(digits)


def registry_of(path: Path) -> Registry:
    """Return the registry that a file holds."""
    try:
        return read_registry(path.read_bytes(), path.name)
    except OSError as error:
        raise FieldError("--registry", str(path), f"must be a file ({error})") from error


def public_key_of(name: str, text: str | None) -> bytes | None:
    """Return the 32 bytes of a public key, given in hex or as a file of it."""
    if text is None:
        return None
    raw = _key_bytes(name, text)
    if len(raw) != 32:
        rule = "must be 64 hex digits, as keygen prints, or the file NAME.pub that it writes"
        raise FieldError(name, text, rule)
    if is_small_order(raw):
        raise FieldError(name, text, "must not be of small order: anybody can sign under it")
    return raw


def _key_bytes(name: str, text: str) -> bytes:
    """Return what is given as a key: hex, or a file of hex or PEM; b"" for neither."""
    with contextlib.suppress(ValueError):
        return bytes.fromhex(text)
    path = Path(text)
    if not (len(text) < _LONGEST_PATH and path.is_file()):
        return b""
    data = path.read_bytes()[:_KEY_FILE]
    if b"PRIVATE KEY" in data:
        raise FieldError(name, text, "must be a public key, and this file holds a private one")
    with contextlib.suppress(ValueError, UnicodeDecodeError):
        return bytes.fromhex(data.decode())
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        return b""
    return public_bytes(key) if isinstance(key, Ed25519PublicKey) else b""


def _print(verdict: score.AgentVerdict, one: "ArmOutcomes | None", *, full: bool) -> None:
    """Print the verdict on one agent: the answer in a few lines, then the rest where asked for."""
    OUT.print(Text.assemble("\n", (verdict.arm, "bold"), f": {verdict.level_text}"))
    if one is not None and one.answer is not None:
        for line in _answer_lines(verdict, one, one.answer):
            OUT.print(f"  {line}")
        if not full:
            return
    from owa_bench.reports.read.next_plays import next_plays

    if not verdict.axes:
        _print_gates(verdict.gates)
        for made in verdict.tables:
            table(made.title, made.columns, map(_cells, made.rows))
        return
    table(
        "axes",
        ("axis", "value", "tasks like these", "raw", "used", "why missing"),
        [_axis_row(axis) for axis in verdict.axes],
    )
    table(
        "indices",
        ("index", "value", "tasks like these", "missing"),
        [_index_row(index) for index in verdict.indices],
    )
    if any(kappa.family for kappa in verdict.kappas):
        table(
            "self-improvement (kappa)",
            ("family", "slope", "checkpoints", "gain", "why missing"),
            [_kappa_row(kappa) for kappa in verdict.kappas],
        )
    _print_gates(verdict.gates)
    if lacking := next_plays(verdict):
        table("evidence that is missing", ("on", "given by (options of run)"), lacking)
    for made in verdict.tables:
        if made.title.startswith("projects of "):
            table(made.title, made.columns, map(_cells, made.rows))


def _answer_lines(
    verdict: score.AgentVerdict, one: "ArmOutcomes", answer: "Delegation"
) -> Iterator[str]:
    """Yield how much can be delegated to an agent, what it costs, and what to play next."""
    from owa_bench.reports.page.templates import cost_lines
    from owa_bench.reports.read.delegation import frontier_words, next_command

    if answer.sentence:
        yield answer.sentence
    if words := frontier_words(verdict.frontier):
        yield words
    yield ". ".join(f"{name}: {words}" for name, words in cost_lines(verdict, one)) + "."
    if verdict.level is None:
        yield f"To decide a level: {next_command(verdict)}"


def _print_warnings(verdicts: Sequence[score.AgentVerdict]) -> None:
    """Print what a reader of the verdicts must know, each line once with whom it is about."""
    about: dict[str, list[str]] = {}
    for verdict in verdicts:
        for warning in verdict.warnings:
            about.setdefault(warning, []).append(verdict.arm)
    OUT.print()
    for warning, arms in about.items():
        whose = "" if len(arms) == len(verdicts) else f"{', '.join(arms)}: "
        note(f"{whose}{warning}", OUT)


def _print_gates(gates: Sequence[score.GateResult]) -> None:
    """Print the gates that keep an agent from the next level."""
    shut = [gate for gate in gates if gate.status != "PASS"]
    level = min((gate.level for gate in shut), default=0)
    if shut:
        table(
            f"gates that AAI-{level} still lacks",
            ("gate", "required", "measured", "status", "why"),
            [
                (gate.gate, gate.required, gate.measured, gate.status, gate.reason)
                for gate in shut
                if gate.level == level
            ],
        )


def _kappa_row(kappa: score.KappaScore) -> tuple[str, ...]:
    name = kappa.family or "the agent"
    gained = kappa.gain.words if kappa.gain else ""
    return name, _number(kappa.slope), str(kappa.checkpoints), gained, kappa.reason or ""


def _axis_row(axis: score.AxisScore) -> tuple[str, ...]:
    return (
        axis.name,
        _number(axis.value),
        _span(axis.tasks_like_these),
        _number(axis.raw),
        f"{axis.used} of {axis.cells}",
        axis.reason or "",
    )


def _index_row(index: score.IndexScore) -> tuple[str, ...]:
    shown = "not computable" if index.value is None else _number(index.value)
    return index.name, shown, _span(index.tasks_like_these), ", ".join(index.missing)


def _cells(row: Sequence[str | float | int | None]) -> tuple[str, ...]:
    return tuple(
        _number(cell) if cell is None or isinstance(cell, float) else str(cell) for cell in row
    )


def _cost_cells(row: Sequence[str | float | int | None]) -> tuple[str, ...]:
    """Return the cells of a row on costs: USD an episode of both agents, then their ratio."""
    first = 3  # behind the words, the pairs and the tasks
    amounts = ["" if usd is None else f"{usd:.4f}" for usd in row[first : first + 2]]
    return (*_cells(row[:first]), *amounts, *_cells(row[first + 2 :]))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _span(interval: score.Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"[{interval.low:.3f}, {interval.high:.3f}]"


# --- power ----------------------------------------------------------------------------


def power(
    protocol: str = typer.Argument("default", help="A protocol file, or `default`."),
    units: float = option(1.0, "Kappa units an agent spends a day."),
    tasks: int = option(200, "Tasks at which whole levels are shown."),
    json: bool = AsJson,
) -> None:
    """Print how many instances each gate needs for an able agent, and each level's power.

    owa-bench power

    owa-bench power mine.toml --tasks 400
    """
    # brings SciPy
    from owa_bench.scoring.validation.power import (
        equal_sizes,
        equivalence_tasks,
        gate_powers,
        level_powers,
        needs,
    )

    if not _UNITS[0] <= units <= _UNITS[1]:
        raise FieldError("--units", units, f"must lie in {_UNITS[0]:g} .. {_UNITS[1]:g}")
    if tasks < 1:
        raise FieldError("--tasks", tasks, "must be at least 1")
    pages = _read_protocol(protocol)
    with in_file(protocol):
        numbers = protocols.load(pages)
    found = needs(numbers, units_a_day=units)
    powers = gate_powers(numbers, equal_sizes(numbers, tasks), units_a_day=units)
    levels = level_powers(numbers, powers)
    if json:
        gates = [need._asdict() for need in found]
        as_json({"gates": gates, "tasks": tasks, "levels": [one._asdict() for one in levels]})
        return
    rules = numbers.statistics
    table(
        f"instances for {rules.power:.0%} power at required + {rules.power_margin:g}",
        ("level", "gate", "required", "true", "n", "counts"),
        [_need_row(need) for need in found],
    )
    OUT.print(
        "\nA level is an intersection of gates, and power falls with every gate. The level's, its "
        f"gates taken as independent, {tasks} tasks each (as many families, projects, episodes a "
        "family-day and tasks a lane):"
    )
    for one in levels:
        OUT.print(f"  {one.words()}")
    declared = load_signs(default_signs()).numbers
    margin, alpha = declared.margin, declared.alpha
    counts = ", ".join(
        f"{equivalence_tasks(sd, margin, alpha, rules.power)} at {sd:g}" for sd in _SPREADS
    )
    OUT.print(
        f"\nTasks that a declared zero of `validate` needs, within +/- {margin:g}, by "
        f"the spread of one task's part: {counts}"
    )


def _read_protocol(name: str) -> bytes:
    """Return the bytes of a protocol file, or of the package's own."""
    if name == "default":
        return (files("owa_bench.protocols") / "default.toml").read_bytes()
    path = Path(name)
    if not path.is_file():
        raise FieldError("PROTOCOL", name, "must be a file, or `default`")
    return path.read_bytes()


def _need_row(need: "Need") -> tuple[str, ...]:
    return (
        f"AAI-{need.level}",
        need.gate,
        figure_text(need.required),
        figure_text(need.true),
        "" if need.instances is None else str(need.instances),
        need.note,
    )
