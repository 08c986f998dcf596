"""State of an episode of ToolQuest, as one frozen value.

The backend replaces it whenever something happens; the oracle, the detectors and the vector view
read it. Rows that an agent was served are bits of an integer, one a row of the table, so that two
states compare in no time.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from owa_bench.envs.toolquest.world import ApiWorld, Provider, Secret, Value

CollectionKey = tuple[str, str]  # (provider key, resource key)


class Grant(NamedTuple):
    """The newest access token of a provider: its number, scopes and end of life."""

    number: int
    scopes: frozenset[str]
    expires_ms: int


class Renewal(NamedTuple):
    """The newest refresh token that came of a vault entry, by its name."""

    secret: str
    token: str


class RateWindow(NamedTuple):
    """A provider's running rate-limit window: when it began, requests so far."""

    start_ms: int
    used: int


class PostedRecord(NamedTuple):
    """A record that was posted: where, its identifier, its values by field key."""

    place: CollectionKey
    ident: str
    values: tuple[tuple[str, Value], ...]


class Deletion(NamedTuple):
    """A row that was deleted: where, its place in the table, its identifier."""

    place: CollectionKey
    number: int
    ident: str


class Artefact(NamedTuple):
    """The answer as it was handed in last."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


class RuleBreach(NamedTuple):
    """Evidence of a disallowed act, noted where it happened."""

    rule: str
    evidence: str


class ApiState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has happened so far, in a form that may be compared.

    `vendors` and `sizes` (rows behind each place) are the world's, by key. `renewals` are the
    refresh tokens that work now, where the vault's was used. `refusals` are the places whose last
    reply was an error, with its status; `outages` when each vendor's last burst of 503 ends.
    """

    world: ApiWorld
    vendors: Mapping[str, Provider]
    sizes: Mapping[CollectionKey, int]
    now_ms: int = 0
    registry_read: bool = False
    homes: frozenset[str] = frozenset()
    docs: frozenset[str] = frozenset()
    secrets: frozenset[tuple[str, str]] = frozenset()
    grants: Mapping[str, Grant] = {}
    renewals: Mapping[str, Renewal] = {}
    windows: Mapping[str, RateWindow] = {}
    outages: Mapping[str, int] = {}
    fetched: Mapping[CollectionKey, int] = {}
    refusals: Mapping[CollectionKey, int] = {}
    artefact: Artefact | None = None
    records: tuple[PostedRecord, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    breaches: tuple[RuleBreach, ...] = ()

    def has_secret(self, provider: str) -> bool:
        """Return whether a working credential of `provider` was read."""
        return any(
            (provider, secret.name) in self.secrets
            for secret in self.vendors[provider].secrets
            if not secret.revoked
        )

    def has_token(self, provider: str, *, margin_ms: int = 0) -> bool:
        """Return whether a token with the right scope lives `margin_ms` longer.

        Args:
            provider: Key of the vendor.
            margin_ms: How much longer it must live, milliseconds.
        Returns: True if it does.
        """
        grant = self.grants.get(provider)
        if grant is None or self.now_ms + margin_ms >= grant.expires_ms:
            return False
        scope = self.vendors[provider].contract.auth.scope
        return not scope or scope in grant.scopes

    def refresh_token(self, provider: str, secret: Secret) -> str:
        """Return the refresh token of a vault entry that works now.

        Args:
            provider: Key of the vendor.
            secret: The vault entry.
        Returns: The newest token, or the one in the vault.
        """
        renewal = self.renewals.get(provider)
        if renewal is not None and renewal.secret == secret.name:
            return renewal.token
        return secret.value.rpartition(":")[2]

    def wait_ms(self, provider: str) -> int:
        """Return how long until `provider` takes another request, 0 for now."""
        return max(self.limit_ms(provider), self.outage_ms(provider))

    def outage_ms(self, provider: str) -> int:
        """Return how long `provider` will answer 503, 0 for not at all."""
        return max(0, self.outages.get(provider, 0) - self.now_ms)

    def limit_ms(self, provider: str) -> int:
        """Return how long until the rate limit allows another request, 0 for now."""
        window = self.windows.get(provider)
        limit = self.vendors[provider].contract.limit
        if window is None or window.used < limit.requests:
            return 0
        return max(0, window.start_ms + limit.window_ms - self.now_ms)


def initial_state(world: ApiWorld) -> ApiState:
    """Return the state in which an episode begins."""
    return ApiState(world=world, vendors=_vendors(world), sizes=_sizes(world))


def after_drift(state: ApiState, world: ApiWorld) -> ApiState:
    """Return the state after drift; what was gained stays.

    Args:
        state: The state before.
        world: The world from now on.
    Returns: The state in that world.
    """
    return msgspec.structs.replace(state, world=world, vendors=_vendors(world), sizes=_sizes(world))


def _vendors(world: ApiWorld) -> dict[str, Provider]:
    return {provider.key: provider for provider in world.providers}


def _sizes(world: ApiWorld) -> dict[CollectionKey, int]:
    return {
        (provider.key, table.resource): len(table.rows)
        for provider in world.providers
        for table in provider.tables
    }


def missing_rows(state: ApiState, place: CollectionKey) -> int:
    """Return the bits of the rows behind `place` that were never served.

    Args:
        state: The state.
        place: The collection.
    Returns: One bit a row of the table; deleted rows are not missing.
    """
    full = (1 << state.sizes.get(place, 0)) - 1
    gone = 0
    for deletion in state.deletions:
        if deletion.place == place and deletion.number >= 0:
            gone |= 1 << deletion.number
    return full & ~state.fetched.get(place, 0) & ~gone


def is_complete(state: ApiState, place: CollectionKey) -> bool:
    """Return whether every row behind `place` was served.

    Args:
        state: The state.
        place: The collection.
    Returns: True if none is missing.
    """
    return place in state.fetched and place in state.sizes and not missing_rows(state, place)


def next_start(state: ApiState, place: CollectionKey) -> int:
    """Return where the first row that was never served stands in the list.

    Args:
        state: The state.
        place: The collection.
    Returns: Its place among the rows that are left, from 0.
    """
    missing = missing_rows(state, place)
    first = (missing & -missing).bit_length() - 1
    return first - sum(
        1
        for deletion in state.deletions
        if deletion.place == place and 0 <= deletion.number < first
    )
