"""`owa-bench view`, `leaderboard` and `export`: runs as pages, and for other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from owa_bench.cli.console import ERR, OUT, as_json, note
from owa_bench.cli.judging import public_key_of, registry_of
from owa_bench.cli.options import AsJson, Panel, RunDir, option, split
from owa_bench.cli.options import port as port_of
from owa_bench.errors import FieldError
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan

if TYPE_CHECKING:
    from owa_bench.bridges.minari import ExportedDataset
    from owa_bench.reports.read.search import EpisodeFilter

LOOK = Panel("Print instead of writing a site")


def view(
    run_dir: Path = RunDir,
    out: Path | None = option(None, "Folder of the site; RUN/view if left out."),
    serve: bool = option(False, "Serve a run that is being played, until Ctrl-C."),
    port: int | None = option(None, "With --serve, on 127.0.0.1; 8322 if left out."),
    json: bool = AsJson,
    failures: bool = LOOK(False, "Print what went wrong: kinds, groups, tracebacks."),
    diff: tuple[str, str] | None = LOOK(
        None, "Print two attempts or arms side by side on one instance; RUN:ARM for another run."
    ),
    failed: bool = LOOK(False, "List the episodes that failed."),
    solved: bool = LOOK(False, "List the episodes that were solved."),
    drift: str | None = LOOK(None, "List those of these magnitudes or classes, such as 0.5,D2."),
    kind: str | None = LOOK(None, "List those of these kinds of failure, such as budget,raised."),
    arm: str | None = LOOK(None, "List those of one agent."),
    grep: str | None = LOOK(None, "List those whose transcripts hold these words."),
) -> None:
    """Write a site of a run: its list of attempts, and a page of each.

    Open it from the disk: it needs no server and loads nothing from any network. It shows actions,
    results, calls of models, costs, drift, subgoals and pictures as they were recorded; nothing is
    checked. In RUN/view the report's evidence leads into it.

      owa-bench view runs/first

      owa-bench view runs/first --serve

    With an option of the second panel no site is written: what is asked for is printed.

      owa-bench view runs/first --failures

      owa-bench view runs/first --failed --drift 0.5,1 --grep "401"

      owa-bench view runs/first --diff agentic fixed
    """
    read_plan(RunLayout(run_dir))
    query = _filter(failed=failed, solved=solved, drift=drift, kind=kind, arm=arm, grep=grep)
    if failures or diff is not None or query is not None:
        if serve or out is not None or port is not None:
            raise FieldError("--serve, --port or --out", True, "writes a site: leave it out here")
        _print_query(run_dir, query, failures=failures, diff=diff, json=json)
        return
    from owa_bench.reports.page import site, site_server

    if not serve:
        if port is not None:
            raise FieldError("--port", port, "must stand with --serve")
        made = site.write_site(run_dir, out or run_dir / site.FOLDER)
        if json:
            as_json(made._asdict())
            return
        OUT.print(
            f"{made.attempts} attempts, {made.size:,} bytes beside {made.run_size:,} "
            f"of the run\nView: {made.page.resolve()}"
        )
        return
    if out is not None or json:
        raise FieldError("--serve", True, "must stand without --out and --json")
    port = port_of(8322 if port is None else port)
    note(f"The site is at http://127.0.0.1:{port}/ until Ctrl-C.", ERR)
    site_server.serve_site(run_dir, port)


def _filter(
    *,
    failed: bool,
    solved: bool,
    drift: str | None,
    kind: str | None,
    arm: str | None,
    grep: str | None,
) -> "EpisodeFilter | None":
    """Return which episodes are asked for, None where no option asks."""
    if failed and solved:
        raise FieldError("--failed", True, "must stand without --solved")
    if not (failed or solved) and all(text is None for text in (drift, kind, arm, grep)):
        return None
    from owa_bench.reports.read.search import EpisodeFilter

    return EpisodeFilter(
        success=solved if failed or solved else None,
        arm=arm or "",
        drift=tuple(split(drift)),
        kinds=tuple(split(kind)),
        words=grep or "",
    )


def _print_query(
    run_dir: Path,
    query: "EpisodeFilter | None",
    *,
    failures: bool,
    diff: tuple[str, str] | None,
    json: bool,
) -> None:
    """Print what went wrong, two episodes side by side, or a list of episodes."""
    from owa_bench.cli import failing
    from owa_bench.reports.read.search import EpisodeFilter

    if diff is not None:
        if failures or query is not None:
            raise FieldError("--diff", " ".join(diff), "must stand without --failures and filters")
        failing.show_difference(run_dir, *diff, json=json)
    elif failures:
        failing.show_failures(run_dir, query or EpisodeFilter(), json=json)
    else:
        failing.show_episodes(run_dir, query or EpisodeFilter(), json=json)


def leaderboard(
    runs: list[Path] = typer.Argument(help="Run directories.", show_default=False),
    registry: Path = option(..., "Verifiers whose challenges and replays you count."),
    out: Path = option(Path("leaderboard"), "Folder of the page."),
    evaluator_key: str | None = option(
        None, "Hex of your key, for runs that you executed yourself (V5)."
    ),
    json: bool = AsJson,
) -> None:
    """Make a leaderboard from run directories, and say why others give no row.

    A row needs a shipped battery that places agents, a challenge and a replay by verifiers of the
    registry (V4) or your own key (V5), and agents in sandboxes. Each directory is verified and
    recomputed.

      owa-bench leaderboard runs/one runs/two --registry trusted.toml --out board
    """
    from owa_bench.reports.export import leaderboard as boards

    board = boards.leaderboard(
        runs, registry_of(registry), public_key_of("--evaluator-key", evaluator_key)
    )
    page = boards.write_board(board, out)
    if json:
        as_json(board._asdict())
        return
    for row in board.rows:
        OUT.print(f"{row.agent}  {row.level}  {row.rung}  AAI {boards.figure_text(row.composite)}")
    for refused in board.refused:
        note(f"{refused.run}: {refused.reason}")
    OUT.print(f"\nLeaderboard: {page.resolve()}")


def export(
    run_dir: Path = RunDir,
    to: Literal["parquet", "csv", "inspect", "minari"] = option(..., "The format."),
    out: Path = option(..., "Folder to write to."),
    json: bool = AsJson,
) -> None:
    r"""Write the counted episodes of a run for other tools; the run stays as it is.

    parquet, csv: tables of episodes, steps and costs. inspect: logs of Inspect AI, one an agent
    (pip install inspect-ai). minari: datasets of views of numbers, one an agent: CartPole3D, and
    tool suites where every action was a macro of the vector view (a trained policy's are); those
    must be revealed, for they are played again. Extras: "owa_bench\[export]" for parquet,
    "owa_bench\[minari]" for minari.

      owa-bench export runs/first --to parquet --out tables

      owa-bench export runs/first --to inspect --out logs

      owa-bench export runs/level0 --to minari --out datasets
    """
    if to == "inspect":
        from owa_bench.bridges.inspect_log import export_logs

        logs = export_logs(run_dir, out)
        _print(logs, [f"{x.arm}: {x.samples} samples in {x.path}" for x in logs], json)
    elif to == "minari":
        from owa_bench.bridges import minari

        sets = minari.export(run_dir, out)
        _print(sets, [_line(each) for each in sets], json)
    else:
        from owa_bench.reports.read.run_tables import open_run

        tables = open_run(run_dir).write_tables(out, to)
        _print(tables, [f"{x.name}: {x.rows} rows in {x.path}" for x in tables], json)


def _line(made: "ExportedDataset") -> str:
    """Return what came of an arm's dataset in one line."""
    if not made.dataset:
        return f"{made.arm}: no dataset, {made.refused}"
    line = f"{made.dataset}: {made.episodes} episodes, {made.steps} steps"
    left = f", {made.left_out} left out (no step, or ended by a clock)"
    return f"{line} in {made.folder}{left if made.left_out else ''}"


def _print(written: Sequence[object], lines: list[str], json: bool) -> None:
    """Print what was written, as JSON or a line each."""
    if json:
        as_json(written)
    for line in () if json else lines:
        OUT.print(line)
