"""Providers drawn from templates: titles, contracts, credentials, and their documents.

The last third of every vocabulary is held out: no practice world holds a word of it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.envs.toolquest import world as api
from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.provider_templates import (
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import SourceRows

STEMS = (
    "Halden", "Quillon", "Merrow", "Tarven", "Osmund", "Brixel", "Calder", "Dorvane",
    "Elbrook", "Fenwick", "Garrow", "Hollin", "Istrel", "Jarnow", "Kelmar", "Lorvik",
    "Mandel", "Norvall", "Ostrel", "Pellan", "Quarrel", "Rendal", "Sorvin", "Tessel",
    "Ulvern", "Vandor", "Wexley", "Yarrow", "Zendal", "Ambrel", "Boldan", "Corvell",
    "Dunmar", "Estven", "Farrel", "Gilmor", "Harken", "Ivoran", "Jolwin", "Kestrel",
)  # fmt: skip
_VOWELS = "aeiou"
SUCCESSOR_SUFFIXES = ("Cloud", "Online", "Nova")
_HEADERS = ("X-Api-Key", "X-Access-Key", "Api-Token", "X-Vendor-Key")
PARAMETERS = ("api_key", "access_key", "token", "auth_key")
_TOKEN_PATHS = ("/oauth/token", "/auth/token", "/token", "/oauth2/token")
_PREFIXES = ("/v1", "/v2", "/api", "/api/v1", "/rest", "/service/v3")
PARAMETERS_TO_COME = (
    api.Parameter(name="api_version", value="2031-04", about="Dated version of the API."),
    api.Parameter(name="projection", value="complete", about="Which fields rows have."),
    api.Parameter(name="consistency", value="strong", about="How fresh rows must be."),
    api.Parameter(name="channel", value="machine", about="Who reads the reply."),
    api.Parameter(name="revision", value="second", about="Revision of the collection."),
    api.Parameter(name="audience", value="partner", about="For whom the rows are."),
)


class TierTerms(NamedTuple):
    """The terms of a tier: kinds of proof, limits and page sizes of every vendor.

    `requests` and `page` are ranges, `lifetime_ms` is that of an access token.
    """

    auth: tuple[api.AuthKind, ...]
    requests: tuple[int, int]
    window_ms: int
    lifetime_ms: int
    page: tuple[int, int]


def draw_provider(
    draws: IntegerDraws,
    template: ProviderTemplate,
    names: Sequence[str],
    terms: TierTerms,
    tables: Mapping[str, SourceRows],
) -> api.Provider:
    """Return a vendor with a drawn contract and documents that tell the truth.

    Args:
        draws: Small integers.
        template: The kind of vendor.
        names: Its title and those of vendors that could take over.
        terms: What the tier asks of every vendor.
        tables: Its rows by collection.
    Returns: The vendor before any drift.
    """
    title, *successors = names
    slug = _slug(title)
    kinds = draws.allowed(terms.auth)
    auth = _auth(draws, template, draws.pick(kinds), terms)
    others = [kind for kind in dict.fromkeys(kinds) if kind != auth.kind]
    prefix = draws.word(_PREFIXES)
    unit: api.Unit = "cents" if draws.coin() else "dollars"
    contract = api.Contract(
        auth=auth,
        limit=api.Limit(requests=draws.between(*terms.requests), window_ms=terms.window_ms),
        resources=tuple(
            _resource(draws, resource, prefix, terms, unit) for resource in template.resources
        ),
        problems=draws.coin(),
        dated=draws.coin(),
        counted=draws.coin(),
    )
    return api.Provider(
        key=template.key,
        host=f"{slug}.example",
        title=title,
        family=template.family,
        contract=contract,
        documented=contract,
        original=contract,
        tables=tuple(_table(template.resource(key), rows) for key, rows in tables.items()),
        secrets=(_secret(draws, slug, title, auth),),
        other_auths=tuple(_auth(draws, template, kind, terms) for kind in others),
        successors=tuple(
            api.Successor(
                title=other,
                host=f"{_slug(other)}.example",
                family=successor_family(template.family),
            )
            for other in successors
        ),
    )


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def with_unserved_field(provider: api.Provider, resource_key: str) -> api.Provider:
    """Return the vendor with documents that list a field which is not served.

    Args:
        provider: The vendor.
        resource_key: The collection whose documents list it.
    Returns: The vendor; what it serves is unchanged.
    """
    resource = provider.documented.resource(resource_key)
    field = api.Field(
        key="legacy_note",
        name="legacy_note",
        kind="string",
        about="Free text of the vendor's staff.",
    )
    listed = replace(resource, fields=(*resource.fields, field))
    return replace(provider, documented=provider.documented.with_resource(listed))


def with_old_documents(draws: IntegerDraws, provider: api.Provider) -> api.Provider:
    """Return the vendor with documents in which a path and some names are old.

    Args:
        draws: Small integers.
        provider: The vendor.
    Returns: The vendor; its documents are frozen, so that later changes do not reach them.
    """
    documented = provider.documented
    for resource in documented.resources:
        fields = list(resource.fields)
        for i in draws.sample(range(len(fields)), min(2, len(fields))):
            taken = {field.name for field in (*fields, *resource.fields)}
            if free := [name for name in fields[i].aliases if name not in taken]:
                name = draws.pick(free)
                fields[i] = replace(fields[i], name=name)
        old = replace(resource, fields=tuple(fields))
        documented = documented.with_resource(old)
    moved = draws.pick([r for r in documented.resources if r.other_paths])
    path = draws.pick(moved.other_paths)
    documented = documented.with_resource(replace(documented.resource(moved.key), path=path))
    return replace(provider, documented=documented, docs_frozen=True)


def _auth(
    draws: IntegerDraws, template: ProviderTemplate, kind: api.AuthKind, terms: TierTerms
) -> api.Auth:
    if kind == "basic":
        return api.Auth(kind=kind)
    if kind == "key_header":
        return api.Auth(kind=kind, name=draws.word(_HEADERS))
    if kind == "key_query":
        return api.Auth(kind=kind, name=draws.word(PARAMETERS))
    return api.Auth(
        kind=kind,
        token_path=draws.word(_TOKEN_PATHS),
        scope=f"{template.family}.{draws.word(('access', 'use', 'full'))}",
        lifetime_ms=terms.lifetime_ms,
    )


# Last word of the name and meaning of a credential; an API key where there is none.
_SECRETS = {
    "basic": ("user", "User of {}, as user:password."),
    "oauth2": ("client", "OAuth2 client of {}, as client_id:client_secret."),
    "refresh": ("grant", "OAuth2 grant of {}, as client_id:client_secret:refresh_token."),
}


def _secret(draws: IntegerDraws, slug: str, title: str, auth: api.Auth) -> api.Secret:
    name = slug.replace("-", "_")
    value = f"{name}-{draws.letters(6)}:{draws.letters(28)}"
    kind, about = _SECRETS.get(auth.kind, ("key", "API key of {}."))
    if kind == "grant":
        value += f":{draws.letters(28)}"
    elif kind == "key":
        value = draws.letters(28)
    return api.Secret(name=f"{name}_{kind}", value=value, about=about.format(title))


def _resource(
    draws: IntegerDraws, template: ResourceTemplate, prefix: str, terms: TierTerms, unit: api.Unit
) -> api.ApiResource:
    slugs = draws.shuffled(draws.allowed(template.slugs))
    wrappers, pagers = draws.allowed(api.WRAPPERS), draws.allowed(api.PAGERS)
    wrapper = draws.pick(wrappers)
    pager = api.Pager(kind="none")
    if template.paged:
        kinds = [kind for kind in pagers if wrapper or kind != "cursor"]
        pager = api.Pager(kind=draws.pick(kinds), size=draws.between(*terms.page))
    order = draws.shuffled([field.key for field in template.fields])
    return api.ApiResource(
        key=template.key,
        path=f"{prefix}/{slugs[0]}",
        about=template.about,
        fields=tuple(_field(draws, field, unit) for field in template.fields),
        wrapper=wrapper,
        pager=pager,
        methods=template.methods,
        other_paths=tuple(f"{prefix}/{slug}" for slug in slugs[1:]),
        other_parameters=tuple(draws.sample(draws.allowed(PARAMETERS_TO_COME), 3)),
        other_wrappers=tuple(wrappers),
        other_pagers=tuple(pagers),
        order=tuple(order),
        keyed=template.keyed,
    )


def _field(draws: IntegerDraws, template: FieldTemplate, unit: api.Unit) -> api.Field:
    names = tuple(draws.allowed(template.names))
    first = draws.below(len(names))
    money = template.kind == "money"
    return api.Field(
        key=template.key,
        name=names[first],
        kind=template.kind,
        about=template.about,
        unit=unit if money else "",
        filterable=template.filterable,
        writable=template.writable,
        aliases=names[:first] + names[first + 1 :],
        decimal=money and draws.percent(30),
        choices=tuple(
            api.Choice(value=value, name=value, aliases=tuple(draws.allowed(others)))
            for value, *others in template.choices
        ),
        identifier=template.identifier,
        bound=template.bound,
    )


def _table(template: ResourceTemplate, rows: SourceRows) -> api.Table:
    columns = tuple(field.key for field in template.fields)
    return api.Table(
        resource=template.key,
        columns=columns,
        rows=tuple(tuple(row[column] for column in columns) for row in rows),
    )


def titles(draws: IntegerDraws, suffixes: Sequence[Sequence[str]]) -> list[str]:
    """Return a title per vendor, each with a stem of its own.

    Args:
        draws: Small integers.
        suffixes: The second words that each vendor may have.
    Returns: Titles such as "Halden Ledger".
    """
    stems = draws.sample(draws.allowed(STEMS), len(suffixes))
    return [f"{stem} {draws.word(words)}" for stem, words in zip(stems, suffixes, strict=True)]


def lookalikes(draws: IntegerDraws, title: str, suffixes: Sequence[str]) -> list[str]:
    """Return two titles that are easily taken for another one.

    Args:
        draws: Small integers.
        title: The title to resemble.
        suffixes: The second words that its vendor may have.
    Returns: One with another vowel, and one with another suffix.
    """
    stem, suffix = title.split(" ")
    places = [i for i, letter in enumerate(stem) if letter in _VOWELS]
    place = draws.pick(places)
    vowel = draws.pick([v for v in _VOWELS if v != stem[place]])
    other = draws.pick([s for s in draws.allowed(suffixes) if s != suffix])
    return [f"{stem[:place]}{vowel}{stem[place + 1 :]} {suffix}", f"{stem} {other}"]


def successor_family(family: str) -> str:
    """Return the vendor family that arrives when vendors of `family` retire."""
    return f"{family}-cloud"
