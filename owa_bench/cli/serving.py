"""`owa-bench serve`: let an MCP client play recorded, scored episodes."""

from pathlib import Path
from typing import Annotated

import typer

from owa_bench.cli import flags
from owa_bench.cli.console import ERR, data_folder
from owa_bench.errors import FieldError
from owa_bench.records.plan import Budget
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.store import keys

_SHAPING = (
    *("suite", "family", "tier", "delta", "episodes", "interventions", "client"),
    *("act_seconds", "steps"),
)


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(serve)


def serve(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", help="Run directory to make, or to resume.")
    ],
    suite: Annotated[str, typer.Option("--suite", help="The suite.")] = "toolquest",
    family: Annotated[
        str | None, typer.Option("--family", help="One family; all if left out.")
    ] = None,
    tier: Annotated[int, typer.Option("--tier", help="The tier.")] = 1,
    delta: Annotated[float, typer.Option("--delta", help="Drift magnitude.")] = 0.0,
    episodes: Annotated[
        int, typer.Option("--episodes", help="Instances per family.")
    ] = 1,
    interventions: Annotated[
        int | None,
        typer.Option("--interventions", help="Supervisor budget; no limit if left out"),
    ] = None,
    client: Annotated[
        str, typer.Option("--client", help="Name of the arm: who is at the other end.")
    ] = "mcp-client",
    http: Annotated[
        bool,
        typer.Option("--http", help="Streamable HTTP in place of standard streams."),
    ] = False,
    host: Annotated[str, typer.Option("--host", help="With --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="With --http.")] = 8321,
    act_seconds: Annotated[
        float, typer.Option("--act-seconds", help="Most time between two calls.")
    ] = 600.0,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Most steps an episode.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out.")
    ] = False,
    key: Annotated[
        str, typer.Option("--key", help="Name of the signing key.")
    ] = keys.DEFAULT,
) -> None:
    """Serve an instance's tools over MCP; each call is one recorded step.

    The client is whatever speaks MCP: give it this command as a stdio server, or the
    address that --http prints. The run directory is like any other: report, verify,
    recompute and replay read it.

      owa-bench serve --suite toolquest --tier 1 --client my-agent --out runs/mine
    """
    from owa_bench.bridges import mcp

    if resume:
        why = "shapes a plan, and --resume goes on with the plan that is there."
        flags.refuse_together(flags.given(context), _SHAPING, why)
    if not host:
        raise FieldError("--host", host, "must name an address")
    budget = "unlimited" if interventions is None else str(interventions)
    request = Request(
        agents=(f"client:{client}",),
        draws=flags.drawn(suite, family, str(tier), str(delta), episodes, 1, budget),
        name=out.name,
        budget=Budget(steps=steps, act_s=act_seconds),
    )
    summary = mcp.serve(
        None if resume else request,
        out,
        RunOptions(home=data_folder(), key=key, folder=Path.cwd()),
        mcp.Address(host, flags.port(port)) if http else None,
        announce=lambda url: ERR.print(f"serving on {url}"),
    )
    ERR.print(
        f"{summary.complete} of {summary.entries} episodes complete in {summary.root}"
    )
