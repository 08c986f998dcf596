"""`owa-bench doctor --model-url`: what a chat server can do."""

from collections.abc import Sequence

import msgspec
import typer
from rich.text import Text

from owa_bench.cli.console import OUT, as_json
from owa_bench.errors import UsageError

_NO_CALL = "No tool call came, so there is no command: see the advice above."
_STYLES = {"yes": "green", "no": "yellow", "refused": "yellow"}


def ask_server(
    url: str, model: str, key_env: str, headers: Sequence[str], seconds: float, *, json: bool
) -> None:
    """Print what a server can do and the command that plays it.

    Args:
        url: Address of the server.
        model: Name of the model.
        key_env: Variable of the key, "" for the usual one where it is set.
        headers: NAME=ENV_VARIABLE of other headers.
        seconds: Time for all questions.
        json: Print the record.
    Raises:
        UsageError: Address or model is missing, or cannot be used.
        Exit: With 1, the model makes no tool calls.
    """
    from owa_bench.hosting.gateway.options import GatewayOptions
    from owa_bench.hosting.gateway.probe import probe_server
    from owa_bench.hosting.gateway.probe_advice import command_of

    if not (url and model):
        missing = "--model" if url else "--model-url"
        raise UsageError(f"{missing} is missing: doctor --model-url URL --model NAME")
    options = GatewayOptions(model_url=url, model_key_env=key_env, model_header=tuple(headers))
    found = probe_server(options, model, seconds=seconds)
    flags = dict(found.flags)
    if key_env:
        flags["--model-key-env"] = key_env
    command = command_of(found.options, flags, headers) if found.can_play else ""
    if json:
        as_json(msgspec.to_builtins(found) | {"command": command})
    else:
        for row in found.findings:
            style = _STYLES.get(row.verdict, "dim")
            mark = (f"{row.verdict:<9}", style)
            OUT.print(Text.assemble(mark, f" {row.name:<20} {row.detail}"))
            if row.advice:
                OUT.print(f"{'':<30} -> {row.advice}")
        if found.left_out:
            longer = f"--seconds {max(60, 4 * seconds):g}"
            OUT.print(f"{found.left_out} questions had no time; ask with {longer}.")
        OUT.print(f"\n{command}" if command else f"\n{_NO_CALL}")
    if not command:
        raise typer.Exit(1)
