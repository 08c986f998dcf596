"""Authentication to one vendor, with other credentials when one is refused."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import urljoin

import msgspec

from owa_bench.agents.solvers import documents, probing
from owa_bench.agents.solvers.api_solver.http_session import HttpSession, VaultEntry
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import Security
from owa_bench.agents.solvers.planning import ToolPlan
from owa_bench.agents.solvers.probing import HttpReply

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 401, 403, 404
REFRESH = "refresh_token"
GRANTS = ("client_credentials", REFRESH)
MOST_TRIES = 10
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_NEWER = documents.words("issued later new newer current latest replacement")


class Connector(msgspec.Struct, frozen=True, kw_only=True):
    """How callers of a vendor family prove themselves, as it was worked out.

    `serves` are descriptions of collections, by which a vendor of the family is known. `place`
    names the parameter of a challenge that holds the endpoint, `fields` what its form must hold,
    `echoed` further fields, which a challenge states by the same name. `client` is the scheme under
    which the credential goes to the endpoint, "" for none; `taken` the field of its answer that is
    sent on under `scheme`.
    """

    name: str
    serves: tuple[str, ...]
    place: str
    scheme: str
    fields: dict[str, str] = {}
    echoed: tuple[str, ...] = ()
    client: str = ""
    taken: str = ""


def exchange(
    session: HttpSession,
    endpoint: str,
    connector: Connector,
    secret: str,
    stated: Mapping[str, str],
) -> ToolPlan[HttpReply]:
    """Send a connector's form to its endpoint and return the answer.

    Args:
        session: What requests are sent through.
        endpoint: Its address.
        connector: Says what the form holds.
        secret: The credential.
        stated: Parameters of the vendor's challenges.
    Returns: The answer.
    """
    echoed = {name: stated[name] for name in connector.echoed if name in stated}
    proof = f"{connector.client} {_encoded(secret)}" if connector.client else ""
    return (
        yield from session.http(
            "POST",
            endpoint,
            headers={**({"Authorization": proof} if proof else {}), **FORM},
            body={**connector.fields, **echoed},
        )
    )


@dataclass(slots=True)
class AuthenticatedClient:
    """One vendor's credentials: which is in use, which are left, the token.

    Without `grants` it has no OAuth2: a vendor that asks for tokens is `closed` to it but for a
    `connector` of the vendor's family.
    """

    title: str
    security: Security
    server: str
    session: HttpSession
    memory: FactMemory
    _: KW_ONLY
    retries: bool = True
    aliases: tuple[str, ...] = ()
    grants: bool = True
    connector: Connector | None = None
    closed: str = field(default="", init=False)  # a collection that stays refused
    _connected: str = field(default="", init=False)
    _asked: dict[str, dict[str, str]] = field(default_factory=dict, init=False)
    _left: list[str] | None = field(default=None, init=False)
    _entry: str = field(default="", init=False)
    _token: str = field(default="", init=False)
    _proven: bool = field(default=False, init=False)
    _peeked: dict[str, HttpReply] = field(default_factory=dict, init=False)

    def request(
        self, method: str, address: str, *, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> ToolPlan[HttpReply]:
        """Send a request as the vendor's client; try other proofs when refused.

        Args:
            method: HTTP method.
            address: Address of the collection.
            query: Query parameters.
            body: A JSON value.
        Returns: The reply to the last attempt.
        """
        for _ in range(MOST_TRIES):
            headers, extra = yield from self._proof()
            asked = self._asked.get(address, {}) if method == "GET" else {}
            reply = yield from self.session.http(
                method,
                address,
                headers=headers | _once(method, address, body),
                query={**(query or {}), **asked, **extra},
                body=body,
            )
            if method == "GET" and self._comply(address, query or {}, reply):
                continue
            if reply.status not in (UNAUTHORIZED, FORBIDDEN):
                self._proven = True
                self.memory.learn(self.title, "credential", self._entry)
                return reply
            if not self.retries or not (yield from self._repair(reply)):
                break
        self.closed = address
        return reply

    def _comply(self, address: str, query: Mapping[str, Any], reply: HttpReply) -> bool:
        """Take over a parameter that a refusal asks for with its value; True if so."""
        named = probing.quoted_names(reply) if self.retries else ()
        asked = self._asked.setdefault(address, {})
        if reply.status != BAD_REQUEST or len(named) != 2:
            return False
        name, value = named
        if name in query or name in asked or name in address:
            return False
        asked[name] = value
        return True

    def peek(self, address: str) -> ToolPlan[HttpReply]:
        """Return what a GET at `address` gave the first time it was looked at."""
        if address not in self._peeked:
            self._peeked[address] = yield from self.request("GET", address)
        return self._peeked[address]

    def _proof(self) -> ToolPlan[tuple[dict[str, str], dict[str, str]]]:
        """Return the headers and query that prove who calls."""
        scheme = self.security.scheme
        if self._connected:
            return {"Authorization": self._connected}, {}
        if scheme == "none" or (scheme == "oauth2" and not self.grants):
            return {}, {}
        if not self._entry:
            yield from self._next()
        if scheme == "oauth2":
            if not self._token:
                yield from self._grant()
            return {"Authorization": f"Bearer {self._token}"}, {}
        value = yield from self.session.secret(self._entry)
        if scheme == "query":
            return {}, {self.security.name: value}
        if scheme == "basic":
            return {"Authorization": f"Basic {_encoded(value)}"}, {}
        return {self.security.name: value}, {}

    def _repair(self, reply: HttpReply) -> ToolPlan[bool]:
        """Change what was refused; return whether there is something to try."""
        challenge = probing.challenge(reply)
        if self.connector is not None and self.connector.place in challenge:
            return (yield from self._connect(self.connector, challenge))
        if self._adopt(challenge, reply):
            return True
        if self.security.scheme == "oauth2" and self._token and self._proven:
            self._token, self._proven = "", False  # it has expired
            return True
        self._token = ""
        return (yield from self._next())

    def _adopt(self, challenge: Mapping[str, str], reply: HttpReply) -> bool:
        """Take over what a challenge says of scheme and scope, if it is news."""
        old = self.security
        new = old
        if reply.headers.get("www-authenticate", "").startswith("Basic "):
            new = Security("basic", "Authorization")
        elif reply.status == FORBIDDEN and challenge.get("scope"):
            new = old._replace(scope=challenge["scope"])
        elif challenge.get("token_endpoint") and self.grants:
            token = urljoin(self.server + "/", challenge["token_endpoint"])
            new = Security("oauth2", "Authorization", token, old.scope, old.grant)
        elif challenge.get("in") and challenge.get("name"):
            place = challenge["in"]
            new = Security("query" if "query" in place else "header", challenge["name"])
        if new == old:
            return False
        self.security, self._token = new, ""
        return True

    def _connect(self, connector: Connector, stated: Mapping[str, str]) -> ToolPlan[bool]:
        """Get a proof by a connector, with one credential after another."""
        endpoint = urljoin(self.server + "/", stated[connector.place])
        while self._entry or (yield from self._next()):
            secret = yield from self.session.secret(self._entry)
            reply = yield from exchange(self.session, endpoint, connector, secret, stated)
            if reply.ok and isinstance(reply.body, Mapping):
                proof = str(reply.body.get(connector.taken, ""))
                self._connected = f"{connector.scheme} {proof}"
                return True
            self._entry = ""
        return False

    def _grant(self) -> ToolPlan[None]:
        """Get an access token, with one client credential after another."""
        while True:
            value = yield from self.session.secret(self._entry)
            client, body = _grant_of(self.security.grant, value)
            if self.security.scope:
                body["scope"] = self.security.scope
            reply = yield from self.session.http(
                "POST",
                self.security.token_address,
                headers={"Authorization": f"Basic {_encoded(client)}", **FORM},
                body=body,
            )
            if reply.ok and isinstance(reply.body, Mapping):
                self._token = str(reply.body.get("access_token", ""))
                if reply.body.get(REFRESH) and REFRESH in body:  # the old one is spent
                    self.session.renew(self._entry, f"{client}:{reply.body[REFRESH]}")
                return
            if reply.status == NOT_FOUND:  # the place is wrong, not the credential
                self._left, self._entry = None, ""
                return
            if self.retries and self._amend(reply):
                continue
            if not (yield from self._next()):
                return

    def _amend(self, reply: HttpReply) -> bool:
        """Take over grant or scope as a refusal names it; return whether it is news."""
        named = probing.quoted_names(reply)
        old = self.security
        other = next((g for g in GRANTS if g in named), "")
        if other:
            self.security = old._replace(grant=other)
        elif named and "invalid_scope" in str(reply.body):
            self.security = old._replace(scope=named[0])
        return self.security != old

    def _next(self) -> ToolPlan[bool]:
        """Turn to the next credential; return whether there was one."""
        if self._left is None:
            entries = yield from self.session.entries()
            known = str(self.memory.recall(self.title, "credential") or "")
            titles = tuple(dict.fromkeys((self.title, *self.aliases)))
            self._left = candidates(titles, entries, known)
        if not self._left:
            return False
        self._entry = self._left.pop(0)
        return True


def candidates(titles: Sequence[str], entries: tuple[VaultEntry, ...], known: str) -> list[str]:
    """Return the entries that may be the vendor's, likeliest first.

    Args:
        titles: All names that the vendor goes by.
        entries: Entries of the vault.
        known: Name of the entry that worked before, "" for none.
    Returns: Names of entries; among those not known, newer ones come first.
    """
    scores = {
        e.name: max(documents.overlap(t, f"{e.name} {e.about}") for t in titles) for e in entries
    }
    named = [documents.words(title) for title in titles]
    own = [
        e
        for e in entries
        if any(words <= documents.words(f"{e.name} {e.about}") for words in named)
    ]

    def order(entry: VaultEntry) -> tuple[bool, bool, float]:
        newer = bool(documents.words(entry.about) & _NEWER)
        return (entry.name != known, not newer, -scores[entry.name])

    return [entry.name for entry in sorted(own or entries, key=order)]


def _grant_of(grant: str, value: str) -> tuple[str, dict[str, str]]:
    """Return the client and the body of a request for a token by a grant."""
    if grant != REFRESH:
        return value, {"grant_type": grant}
    client, _, refresh = value.rpartition(":")
    return client, {"grant_type": grant, "refresh_token": refresh}


def _once(method: str, address: str, body: Any) -> dict[str, str]:
    """Return the header by which the same record is made once, however often sent."""
    if method != "POST":
        return {}
    text = json.dumps([address, body], sort_keys=True, default=str)
    return {"Idempotency-Key": hashlib.sha256(text.encode()).hexdigest()[:24]}


def _encoded(pair: str) -> str:
    """Return `id:secret` as Basic authentication writes it."""
    return base64.b64encode(pair.encode()).decode()
