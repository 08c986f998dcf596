"""Options of the commands that play: each is declared here once.

`run`, `place` and `validate` take from here what they share, in panels of the same titles.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from owa_bench.cli.console import ERR
from owa_bench.cli.options import Fields, Panel
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records.plan import Budget
from owa_bench.runs.plan import request as requests
from owa_bench.runs.store import keys

TERMS: Final = Panel("Under which terms")
REACH: Final = Panel("What agents may reach (docs/model-gateway.md)")
HOW: Final = Panel("How it is played (no effect on the replay root)")

OUT_TEXT: Final = "Run directory to make, or to resume."
FILE_TEXT: Final = "Name or TOML file."
_TERMS: Mapping[str, str] = {
    "protocol": FILE_TEXT,
    "price_card": FILE_TEXT,
    "calendar": "nested, nested:D3, single:api/silent_units@1, reversing:0.25@4, ..",
    "sandbox": "Around agents: auto, namespaces, docker, or none (V2 at most).",
}
_HOW: Mapping[str, str] = {
    "workers": "Worker processes.",
    "executor": "local, or ray: workers on the nodes of a cluster.",
    "ray_address": "Ray's cluster; else one is started on this machine.",
    "concurrency": "Episodes at once, for slow agents.",
    "in_process": "Agents share the worker: fast, V2 at most.",
    "wire": "HTTP over loopback sockets.",
    "key": "Name of the signing key.",
    "failure_share": "Stop when more than this share of an agent's attempts failed through the "
    "harness; the protocol's if left out. 1: never stop, nor an arm whose provider fails three "
    "times in a row, or that fails three times before its first act.",
}

ActSeconds: Any = TERMS(Budget().act_s, "Deadline for one act.")
Nonce: Any = TERMS(None, "A verifier's nonce, mixed into seeds.")
Challenger: Any = TERMS(
    "",
    "Public key of a verifier, whose challenge to the signed plan enters the seeds: with "
    "--plan-only.",
)
Reach: Any = REACH.fields(
    GatewayOptions,
    model_url="Address of the models' provider, such as http://127.0.0.1:8000/v1; "
    "$OPENAI_BASE_URL if left out.",
    model_api="What it speaks: chat, or by translation responses, anthropic, gemini (extra "
    "providers).",
    model_key_env="Variable that holds the API key, which no agent sees; the usual one of the "
    "interface if left out.",
    model_cache="Folder of replies by request: each is paid for once.",
    model_header="HEADER=VARIABLE: a header of each request, with the value of that variable, "
    "such as api-key=AZURE_KEY.",
    allow_host="HOST:PORT that agents may connect to; their cost is unknown then.",
    pass_env="Variable that agents get; no other.",  # noqa: S106  its help
)
NoPreflight: Any = HOW(False, "Do not first ask once what agents behind an address need.")
Resume: Any = HOW(False, "Go on with the run in --out.")
DryRun: Any = HOW(False, "Say how much it would be, and stop.")
Json: Any = HOW(False, "Print JSON.")

# Options of these that a resume needs again: they are no part of the plan.
AGAIN: Final = (*Reach.helps, "workers", "concurrency", "key", "no_preflight", "failure_share")


def terms(*fields: str) -> Any:
    """Return options for fields of a request.

    Args:
        fields: Their names.
    """
    return TERMS.fields(requests.Request, **{name: _TERMS[name] for name in fields})


def how(*fields: str) -> Any:
    """Return options for fields of how a run is played.

    Args:
        fields: Their names.
    """
    return HOW.fields(requests.RunOptions, **{name: _HOW[name] for name in fields})


def run_options(how: Fields, reach: Fields, *, no_preflight: bool) -> requests.RunOptions:
    """Return how a run is played from here, as options say.

    Args:
        how: Values of `how`.
        reach: Values of `Reach`.
        no_preflight: Value of `NoPreflight`.
    """
    return requests.RunOptions(
        home=keys.data_folder(),
        folder=Path.cwd(),
        gateway=GatewayOptions(**reach),
        preflight=None if no_preflight else _print_answer,
        **how,
    )


def _print_answer(line: str) -> None:
    """Print what answered before the run."""
    ERR.print(f"preflight: {line}")
