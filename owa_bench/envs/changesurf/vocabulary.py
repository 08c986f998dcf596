"""Every field and option a site can have, in canonical words."""

from collections.abc import Iterator

from owa_bench.worlds.site import SiteSpec

_SYSTEM = (
    "token",
    "user",
    "password",
    "code",
    "q",
    "page",
    "category",
    "trap",
    "offer",
)
_PARTS = ("day", "month", "year")
_DAYS, _MONTHS = range(1, 32), range(1, 13)
_FEW = 12


def field_refs(spec: SiteSpec) -> tuple[str, ...]:
    """Return the reference of every field that a form may send."""
    made = [f"sys:{name}" for name in _SYSTEM]
    for workflow in spec.workflows:
        for slot in workflow.slots:
            made.append(f"{workflow.key}.{slot.key}")
            if slot.kind == "date":
                made += [f"{workflow.key}.{slot.key}/{part}" for part in _PARTS]
    return tuple(made)


def closed_refs(spec: SiteSpec) -> frozenset[str]:
    """Return the fields that take one of their options and nothing else."""
    made = {"sys:offer"}
    for workflow in spec.workflows:
        for slot in workflow.slots:
            ref = f"{workflow.key}.{slot.key}"
            if slot.kind == "choice":
                made.add(ref)
            if slot.kind == "date":
                made.update(f"{ref}/{part}" for part in _PARTS)
    return frozenset(made)


def value_refs(spec: SiteSpec) -> tuple[str, ...]:
    """Return the reference of every option that a form may send."""
    return tuple(_values(spec))


def _values(spec: SiteSpec) -> Iterator[str]:
    yield from ("sys:offer=yes", "sys:offer=no")
    for collection in spec.collections:
        if collection.category:
            table = spec.table(collection.key)
            place = table.columns.index(collection.category)
            for name in sorted({str(row[place]) for row in table.rows}):
                yield f"{collection.key}={name}"
    for workflow in spec.workflows:
        for slot in workflow.slots:
            ref = f"{workflow.key}.{slot.key}"
            yield from (f"{ref}={option.value}" for option in slot.options)
            if slot.kind == "check" and not slot.options:
                yield f"{ref}=yes"
            if slot.kind == "number" and slot.most - slot.least < _FEW:
                yield from (f"{ref}={n}" for n in range(slot.least, slot.most + 1))
            if slot.kind == "date":
                yield from _date_values(ref, int(spec.today[:4]))


def _date_values(ref: str, year: int) -> Iterator[str]:
    yield from (f"{ref}/day={n}" for n in _DAYS)
    yield from (f"{ref}/month={n}" for n in _MONTHS)
    yield from (f"{ref}/year={year + n}" for n in (-1, 0, 1))
