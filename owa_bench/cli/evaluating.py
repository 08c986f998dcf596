"""`owa-bench evaluate`: a submitted agent, played by an evaluator."""

import secrets
from pathlib import Path
from typing import cast

import typer

from owa_bench.cli.options import option
from owa_bench.cli.playing import play_shown
from owa_bench.errors import FieldError
from owa_bench.records.layout import RunLayout
from owa_bench.run.agents.bundle import unpack
from owa_bench.run.agents.hosting import Isolation
from owa_bench.run.agents.images import is_image
from owa_bench.run.plan import request as requests
from owa_bench.run.play import batch
from owa_bench.run.store import keys


def evaluate(
    agent: str = typer.Argument(
        ..., help="Tar with agent.toml and the agent, or an image's sha256:HEX."
    ),
    out: Path = option(..., "Run directory to make, or to resume."),
    battery: str = option("toolquest", "Name of a battery that ships."),
    workers: int = option(1, "Worker processes."),
    key: str = option(keys.DEFAULT, "Name of the evaluator's signing key."),
    sandbox: str = option("", "namespaces or docker; an image runs in docker."),
    json: bool = option(False, "Print JSON."),
) -> None:
    """Play a submitted agent under your seeds, your key and your sandbox (V5).

    The digest of bundle or image stands in the plan's nonce. Where a reader's registry
    names your key as an evaluator, the run is V5 for them. The same command goes on
    with a run that was stopped.

      owa-bench evaluate agent.tar --battery toolquest --out runs/theirs --key evaluator

      docker load -i theirs.tar && owa-bench evaluate sha256:HEX --out runs/theirs

      owa-bench report runs/theirs --registry trusted.toml
    """
    sandbox = sandbox or ("docker" if is_image(agent) else "namespaces")
    if sandbox not in ("namespaces", "docker"):
        rule = "must be namespaces or docker: a submitted agent runs in a sandbox"
        raise FieldError("--sandbox", sandbox, rule)
    home = keys.data_folder()
    folder, submitted = None, f"image {agent}"
    if not is_image(agent):
        folder, agent, digest = unpack(Path(agent), home)
        submitted = f"bundle {digest}"
    run_options = requests.RunOptions(
        home=home, folder=folder, key=key, workers=workers
    )
    again = f"The same command, with --out {out},"
    if RunLayout(out).plan.exists():
        play_shown(out, lambda o: batch.resume(out, o), run_options, again, json=json)
        return
    request = requests.Request(
        agents=(agent,),
        battery=battery,
        name=out.name,
        verifier_nonce=f"{submitted} {secrets.token_hex(16)}",
        sandbox=cast("Isolation", sandbox),
    )

    def play(told: requests.RunOptions) -> batch.RunSummary:
        return batch.play(request, out, told)

    play_shown(out, play, run_options, again, json=json)
