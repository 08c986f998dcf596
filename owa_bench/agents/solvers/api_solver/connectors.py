"""Connectors: how callers of a vendor family prove themselves, worked out by trying.

The search knows HTTP: a refusal is challenged under a scheme (RFC 9110, section 11), a form has
fields, a sentence quotes names and values. Which endpoint there is, what its form must hold, which
field of its answer is sent on and what must be asked for beside it are read off refusals. What a
vendor states anew each time (place, scope) is kept as where it was stated, the rest as it was.

A connector is a file of its own, `families/NAME/connector.json`, and serves the vendors whose
collections have the descriptions that it was worked out on.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec

from owa_bench.agents.solvers import probing
from owa_bench.agents.solvers.api_solver.authentication import Connector, exchange
from owa_bench.agents.solvers.api_solver.http_session import HttpSession
from owa_bench.agents.solvers.planning import ToolPlan
from owa_bench.agents.solvers.probing import HttpReply

FAMILIES, FILE = "families", "connector.json"
MOST_REQUESTS = 12  # at the endpoint, for one credential


def load_connectors(folder: Path) -> tuple[Connector, ...]:
    """Return the connectors in a memory folder; what is not readable is none."""
    found = []
    for path in sorted((folder / FAMILIES).glob(f"*/{FILE}")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Connector))
        except (OSError, msgspec.MsgspecError):
            continue
    return tuple(found)


def save_connector(folder: Path, connector: Connector) -> None:
    """Write a connector into its folder below `families/`.

    Args:
        folder: The memory folder.
        connector: It replaces the one of its name.
    """
    place = folder / FAMILIES / connector.name / FILE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(msgspec.json.encode(connector, order="sorted") + b"\n")


def connector_for(
    connectors: Iterable[Connector], collections: Collection[str]
) -> Connector | None:
    """Return the connector of the vendor that has one of these collections.

    Args:
        connectors: Those that are known.
        collections: Descriptions of the vendor's collections.
    Returns: The first that serves one of them, None without one.
    """
    return next((c for c in connectors if set(c.serves) & set(collections)), None)


def work_out(
    session: HttpSession, address: str, secret: str, serves: Collection[str]
) -> ToolPlan[Connector | None]:
    """Return how the collection at an address is opened with a credential.

    Args:
        session: What requests are sent through.
        address: A collection that refuses a caller without a proof.
        secret: The value of the credential.
        serves: Descriptions of the vendor's collections.
    Returns: The connector that opened it, None where nothing that was tried did.
    """
    refusal = yield from session.http("GET", address)
    place = _endpoint(refusal)
    if not place or not serves:
        return None
    known = Connector(name="", serves=tuple(sorted(serves)), place=place, scheme=_scheme(refusal))
    stated: Mapping[str, str] = probing.challenge(refusal)
    for _ in range(MOST_REQUESTS):
        endpoint = urljoin(address, stated[place])
        answer = yield from exchange(session, endpoint, known, secret, stated)
        if not answer.ok:
            changed = _amended(known, answer)
        else:
            opened = yield from _answered_text(session, address, known, answer)
            if opened.connector is not None:
                name = known.name or re.sub(r"\W+", "-", known.serves[0].lower())
                return msgspec.structs.replace(opened.connector, name=name)
            changed = _asking(known, opened.refusal)
            stated = probing.challenge(opened.refusal)
        if changed == known or place not in stated:
            return None
        known = changed
    return None


class _Opening(msgspec.Struct, frozen=True):
    """The connector that opened a collection, or the last refusal."""

    refusal: HttpReply
    connector: Connector | None = None


def _answered_text(
    session: HttpSession, address: str, known: Connector, answer: HttpReply
) -> ToolPlan[_Opening]:
    """Send what the endpoint answered on, its longest text first."""
    body: Mapping[str, Any] = answer.body if isinstance(answer.body, Mapping) else {}
    texts = {name: text for name, text in body.items() if isinstance(text, str)}
    refusal = answer
    for name in sorted(texts, key=lambda name: (-len(texts[name]), name)):
        proof = {"Authorization": f"{known.scheme} {texts[name]}"}
        reply = yield from session.http("GET", address, headers=proof)
        taken = msgspec.structs.replace(known, taken=name)
        if reply.ok:
            return _Opening(reply, taken)
        if _asking(known, reply) != known:  # it is known, and does not suffice
            return _Opening(reply)
        refusal = reply
    return _Opening(refusal)


def _endpoint(refusal: HttpReply) -> str:
    """Return the parameter of a challenge that holds a path, "" for none."""
    stated = probing.challenge(refusal)
    return next((name for name, value in stated.items() if value[:1] == "/"), "")


def _scheme(refusal: HttpReply) -> str:
    return refusal.headers.get("www-authenticate", "").partition(" ")[0]


def _amended(known: Connector, refusal: HttpReply) -> Connector:
    """Take over a field and its value, or a scheme, that the endpoint asks for."""
    quoted = probing.quoted_names(refusal)
    if len(quoted) == 2 and quoted[0] not in known.fields:
        fields = {**known.fields, quoted[0]: quoted[1]}
        return msgspec.structs.replace(known, fields=fields)
    return msgspec.structs.replace(known, client=_scheme(refusal) or known.client)


def _asking(known: Connector, refusal: HttpReply) -> Connector:
    """Ask for what a challenge states and its sentence quotes; be named after it."""
    quoted = probing.quoted_names(refusal)
    for name, value in probing.challenge(refusal).items():
        if value in quoted and value[:1] != "/" and name not in known.echoed:
            family = re.split(r"\W", value)[0] or known.name
            echoed = (*known.echoed, name)
            return msgspec.structs.replace(known, echoed=echoed, name=family)
    return known
