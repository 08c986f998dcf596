"""Options of registered agents: `NAME:key=value,key=value`.

A comma parts two options only where `key=` follows, so a value may hold commas.
"""

import re
from urllib.parse import urlsplit

from owa_bench.agents.solvers.handicaps import KNOBS, read_handicaps
from owa_bench.errors import AgentSpecError, FieldError
from owa_bench.interfaces import AgentCard

NAME_OPTION = "name"  # of every agent with options: how its arm is called
_NEXT_OPTION = re.compile(r",(?=[a-z_]+=)")


def parse_options(card: AgentCard, text: str) -> dict[str, str]:
    """Return the options in `text`, checked against what the agent's card lists.

    Args:
        card: The agent's.
        text: `key=value,key=value`.
    Returns: Values by name.
    Raises: AgentSpecError: With the rule; values of unknown options are not repeated, for one may
        be a key.
    """
    options: dict[str, str] = {}
    for part in _NEXT_OPTION.split(text) if text else ():
        name, sign, value = part.partition("=")
        if not sign or (name not in card.options and name != NAME_OPTION):
            raise AgentSpecError(f"{_usage(card)}; it has no option `{name if sign else '?'}`.")
        parts = urlsplit(value) if "://" in value else None
        if parts and (parts.username or parts.password):
            raise AgentSpecError(
                f"`{name}` of agent `{card.name}` must hold no user or password: the "
                f"plan that repeats it is public, got {parts.scheme}://...@"
                f"{parts.hostname}."
            )
        options[name] = value
    missing = [name for name in card.required if not options.get(name)]
    if missing:
        raise AgentSpecError(f"{_usage(card)}; missing: {', '.join(missing)}.")
    shared = {n: v for n, v in options.items() if card.options.get(n) == _about(n)}
    try:
        read_handicaps(shared)
    except FieldError as error:
        raise AgentSpecError(f"Agent `{card.name}`: {error}") from error
    return options


def _about(name: str) -> str | None:
    """Return the line of a knob that agents share, None for any other option."""
    return KNOBS[name].about if name in KNOBS else None


def _usage(card: AgentCard) -> str:
    """Return how the agent is given with its options."""
    if not card.options:
        return f"Agent `{card.name}` takes no options"
    shown = ",".join(f"{name}=.." for name in card.required or list(card.options)[:2])
    names = ", ".join([*card.options, NAME_OPTION])
    return f"Agent `{card.name}` is given as `{card.name}:{shown}`; options: {names}"
