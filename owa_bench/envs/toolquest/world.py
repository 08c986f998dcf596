"""API worlds: providers with contracts, documents, data and secrets, and the goal.

All values are integers, strings and booleans, so that equal worlds have equal bytes. Money is
stored in cents whatever the wire shows; dates are ISO strings. Everything an operator may change is
found by canonical keys that no operator changes: provider key, resource key, field key.
"""

from functools import lru_cache
from typing import Any, Literal

import msgspec

from owa_bench.canonical import record_digest, sha256
from owa_bench.drift.targets import jaccard_distance

Value = str | int | bool
FieldKind = Literal["string", "integer", "money", "date", "enum", "boolean"]
Unit = Literal["", "cents", "dollars"]
Style = Literal["plain", "upper", "urn", "joined"]
PagerKind = Literal["none", "offset", "page", "cursor", "link"]
AuthKind = Literal["none", "key_header", "key_query", "basic", "oauth2", "refresh"]

PAGERS: tuple[PagerKind, ...] = ("offset", "page", "cursor", "link")
STYLES: tuple[Style, ...] = ("plain", "upper", "urn", "joined")
OTHER_UNITS: dict[str, Unit] = {"cents": "dollars", "dollars": "cents"}
# Where a list may be in a reply, as a dotted path; "" is a bare array.
WRAPPERS = ("", "data", "items", "results", "payload.rows", "response.list")


class Choice(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A value of an enum: canonical, on the wire, and what else it could be called."""

    value: str
    name: str
    aliases: tuple[str, ...] = ()


class Field(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A field of a resource: canonical key, name on the wire, meaning, unit.

    `aliases` are other names it could go by: operators pick from them, nothing serves or documents
    them. `decimal` money is text on the wire, such as "12.50". `choices` are the values of an enum,
    the one that matters most first. `identifier` fields name rows and go by a `style`. `bound`
    marks a date that ends where the next row begins; it is served `shift` days off.
    """

    key: str
    name: str
    kind: FieldKind
    about: str
    unit: Unit = ""
    filterable: bool = False
    writable: bool = False
    aliases: tuple[str, ...] = ()
    decimal: bool = False
    choices: tuple[Choice, ...] = ()
    identifier: bool = False
    style: Style = "plain"
    bound: bool = False
    shift: int = 0


class Parameter(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A query parameter that a list cannot be had without, and its only value."""

    name: str
    value: str
    about: str


class Former(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A path where a collection was: served on (200), moved (301, 308), gone (410)."""

    path: str
    status: int


class Pager(msgspec.Struct, frozen=True, kw_only=True):
    """How a list is cut into pages; `size` is the largest page the server gives."""

    kind: PagerKind
    size: int = 50


class ApiResource(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A collection: where it lives, its fields, wrapper, pager and methods.

    `wrapper` is the dotted path to the list in a reply, "" for a bare list. `other_paths` are
    places it could move to and `other_parameters` what it could come to require, `other_wrappers`
    and `other_pagers` what it could use (empty: any); nothing serves or documents them. `formers`
    are the paths it had before. `order` is the order in which rows give their fields, "" for the
    documented one. `sunset` is the day on which it will be switched off, "" for none. `keyed`:
    records are taken only under an idempotency key.
    """

    key: str
    path: str
    about: str
    fields: tuple[Field, ...]
    wrapper: str = ""
    pager: Pager = Pager(kind="none")
    methods: tuple[str, ...] = ("GET",)
    other_paths: tuple[str, ...] = ()
    required: tuple[Parameter, ...] = ()
    other_parameters: tuple[Parameter, ...] = ()
    formers: tuple[Former, ...] = ()
    order: tuple[str, ...] = ()
    other_wrappers: tuple[str, ...] = ()
    other_pagers: tuple[PagerKind, ...] = ()
    sunset: str = ""
    keyed: bool = False

    def field(self, key: str) -> Field:
        """Return the field of canonical key `key`; KeyError if there is none."""
        for field in self.fields:
            if field.key == key:
                return field
        raise KeyError(key)


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    """How a caller proves itself. `name` is the header or query parameter."""

    kind: AuthKind
    name: str = "Authorization"
    token_path: str = ""
    scope: str = ""
    lifetime_ms: int = 0


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """At most `requests` per window of simulated time."""

    requests: int
    window_ms: int


class Contract(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a provider's API is (or what its documents say it is).

    `problems`: errors are RFC 9457 problem+json. `dated`: Retry-After is a date. `counted`: replies
    carry RateLimit headers. `outages` of 100 requests begin a burst of 503.
    """

    auth: Auth
    limit: Limit
    resources: tuple[ApiResource, ...]
    changelog: tuple[str, ...] = ()
    problems: bool = False
    dated: bool = False
    counted: bool = False
    outages: int = 0

    def resource(self, key: str) -> ApiResource:
        """Return the resource of canonical key `key`; KeyError if there is none."""
        for resource in self.resources:
            if resource.key == key:
                return resource
        raise KeyError(key)

    def with_resource(self, resource: ApiResource) -> "Contract":
        """Return this contract with one resource replaced, by key."""
        return msgspec.structs.replace(
            self,
            resources=tuple(resource if old.key == resource.key else old for old in self.resources),
        )


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the vault. A revoked one still lies there and no longer works.

    `value` is an API key, "user:password" for Basic, "client_id:client_secret" for OAuth2, with
    ":refresh_token" where that is the grant.
    """

    name: str
    value: str
    about: str
    revoked: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Rows behind a resource; `columns` are field keys, values canonical."""

    resource: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


class Successor(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor that could take over another one's business: title, host, family."""

    title: str
    host: str
    family: str


class FormerHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that a vendor has left: 301 and 308 lead on, 410 only says where to."""

    host: str
    title: str
    status: int


class Provider(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One vendor: `contract` is served, `documented` is what its pages say.

    `original` is the contract before any drift. Once `docs_frozen` is set, changes no longer reach
    `documented`. `family` is the line of business of the vendor. `undocumented`: no API
    description is served. `other_auths` and `successors` are what it could change to; nothing
    serves or documents them.
    """

    key: str
    host: str
    title: str
    family: str
    contract: Contract
    documented: Contract
    original: Contract
    tables: tuple[Table, ...]
    secrets: tuple[Secret, ...]
    docs_frozen: bool = False
    distractor: bool = False
    undocumented: bool = False
    other_auths: tuple[Auth, ...] = ()
    successors: tuple[Successor, ...] = ()
    former_hosts: tuple[FormerHost, ...] = ()

    def table(self, resource: str) -> Table:
        """Return the rows behind a resource, by key; KeyError if there are none."""
        for table in self.tables:
            if table.resource == resource:
                return table
        raise KeyError(resource)


class Proposition(msgspec.Struct, frozen=True, kw_only=True):
    """A question about the world with its truth, which only the oracle reads.

    `subject` is what it is about, in canonical keys; `negated` says that `text` claims the opposite
    of the fact that the kind names.
    """

    name: str
    kind: str
    text: str
    truth: bool
    subject: tuple[str, ...] = ()
    negated: bool = False


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The task in words and for machines; `spec` is JSON text of the latter.

    `family` is the plain family, also for a honeypot.
    """

    family: str
    text: str
    spec: str


class ApiWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an episode of ToolQuest happens in.

    `entry` are the addresses the brief names. `expected` is the answer: column names and rows of
    the artefact for reads; `writes` are the records that must exist in the end, as (provider,
    resource, columns, rows), and the only ones that may be written. `needed` are the (provider,
    resource) pairs that the answer rests on, in order of use. `registry` is the address of the
    service registry, "" without one.
    """

    goal: Goal
    tier: int
    providers: tuple[Provider, ...]
    entry: tuple[str, ...]
    expected_columns: tuple[str, ...] = ()
    expected_rows: tuple[tuple[Value, ...], ...] = ()
    writes: tuple[tuple[str, str, tuple[str, ...], tuple[tuple[Value, ...], ...]], ...]
    needed: tuple[tuple[str, str], ...]
    propositions: tuple[Proposition, ...]
    honeypot: bool = False
    registry: str = ""

    def provider(self, key: str) -> Provider:
        """Return the provider of canonical key `key`; KeyError if there is none."""
        for provider in self.providers:
            if provider.key == key:
                return provider
        raise KeyError(key)

    def digest(self) -> str:
        """Return the SHA-256 that names this world in traces.

        Taken over the digests of the providers and of the rest, so that a chain of changes hashes
        only what changed.
        """
        rest = record_digest(msgspec.structs.replace(self, providers=()))
        parts = (rest, *(_provider_digest(provider) for provider in self.providers))
        return sha256("|".join(parts).encode())

    def with_provider(self, provider: Provider) -> "ApiWorld":
        """Return this world with one provider replaced, by key."""
        return msgspec.structs.replace(
            self,
            providers=tuple(provider if old.key == provider.key else old for old in self.providers),
        )


@lru_cache(maxsize=256)
def _provider_digest(provider: Provider) -> str:
    return record_digest(provider)


def distance(a: ApiWorld, b: ApiWorld) -> float:
    """Return the share of contract, document and secret facts in which worlds differ.

    Args:
        a: one world.
        b: the other.
    Returns: The Jaccard distance of their fact sets: 0 for equal worlds, 1 when nothing is shared.
        Data rows and goals do not count.
    """
    return jaccard_distance(_atoms(a), _atoms(b))


def _atoms(world: ApiWorld) -> set[tuple[Any, ...]]:
    """Return the comparable facts of a world, data rows and goal left out."""
    atoms: set[tuple[Any, ...]] = set()
    for provider in world.providers:
        for side in ("contract", "documented"):
            contract: Contract = getattr(provider, side)
            base = (provider.key, side)
            atoms.add((*base, "auth", contract.auth))
            atoms.add((*base, "limit", contract.limit, contract.outages))
            for resource in contract.resources:
                place = (*base, resource.key)
                atoms.add((*place, "path", resource.path))
                atoms.add((*place, "wrapper", resource.wrapper))
                atoms.add((*place, "pager", resource.pager))
                atoms.add((*place, "asks", resource.required, resource.sunset))
                atoms.add((*place, "formers", resource.formers))
                atoms.update((*place, field) for field in resource.fields)
        atoms.update((provider.key, secret) for secret in provider.secrets)
        atoms.add((provider.key, "host", provider.host, provider.former_hosts))
    return atoms
