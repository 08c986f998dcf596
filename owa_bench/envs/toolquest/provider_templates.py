"""What vendors of a family look like, and how one is drawn from its blueprint."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from owa_bench.envs.toolquest import vocabulary
from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.worlds.api import (
    PAGERS,
    WRAPPERS,
    ApiResource,
    Auth,
    AuthKind,
    Choice,
    Contract,
    Field,
    FieldKind,
    Limit,
    Pager,
    Parameter,
    Provider,
    Secret,
    Successor,
    Table,
    Unit,
    Value,
)

Row = Mapping[str, Value]
Rows = Sequence[Row]

_HEADERS = ("X-Api-Key", "X-Access-Key", "Api-Token", "X-Vendor-Key")
PARAMETERS = ("api_key", "access_key", "token", "auth_key")
_TOKEN_PATHS = ("/oauth/token", "/auth/token", "/token", "/oauth2/token")
_PREFIXES = ("/v1", "/v2", "/api", "/api/v1", "/rest", "/service/v3")
PARAMETERS_TO_COME = (
    Parameter(name="api_version", value="2031-04", about="Dated version of the API."),
    Parameter(name="projection", value="complete", about="Which fields rows have."),
    Parameter(name="consistency", value="strong", about="How fresh rows must be."),
    Parameter(name="channel", value="machine", about="Who reads the reply."),
    Parameter(name="revision", value="second", about="Revision of the collection."),
    Parameter(name="audience", value="partner", about="For whom the rows are."),
)


class FieldTemplate(NamedTuple):
    """A field before its name is drawn: `names` are all it may go by.

    `choices` are the values of an enum, each followed by what else it may be called.
    """

    key: str
    names: tuple[str, ...]
    kind: FieldKind
    about: str
    filterable: bool = False
    writable: bool = False
    identifier: bool = False
    bound: bool = False
    choices: tuple[tuple[str, ...], ...] = ()


class ResourceTemplate(NamedTuple):
    """A collection before its path, wrapper and pager are drawn."""

    key: str
    about: str
    slugs: tuple[str, ...]
    fields: tuple[FieldTemplate, ...]
    methods: tuple[str, ...] = ("GET",)
    paged: bool = True
    keyed: bool = False


class ProviderTemplate(NamedTuple):
    """A vendor before its name and contract are drawn."""

    key: str
    family: str
    suffixes: tuple[str, ...]
    about: str
    resources: tuple[ResourceTemplate, ...]


class TierTerms(NamedTuple):
    """What a tier asks of every vendor."""

    auth: tuple[AuthKind, ...]
    requests: tuple[int, int]
    window_ms: int
    lifetime_ms: int
    page: tuple[int, int]


CONTROL = ResourceTemplate(
    "control",
    "Control totals of the vendor's own bookkeeping.",
    ("control-totals", "checksums", "totals", "audit/totals", "control"),
    (
        FieldTemplate(
            "list", ("list", "collection", "of"), "string", "Name of the list."
        ),
        FieldTemplate(
            "count", ("count", "rows", "records"), "integer", "Rows in the list."
        ),
        FieldTemplate(
            "total",
            ("total", "sum", "control_sum"),
            "integer",
            "Sum of the list's amounts, always in whole cents.",
        ),
    ),
    paged=False,
)


def vendor(
    draws: IntegerDraws,
    plan: ProviderTemplate,
    names: Sequence[str],
    terms: TierTerms,
    tables: Mapping[str, Rows],
) -> Provider:
    """Return a vendor with a drawn contract, honest documents and the given rows.

    `names` are its title and those of vendors that could take over.
    """
    title, *heirs = names
    slug = _slug(title)
    kinds = draws.known(terms.auth)
    auth = _auth(draws, plan, draws.pick(kinds), terms)
    others = [kind for kind in dict.fromkeys(kinds) if kind != auth.kind]
    prefix = draws.word(_PREFIXES)
    unit: Unit = "cents" if draws.coin() else "dollars"
    contract = Contract(
        auth=auth,
        limit=Limit(requests=draws.between(*terms.requests), window_ms=terms.window_ms),
        resources=tuple(
            _resource(draws, resource, prefix, terms, unit)
            for resource in plan.resources
        ),
        problems=draws.coin(),
        dated=draws.coin(),
        counted=draws.coin(),
    )
    family = vocabulary.heir(plan.family).family
    return Provider(
        key=plan.key,
        host=f"{slug}.example",
        title=title,
        family=plan.family,
        contract=contract,
        documented=contract,
        original=contract,
        tables=tuple(_table(plan, key, rows) for key, rows in tables.items()),
        secrets=(_secret(draws, slug, title, auth),),
        other_auths=tuple(_auth(draws, plan, kind, terms) for kind in others),
        successors=tuple(
            Successor(title=heir, host=f"{_slug(heir)}.example", family=family)
            for heir in heirs
        ),
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def with_lag(provider: Provider, resource_key: str) -> Provider:
    """Return the vendor with documents that list a field which is not served."""
    resource = provider.documented.resource(resource_key)
    ghost = Field(
        key="legacy_note",
        name="legacy_note",
        kind="string",
        about="Free text of the vendor's staff.",
    )
    lagging = msgspec.structs.replace(resource, fields=(*resource.fields, ghost))
    return msgspec.structs.replace(
        provider, documented=provider.documented.with_resource(lagging)
    )


def outdated(draws: IntegerDraws, provider: Provider) -> Provider:
    """Return the vendor with documents of another day: a path and some names are old.

    They are frozen: later changes do not reach them either.
    """
    documented = provider.documented
    for resource in documented.resources:
        fields = list(resource.fields)
        for i in draws.sample(range(len(fields)), min(2, len(fields))):
            taken = {field.name for field in (*fields, *resource.fields)}
            free = [name for name in fields[i].aliases if name not in taken]
            if free:
                name = draws.pick(free)
                fields[i] = msgspec.structs.replace(fields[i], name=name)
        old = msgspec.structs.replace(resource, fields=tuple(fields))
        documented = documented.with_resource(old)
    moved = draws.pick([r for r in documented.resources if r.other_paths])
    path = draws.pick(moved.other_paths)
    documented = documented.with_resource(
        msgspec.structs.replace(documented.resource(moved.key), path=path)
    )
    return msgspec.structs.replace(provider, documented=documented, docs_frozen=True)


def without_resource(provider: Provider, resource_key: str) -> Provider:
    """Return the vendor as if it had never had the resource."""
    tables = tuple(t for t in provider.tables if t.resource != resource_key)
    contract, documented = (
        msgspec.structs.replace(
            side, resources=tuple(r for r in side.resources if r.key != resource_key)
        )
        for side in (provider.contract, provider.documented)
    )
    return msgspec.structs.replace(
        provider,
        contract=contract,
        documented=documented,
        original=contract,
        tables=tables,
    )


def control_rows(lists: Mapping[str, Sequence[Value]]) -> Rows:
    """Return the control totals of lists of amounts in cents."""
    return [
        {"list": name, "count": len(amounts), "total": sum(map(int, amounts))}
        for name, amounts in lists.items()
    ]


def _auth(
    draws: IntegerDraws, plan: ProviderTemplate, kind: AuthKind, terms: TierTerms
) -> Auth:
    if kind == "basic":
        return Auth(kind=kind)
    if kind == "key_header":
        return Auth(kind=kind, name=draws.word(_HEADERS))
    if kind == "key_query":
        return Auth(kind=kind, name=draws.word(PARAMETERS))
    return Auth(
        kind=kind,
        token_path=draws.word(_TOKEN_PATHS),
        scope=f"{plan.family}.{draws.word(('access', 'use', 'full'))}",
        lifetime_ms=terms.lifetime_ms,
    )


def _secret(draws: IntegerDraws, slug: str, title: str, auth: Auth) -> Secret:
    name = slug.replace("-", "_")
    pair = f"{name}-{draws.letters(6)}:{draws.letters(28)}"
    if auth.kind == "basic":
        about = f"User of {title}, as user:password."
        return Secret(name=f"{name}_user", value=pair, about=about)
    if auth.kind == "oauth2":
        about = f"OAuth2 client of {title}, as client_id:client_secret."
        return Secret(name=f"{name}_client", value=pair, about=about)
    if auth.kind == "refresh":
        form = "client_id:client_secret:refresh_token"
        return Secret(
            name=f"{name}_grant",
            value=f"{pair}:{draws.letters(28)}",
            about=f"OAuth2 grant of {title}, as {form}.",
        )
    return Secret(
        name=f"{name}_key", value=draws.letters(28), about=f"API key of {title}."
    )


def _resource(
    draws: IntegerDraws,
    plan: ResourceTemplate,
    prefix: str,
    terms: TierTerms,
    unit: Unit,
) -> ApiResource:
    slugs = draws.shuffled(draws.known(plan.slugs))
    wrappers, pagers = draws.known(WRAPPERS), draws.known(PAGERS)
    wrapper = draws.pick(wrappers)
    pager = Pager(kind="none")
    if plan.paged:
        kinds = [kind for kind in pagers if wrapper or kind != "cursor"]
        pager = Pager(kind=draws.pick(kinds), size=draws.between(*terms.page))
    order = draws.shuffled([field.key for field in plan.fields])
    return ApiResource(
        key=plan.key,
        path=f"{prefix}/{slugs[0]}",
        about=plan.about,
        fields=tuple(_field(draws, field, unit) for field in plan.fields),
        wrapper=wrapper,
        pager=pager,
        methods=plan.methods,
        other_paths=tuple(f"{prefix}/{slug}" for slug in slugs[1:]),
        other_parameters=tuple(draws.sample(draws.known(PARAMETERS_TO_COME), 3)),
        other_wrappers=tuple(wrappers),
        other_pagers=tuple(pagers),
        order=tuple(order),
        keyed=plan.keyed,
    )


def _field(draws: IntegerDraws, plan: FieldTemplate, unit: Unit) -> Field:
    names = tuple(draws.known(plan.names))
    first = draws.below(len(names))
    money = plan.kind == "money"
    return Field(
        key=plan.key,
        name=names[first],
        kind=plan.kind,
        about=plan.about,
        unit=unit if money else "",
        filterable=plan.filterable,
        writable=plan.writable,
        aliases=names[:first] + names[first + 1 :],
        decimal=money and draws.percent(30),
        choices=tuple(
            Choice(value=value, name=value, aliases=tuple(draws.known(others)))
            for value, *others in plan.choices
        ),
        identifier=plan.identifier,
        bound=plan.bound,
    )


def _table(plan: ProviderTemplate, key: str, rows: Rows) -> Table:
    resource = next(r for r in plan.resources if r.key == key)
    columns = tuple(field.key for field in resource.fields)
    return Table(
        resource=key,
        columns=columns,
        rows=tuple(tuple(row[column] for column in columns) for row in rows),
    )
