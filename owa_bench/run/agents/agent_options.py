"""Options given with an agent's name: `NAME:key=value,key=value`.

A comma parts two options only where `key=` follows, so a value may hold commas. What is
written here stands in the plan, which is public: a password has no place in it.
"""

import re
from urllib.parse import urlsplit

from owa_bench.errors import AgentSpecError
from owa_bench.interfaces import AgentCard

ARM = "name"  # every agent with options takes this one: how its arm is called
_NEXT = re.compile(r",(?=[a-z_]+=)")


def parse(card: AgentCard, text: str) -> dict[str, str]:
    """Return the options in `text`, checked against what the agent's card lists.

    Errors: AgentSpecError. Values of unknown options are not repeated: one may be a
    key.
    """
    options: dict[str, str] = {}
    for part in _NEXT.split(text) if text else ():
        name, sign, value = part.partition("=")
        if not sign or (name not in card.options and name != ARM):
            raise AgentSpecError(
                f"{_listing(card)}; it has no option `{name if sign else '?'}`."
            )
        _refuse_password(card, name, value)
        options[name] = value
    missing = [name for name in card.required if not options.get(name)]
    if missing:
        raise AgentSpecError(f"{_listing(card)}; missing: {', '.join(missing)}.")
    return options


def _refuse_password(card: AgentCard, name: str, value: str) -> None:
    if "://" not in value:
        return
    parts = urlsplit(value)
    if parts.username or parts.password:
        raise AgentSpecError(
            f"`{name}` of agent `{card.name}` must hold no user or password: the plan "
            f"that repeats it is public, got {parts.scheme}://...@{parts.hostname}."
        )


def _listing(card: AgentCard) -> str:
    """Return how the agent is given with its options."""
    if not card.options:
        return f"Agent `{card.name}` takes no options"
    shown = ",".join(f"{name}=.." for name in card.required or list(card.options)[:2])
    known = ", ".join([*card.options, ARM])
    return f"Agent `{card.name}` is given as `{card.name}:{shown}`; options: {known}"
