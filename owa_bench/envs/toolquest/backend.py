"""Backend of the vendors: tokens, rate windows, records, and what was served.

Pure of HTTP: `app.py` translates. Every change replaces `state`. Tokens are the HMAC of a key of
the instance's base stream and a counter, so a replay issues the same ones.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.canonical import keyed_digest
from owa_bench.envs.toolquest import state
from owa_bench.envs.toolquest.world import ApiWorld, Provider, Secret, Value
from owa_bench.interfaces import Sink
from owa_bench.seeding import derive


def instance_key(seed: int) -> bytes:
    """Return the key of an instance's tokens and cursors, from its base stream."""
    return derive(seed, "base", "tokens").to_bytes(8, "big")


def token_value(key: bytes, provider: str, number: int) -> str:
    """Return the `number`-th access token of an episode, issued by `provider`.

    Args:
        key: The instance's key.
        provider: Key of the vendor that issues it.
        number: Number of the token in the episode, from 0.
    """
    return f"at_{keyed_digest(key, 'token', provider, str(number)).hex()[:40]}"


def refresh_value(key: bytes, provider: str, secret: str, number: int) -> str:
    """Return the `number`-th refresh token that came of a vault entry.

    Args:
        key: The instance's key.
        provider: Key of the vendor.
        secret: Name of the vault entry.
        number: Number of the token, from 0.
    """
    return f"rt_{keyed_digest(key, 'refresh', provider, secret, str(number)).hex()[:40]}"


# What a vendor puts into the fields of a new record that nobody may write.
_BLANKS: Mapping[str, Value] = {
    "string": "",
    "integer": 0,
    "money": 0,
    "date": "2031-12-31",
    "enum": "new",
    "boolean": False,
}


_LONGEST_OUTAGE_S = 8


class NumberedRow(NamedTuple):
    """One row as it stands now; `number` is its place in the table, -1 if posted."""

    number: int
    values: tuple[Value, ...]


class IdempotentAnswer(NamedTuple):
    """What was sent under an idempotency key, and the answer it got."""

    body: bytes
    answer: bytes


class Outage(NamedTuple):
    """A request that meets a 503: how long to wait, and whether it took effect."""

    wait_ms: int
    took_effect: bool


class Backend:
    """The live side of an `ApiWorld`; `state` is everything that has happened.

    `draw` gives the next number of the noise stream, for outages.
    """

    def __init__(self, world: ApiWorld, key: bytes, sink: Sink, draw: Callable[[], int]) -> None:
        self.state: state.ApiState = state.initial_state(world)
        self.key = key
        self._sink = sink
        self._draw = draw
        self._promised: set[str] = set()
        self._answers: dict[tuple[str, str], IdempotentAnswer] = {}
        self._issued: dict[str, tuple[str, int, frozenset[str], int]] = {}
        self._renewed: dict[tuple[str, str], list[str]] = {}
        self._rows: dict[state.CollectionKey, tuple[NumberedRow, ...]] = {}

    @property
    def world(self) -> ApiWorld:
        """The world in force."""
        return self.state.world

    def enter(self, world: ApiWorld) -> None:
        """Go on in another world; what was issued and posted stays."""
        self.state = state.after_drift(self.state, world)
        self._rows.clear()

    def at(self, now_ms: int) -> None:
        """Set the simulated clock."""
        if now_ms != self.state.now_ms:
            self.state = replace(self.state, now_ms=now_ms)

    # --- reading --------------------------------------------------------------------

    def note_registry(self) -> None:
        """The registry was read."""
        self.state = replace(self.state, registry_read=True)

    def note_home(self, provider: str) -> None:
        """A vendor's home page was read."""
        self.state = replace(self.state, homes=self.state.homes | {provider})

    def note_docs(self, provider: str) -> None:
        """A vendor's API description was read."""
        self.state = replace(self.state, docs=self.state.docs | {provider})

    def note_secret(self, provider: str, secret: Secret) -> None:
        """A vault entry was read.

        Args:
            provider: Key of the vendor.
            secret: The entry.
        """
        entry = (provider, secret.name)
        self.state = replace(self.state, secrets=self.state.secrets | {entry})

    def note_breach(self, rule: str, evidence: str) -> None:
        """A disallowed act was seen.

        Args:
            rule: Name of the rule.
            evidence: What was seen.
        """
        breach = state.RuleBreach(rule, evidence)
        self.state = replace(self.state, breaches=(*self.state.breaches, breach))

    def was_broken(self, rule: str) -> bool:
        """Return whether a rule was broken before in this episode."""
        return any(breach.rule == rule for breach in self.state.breaches)

    def note_artefact(self, artefact: state.Artefact) -> None:
        """An answer was handed in."""
        self.state = replace(self.state, artefact=artefact)

    def note_reply(self, place: state.CollectionKey, status: int) -> None:
        """Remember the status of a place's last refusal, forget it on success.

        Args:
            place: The collection.
            status: HTTP status of the reply.
        """
        refusals = dict(self.state.refusals)
        if status < 400:
            refusals.pop(place, None)
        else:
            refusals[place] = status
        if refusals != self.state.refusals:
            self.state = replace(self.state, refusals=refusals)

    def rows(self, place: state.CollectionKey) -> tuple[NumberedRow, ...]:
        """Return the rows behind a resource as they stand now."""
        if place not in self._rows:
            self._rows[place] = self._present(place)
        return self._rows[place]

    def _present(self, place: state.CollectionKey) -> tuple[NumberedRow, ...]:
        table = self.state.vendors[place[0]].table(place[1])
        gone = {d.ident for d in self.state.deletions if d.place == place}
        rows = [NumberedRow(i, row) for i, row in enumerate(table.rows)]
        for record in self.state.records:
            if record.place == place:
                values = dict(record.values)
                row = tuple(values[column] for column in table.columns)
                rows.append(NumberedRow(-1, row))
        return tuple(row for row in rows if str(row.values[0]) not in gone)

    def note_rows(self, place: state.CollectionKey, served: tuple[NumberedRow, ...]) -> None:
        """Note that rows left the server, so that the agent has seen them.

        Args:
            place: The collection.
            served: The rows of the reply.
        """
        bits = 0
        for row in served:
            if row.number >= 0:
                bits |= 1 << row.number
        known = self.state.fetched.get(place, 0)
        if known | bits != known or place not in self.state.fetched:
            fetched = {**self.state.fetched, place: known | bits}
            self.state = replace(self.state, fetched=fetched)

    # --- limits and tokens ------------------------------------------------------------

    def admit(self, provider: Provider) -> int:
        """Count a request against the limit; return 0, or the wait in milliseconds."""
        if wait := self.state.limit_ms(provider.key):
            return wait
        now = self.state.now_ms
        window = self.state.windows.get(provider.key)
        limit = provider.contract.limit
        if window is None or now >= window.start_ms + limit.window_ms:
            window = state.RateWindow(now, 0)
        window = state.RateWindow(window.start_ms, window.used + 1)
        windows = {**self.state.windows, provider.key: window}
        self.state = replace(self.state, windows=windows)
        return 0

    def outage(self, provider: Provider) -> Outage | None:
        """Return the outage a request meets, one that begins with it among them."""
        wait = self.state.outage_ms(provider.key)
        if wait:
            return Outage(wait, took_effect=False)
        if provider.key in self._promised and not self.state.limit_ms(provider.key):
            self._promised.discard(provider.key)
            return None
        share = provider.contract.outages
        if not share:
            return None
        draw = self._draw()
        if draw % 100 >= share:
            return None
        wait = 1000 * (1 + draw // 100 % _LONGEST_OUTAGE_S)
        outages = {**self.state.outages, provider.key: self.state.now_ms + wait}
        self.state = replace(self.state, outages=outages)
        return Outage(wait, took_effect=draw // 10_000 % 2 == 0)

    def promise(self, provider: str) -> None:
        """Note that a caller was told when to come back: then it will be served."""
        self._promised.add(provider)

    def store_answer(self, provider: str, name: str, answer: IdempotentAnswer) -> None:
        """Remember the answer that an idempotency key got.

        Args:
            provider: Key of the vendor.
            name: The idempotency key.
            answer: The body that was sent and the answer it got.
        """
        self._answers[provider, name] = answer

    def stored_answer(self, provider: str, name: str) -> IdempotentAnswer | None:
        """Return what an idempotency key was used for, None if it is new.

        Args:
            provider: Key of the vendor.
            name: The idempotency key.
        Returns: The body and its answer, None for a new key.
        """
        return self._answers.get((provider, name))

    def issue(self, provider: Provider, scopes: frozenset[str]) -> str:
        """Return a new access token; it is a secret from this moment.

        Args:
            provider: The vendor.
            scopes: What the token grants.
        Returns: The token; it lives as long as the contract says.
        """
        number = len(self._issued)
        token = token_value(self.key, provider.key, number)
        self._sink.secret(f"token:{provider.key}:{number}", token)
        expires = self.state.now_ms + provider.contract.auth.lifetime_ms
        self._issued[token] = (provider.key, number, scopes, expires)
        grants = {**self.state.grants, provider.key: state.Grant(number, scopes, expires)}
        self.state = replace(self.state, grants=grants)
        return token

    def renew(self, provider: Provider, secret: Secret) -> str:
        """Return the next refresh token of a vault entry; the one before is used up.

        Args:
            provider: The vendor.
            secret: The vault entry.
        Returns: The token that works from now on.
        """
        earlier = self._renewed.setdefault((provider.key, secret.name), [])
        token = refresh_value(self.key, provider.key, secret.name, len(earlier))
        self._sink.secret(f"refresh:{provider.key}:{secret.name}:{len(earlier)}", token)
        earlier.append(token)
        renewals = {**self.state.renewals, provider.key: state.Renewal(secret.name, token)}
        self.state = replace(self.state, renewals=renewals)
        return token

    def is_used_up(self, provider: Provider, secret: Secret, token: str) -> bool:
        """Return whether a refresh token worked before and no longer does.

        Args:
            provider: The vendor.
            secret: The vault entry.
            token: The refresh token that was sent.
        Returns: True for any earlier token of the entry.
        """
        earlier = self._renewed.get((provider.key, secret.name), [])
        return token in earlier or token == secret.value.rpartition(":")[2]

    def grant_of(self, provider: str, token: str) -> state.Grant | None:
        """Return what a token grants at `provider`, expired or not.

        Args:
            provider: Key of the vendor.
            token: The access token that was sent.
        Returns: The grant, None for a token of nobody or of another vendor.
        """
        owner, number, scopes, expires = self._issued.get(token, ("", 0, frozenset(), 0))
        return state.Grant(number, scopes, expires) if owner == provider else None

    # --- writing ----------------------------------------------------------------------

    def create(self, place: state.CollectionKey, values: dict[str, Value]) -> tuple[Value, ...]:
        """Add a record, give it an identifier, and return its row.

        Args:
            place: The collection.
            values: Values by field key.
        Returns: The row with the fields that the vendor fills in.
        """
        vendor = self.state.vendors[place[0]]
        table = vendor.table(place[1])
        ident = f"{place[1]}-new-{len(self.state.records) + 1}"
        blank = {
            f.key: f.choices[0].value if f.choices else _BLANKS[f.kind]
            for f in vendor.contract.resource(place[1]).fields
        }
        full = {**blank, **values, table.columns[0]: ident}
        record = state.PostedRecord(place, ident, tuple(sorted(full.items())))
        self.state = replace(self.state, records=(*self.state.records, record))
        self._rows.pop(place, None)
        return self.rows(place)[-1].values

    def delete(self, place: state.CollectionKey, row: NumberedRow) -> None:
        """Remove a row for good.

        Args:
            place: The collection.
            row: The row as it stands.
        """
        gone = state.Deletion(place, row.number, str(row.values[0]))
        self.state = replace(self.state, deletions=(*self.state.deletions, gone))
        self._rows.pop(place, None)
