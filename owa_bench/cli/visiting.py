"""`owa-bench visit`: a ChangeSurf site in a person's own browser."""

from typing import Annotated

import typer

from owa_bench.cli import flags
from owa_bench.cli.console import ERR


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(visit)


def visit(
    family: Annotated[str, typer.Option("--family", help="Site and goal.")],
    seed: Annotated[int, typer.Option("--seed", help="Which instance.")] = 1,
    tier: Annotated[int, typer.Option("--tier", help="The tier.")] = 1,
    delta: Annotated[float, typer.Option("--delta", help="Drift magnitude.")] = 0.0,
    port: Annotated[int, typer.Option("--port", help="On 127.0.0.1.")] = 8322,
) -> None:
    """Serve a ChangeSurf site over loopback, for a person or another tool's browser.

    Nothing is recorded or scored. Every host of the sandbox goes by a name under
    `localhost`, which browsers resolve to this machine.

      owa-bench visit --family stay/book --delta 0.5
    """
    import msgspec

    from owa_bench.envs.changesurf.browser.loopback import host_site
    from owa_bench.envs.changesurf.suite import SUITE
    from owa_bench.records.instance import Instance
    from owa_bench.run import assembly

    flags.port(port)
    card = SUITE.card
    plain = Instance(
        suite=card.name, version=card.version, family=family, tier=tier, seed=seed
    )
    step = assembly.drift_step(card.name, plain, delta)
    instance = msgspec.structs.replace(plain, drift_step=step)
    site = host_site(assembly.source(card.name)(instance), port)
    told = f"{site.instructions}\n\n{site.address}"
    ERR.print(told)
    site.server.join()
