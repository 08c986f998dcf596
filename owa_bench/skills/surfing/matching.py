"""Which field of a form each argument of a goal goes into."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from owa_bench.skills import lexicon, matching
from owa_bench.skills.clerk.habits import Habits
from owa_bench.skills.surfing.fields import Field, shape, takes, told_form

_OFFERED = 2.0  # a value that stands among a field's options
_ASKED = 1.0  # a value of the form that a field's note asks for
_BY_KIND = {"date": 1.5, "check": 1.0, "choice": _OFFERED, "text": 0.0}
_REMARK = re.compile(r" \(.*?\)")  # what a label says besides what it asks for
_LEAST = 0.15  # likeness from which a name alone decides
Tried = Mapping[str, Collection[str]]  # labels of optional fields, by argument
_NOTHING: Tried = MappingProxyType({})


def is_optional(field: Field) -> bool:
    """Return whether a form lets one leave a field empty that takes any text."""
    return field.kind == "text" and not field.required


def matched(
    form: Sequence[Field],
    given: Mapping[str, str],
    habits: Habits,
    tried: Tried = _NOTHING,
) -> dict[int, str]:
    """Return the argument of each field, by the field's place; others stay alone.

    What a form needs goes before what may be left empty. `tried` are the optional
    fields that took an argument on a page before: it may have been the wrong place, so
    others may take it too.
    """
    if not habits.guesses:
        return _assigned(form, range(len(form)), given, habits)
    needed = [i for i, field in enumerate(form) if not is_optional(field)]
    found = _assigned(form, needed, given, habits)
    for place, field in enumerate(form):
        if place not in needed:
            used = found.values()
            left = {
                name: value
                for name, value in given.items()
                if name not in used and field.label not in tried.get(name, ())
            }
            found |= _assigned(form, [place], left, habits)
    return _left_over(form, given, found, habits)


def _assigned(
    form: Sequence[Field],
    places: Iterable[int],
    given: Mapping[str, str],
    habits: Habits,
) -> dict[int, str]:
    """Return the best argument of some of a form's fields."""
    scores = {
        (name, str(place)): score
        for name, value in given.items()
        for place in places
        if _suits(form[place], value, habits)
        and (score := _score(form[place], name, value, habits)) > 0.0
    }
    chosen = matching.assign(scores, given)
    return {int(place): name for name, place in chosen.items()}


def _suits(field: Field, value: str, habits: Habits) -> bool:
    """Return whether a field could take a value, by its kind and by its note."""
    form = told_form(field) if habits.weighs else None
    return takes(field, value) and (form is None or form.fullmatch(value) is not None)


def _score(field: Field, name: str, value: str, habits: Habits) -> float:
    if not habits.guesses:
        near = matching.overlap(name, field.label)
        return near + _BY_KIND[field.kind] if near else 0.0
    label = _REMARK.sub("", field.label)
    near = lexicon.alike(name, label)
    kind = _BY_KIND[field.kind]
    if habits.weighs and field.kind == "text":
        near = max(near, lexicon.alike(f"{name} {shape(value)}", label))
        near = max(near, lexicon.alike(shape(value), label))
        kind = _ASKED if told_form(field) is not None else kind
    return near + kind if near >= _LEAST or kind else 0.0


def _left_over(
    form: Sequence[Field],
    given: Mapping[str, str],
    found: dict[int, str],
    habits: Habits,
) -> dict[int, str]:
    """Return the matches with what is left over on both sides, in order of reading.

    What stands in an optional field is left over too: a needed one goes before.
    """
    loose = {name: place for place, name in found.items() if is_optional(form[place])}
    firm = {name for name in found.values() if name not in loose}
    left = [name for name in given if name not in firm]
    for place, field in enumerate(form):
        if place in found or not field.required:
            continue
        fitting = [name for name in left if _suits(field, given[name], habits)]
        if fitting:
            found[place] = fitting[0]
            left.remove(fitting[0])
            found.pop(loose.get(fitting[0], -1), None)
    return found
