"""`owa-bench serve` and `visit`: episodes for MCP clients, sites for people."""

import os
from pathlib import Path

import typer

from owa_bench.cli import draw_options, options
from owa_bench.cli.console import ERR, as_json
from owa_bench.cli.options import AsJson, KeyName, option
from owa_bench.errors import FieldError
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.store import keys

_SHAPING = (
    *("suite", "family", "tier", "delta", "episodes", "interventions", "client"),
    *("act_seconds", "steps"),
)


def serve(
    context: typer.Context,
    out: Path = option(..., "Run directory to make, or to resume."),
    suite: str = option("toolquest", "The suite."),
    family: str | None = option(None, "One family; all if left out."),
    tier: int = option(1, "The tier."),
    delta: float = option(0.0, "Drift magnitude."),
    episodes: int = option(1, "Instances per family."),
    interventions: str = option("0", "Supervisor budgets, as in `run`."),
    client: str = option("mcp-client", "Name of the arm: who is at the other end."),
    http: bool = option(False, "Streamable HTTP in place of standard streams."),
    host: str = option("127.0.0.1", "With --http."),
    port: int = option(8321, "With --http."),
    token_env: str = option(
        "", "With --http: the variable that holds the client's token; a fresh one if left out."
    ),
    act_seconds: float = option(600.0, "Most time between two calls."),
    steps: int | None = option(None, "Most steps an episode."),
    resume: bool = option(False, "Go on with the run in --out."),
    key: str = KeyName,
) -> None:
    """Serve an instance's tools over MCP; each call is one recorded step.

    The client is whatever speaks MCP: give it this command as a stdio server, or the line that
    --http prints, which holds its token. The run directory is like any other: report, verify,
    recompute and replay read it.

      owa-bench serve --suite toolquest --tier 1 --client my-agent --out runs/mine
    """
    from owa_bench.bridges import mcp

    if resume:
        why = "shapes a plan, and --resume goes on with the plan that is there."
        options.refuse_together(options.given_names(context), _SHAPING, why)
    if not host:
        raise FieldError("--host", host, "must name an address")
    token = _token(token_env, http=http)
    request = Request(
        agents=(f"client:{client}",),
        draws=draw_options.draws_of(
            suite=suite,
            family=family,
            tier=str(tier),
            delta=str(delta),
            interventions=interventions,
            episodes=episodes,
        ),
        name=out.name,
        budget=Budget(steps=steps, act_s=act_seconds),
    )
    summary = mcp.serve(
        None if resume else request,
        out,
        RunOptions(home=keys.data_folder(), key=key, folder=Path.cwd()),
        mcp.Address(host, options.port(port), token) if http else None,
        announce=_print_line,
    )
    ERR.print(f"{summary.complete} of {summary.entries} episodes complete in {summary.root}")


def _token(variable: str, *, http: bool) -> str:
    """Return the client's token; "" where none is named."""
    from owa_bench.bridges.client_door import SHORTEST_TOKEN

    if not variable:
        return ""
    if not http:
        raise FieldError("--token-env", variable, "must come with --http")
    token = os.environ.get(variable, "").strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token:
        rule = (
            f"must name a variable that holds {SHORTEST_TOKEN} ASCII characters or "
            "more, without blanks"
        )
        raise FieldError("--token-env", variable, rule)
    return token


def _print_line(line: str) -> None:
    """Print what the client is given, unbroken, so that it can be pasted."""
    ERR.print("serving; paste into your client:", soft_wrap=True)
    ERR.print(line, soft_wrap=True, markup=False, highlight=False)


def serve_challenges(
    key: str = KeyName,
    host: str = option("127.0.0.1", "Where it listens."),
    port: int = option(8327, "0: any free one."),
) -> None:
    """Serve a verifier: submitters ask it for the challenges of their plans.

    It signs with your key, and keeps a line for every plan in your data folder
    (verifier/KEY.jsonl). A plan of a submitter on your list (verifier register) is numbered; GET
    /submitters/PUBLICKEY says how many plans somebody had challenged.

      owa-bench keygen verifier

      owa-bench verifier serve --key verifier
    """
    from owa_bench.bridges import verifier
    from owa_bench.runs.store.challenge_log import log_of

    if not host:
        raise FieldError("--host", host, "must name an address")
    home = keys.data_folder()
    desk = verifier.Verifier(keys.load(home, key), log_of(home, key))
    ERR.print(f"verifier {desk.public}")
    verifier.serve_verifier(
        desk, host, port and options.port(port), lambda url: ERR.print(f"serving on {url}")
    )


def register_submitter(
    name: str = typer.Argument(..., help="Whose plans are counted together."),
    submitter: str = option(..., "Public key of theirs, 64 hex digits."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Put a submitter's key on your list, so that their plans are numbered.

    Anybody can sign each plan with a fresh key. You decide who is who: all keys under one name
    count together (verifier/KEY.submitters.toml in your data folder). A plan that was challenged
    before its key was on the list stays without a number, and a leaderboard gives it no row.

      owa-bench verifier register 'a lab' --submitter 64-HEX-DIGITS --key verifier
    """
    from owa_bench.runs.store.challenge_log import log_of

    home = keys.data_folder()
    keys.load(home, key)
    log = log_of(home, key)
    known = log.register(name, submitter)
    if json:
        as_json(known)
        return
    for one in known.submitter:
        plans = log.count(one.keys[0])
        ERR.print(f"{one.name}: {len(one.keys)} keys, {plans} plans challenged")


def visit(
    family: str = option(..., "Site and goal."),
    seed: int = option(1, "Which instance."),
    tier: int = option(1, "The tier."),
    delta: float = option(0.0, "Drift magnitude."),
    port: int = option(8322, "On 127.0.0.1."),
) -> None:
    """Serve a ChangeSurf site over loopback, for a person or another tool's browser.

    Nothing is recorded or scored. Every host of the sandbox goes by a name under `localhost`, which
    browsers resolve to this machine.

      owa-bench visit --family stay/book --delta 0.5
    """
    import msgspec

    from owa_bench.drift import timeline as timelines
    from owa_bench.envs.changesurf.browser.loopback import host_site
    from owa_bench.envs.changesurf.suite import SUITE
    from owa_bench.records.instance import Instance

    options.port(port)
    card = SUITE.card
    plain = Instance(suite=card.name, version=card.version, family=family, tier=tier, seed=seed)
    step = timelines.drift_step(card.name, plain, delta)
    instance = msgspec.structs.replace(plain, drift_step=step)
    site = host_site(timelines.source(card.name)(instance), port)
    told = f"{site.instructions}\n\n{site.address}"
    ERR.print(told)
    site.server.join()
