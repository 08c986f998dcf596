"""Provider templates: the collections and fields of a vendor, parsed from a text table.

A template holds everything that is the same for every vendor of a kind; names, paths,
pagers and credentials are drawn from it for each world. The table is indented text:

    ledger/ledger (Ledger|Books|Accounting) Keeps general ledgers.
      accounts (accounts|chart|books) Accounts of the ledger.
        id:string! (id|account_id|key) Identifier of the account.
        status:enum? (status|state) open=live|in_use closed=shut Status of the account.
      control

A vendor is `KEY/FAMILY (SUFFIXES) ABOUT`, a collection `KEY (PATHS) ABOUT`, a field `KEY:KIND
(NAMES) ABOUT`. Deeper lines continue the one above them. A collection may have flags after its key:
`unpaged`, `keyed`, and HTTP methods besides GET. A field may have marks after its kind: `!`
identifier, `?` filter, `+` writable, `^` bound. The values of an enum stand before its meaning,
each with what else it may be called. `control` stands for the control totals, which are the same
everywhere.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, get_args

from owa_bench.envs.toolquest.world import FieldKind
from owa_bench.errors import UsageError

_VENDOR = re.compile(r"(?P<key>\w+)/(?P<family>\w+) \((?P<names>[^)]+)\) (?P<about>.+)")
_COLLECTION = re.compile(r"(?P<key>\w+)(?P<flags>(?: [\w]+)*) \((?P<names>[^)]+)\) (?P<about>.+)")
_FIELD = re.compile(
    r"(?P<key>\w+):(?P<kind>[a-z]+)(?P<marks>[!?+^]*) \((?P<names>[^)]+)\)"
    r"(?P<choices>(?: \w+=[\w|]+)*) (?P<about>.+)"
)
_FLAGS = ("unpaged", "keyed", "POST", "DELETE")
_DEPTH = 4  # columns of indentation of a field; a deeper line is a continuation


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

    def resource(self, key: str) -> ResourceTemplate:
        """Return the collection of a key."""
        return next(resource for resource in self.resources if resource.key == key)

    def without_resource(self, key: str) -> "ProviderTemplate":
        """Return the template without one collection."""
        return self._replace(resources=tuple(r for r in self.resources if r.key != key))

    def without_field(self, resource_key: str, field_key: str) -> "ProviderTemplate":
        """Return the template without one field.

        Args:
            resource_key: The collection that has the field.
            field_key: The field to leave out.
        Returns: The same vendor; its other collections are unchanged.
        """
        resources = tuple(
            r._replace(fields=tuple(f for f in r.fields if f.key != field_key))
            if r.key == resource_key
            else r
            for r in self.resources
        )
        return self._replace(resources=resources)


def parse(text: str) -> tuple[ProviderTemplate, ...]:
    """Return the vendors of a table in the form that the module describes.

    Raises: UsageError: A line has another form, or a field stands outside a collection.
    """
    vendors: list[ProviderTemplate] = []
    for depth, line in _logical_lines(text):
        if depth == 0:
            found = _matched(_VENDOR, line, "KEY/FAMILY (SUFFIXES) ABOUT")
            names = tuple(found["names"].split("|"))
            vendors.append(
                ProviderTemplate(found["key"], found["family"], names, found["about"], ())
            )
            continue
        resources = vendors[-1].resources if vendors else ()
        if not vendors or (depth == _DEPTH and not resources):
            raise UsageError(f"`{line}` needs a collection above it, or a vendor.")
        if depth < _DEPTH:
            resources += (CONTROL if line == "control" else _collection(line),)
        else:
            last = resources[-1]
            fields = (*last.fields, _field(line))
            resources = (*resources[:-1], last._replace(fields=fields))
        vendors[-1] = vendors[-1]._replace(resources=resources)
    return tuple(vendors)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield indentation and words of each line, continuations joined to it."""
    pending: tuple[int, str] | None = None
    for raw in text.splitlines():
        if not raw.strip():
            continue
        depth, line = len(raw) - len(raw.lstrip()), raw.strip()
        if depth > _DEPTH and pending is not None:
            pending = (pending[0], f"{pending[1]} {line}")
            continue
        if pending is not None:
            yield pending
        pending = (depth, line)
    if pending is not None:
        yield pending


def _matched(pattern: re.Pattern[str], line: str, form: str) -> re.Match[str]:
    match = pattern.fullmatch(line)
    if match is None:
        raise UsageError(f"A provider template needs lines `{form}`, got `{line}`.")
    return match


def _collection(line: str) -> ResourceTemplate:
    found = _matched(_COLLECTION, line, "KEY FLAGS (PATHS) ABOUT")
    flags = found["flags"].split()
    if wrong := [flag for flag in flags if flag not in _FLAGS]:
        known = ", ".join(_FLAGS)
        raise UsageError(f"A flag of a collection is one of {known}, got `{wrong[0]}`.")
    return ResourceTemplate(
        key=found["key"],
        about=found["about"],
        slugs=tuple(found["names"].split("|")),
        fields=(),
        methods=("GET", *(flag for flag in flags if flag.isupper())),
        paged="unpaged" not in flags,
        keyed="keyed" in flags,
    )


def _field(line: str) -> FieldTemplate:
    found = _matched(_FIELD, line, "KEY:KIND (NAMES) CHOICES ABOUT")
    kinds: dict[str, FieldKind] = {kind: kind for kind in get_args(FieldKind)}
    if found["kind"] not in kinds:
        known = ", ".join(kinds)
        raise UsageError(f"A field is of the kind {known}, got `{line}`.")
    marks = found["marks"]
    return FieldTemplate(
        key=found["key"],
        names=tuple(found["names"].split("|")),
        kind=kinds[found["kind"]],
        about=found["about"],
        filterable="!" in marks or "?" in marks,
        writable="+" in marks,
        identifier="!" in marks,
        bound="^" in marks,
        choices=tuple(
            (value, *aliases.split("|"))
            for value, aliases in (part.split("=") for part in found["choices"].split())
        ),
    )


CONTROL = ResourceTemplate(
    "control",
    "Control totals of the vendor's own bookkeeping.",
    ("control-totals", "checksums", "totals", "audit/totals", "control"),
    (
        _field("list:string (list|collection|of) Name of the list."),
        _field("count:integer (count|rows|records) Rows in the list."),
        _field(
            "total:integer (total|sum|control_sum)"
            " Sum of the list's amounts, always in whole cents."
        ),
    ),
    paged=False,
)
