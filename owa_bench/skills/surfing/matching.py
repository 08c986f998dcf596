"""Which field of a form each argument of a goal goes into."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from owa_bench.skills import lexicon, matching
from owa_bench.skills.clerk.habits import Habits
from owa_bench.skills.surfing.fields import Field, shape, takes, told_form

_OFFERED = 2.0  # a value that stands among a field's options
_ASKED = 1.0  # a value of the form that a field's note asks for
_BY_KIND = {"date": 1.5, "check": 1.0, "choice": _OFFERED, "text": 0.0}
_LEAST = 0.15  # likeness from which a name alone decides
_NOTHING: Mapping[str, str] = MappingProxyType({})


def is_optional(field: Field) -> bool:
    """Return whether a form lets one leave a field empty that takes any text."""
    return field.kind == "text" and not field.required


def matched(
    form: Sequence[Field],
    given: Mapping[str, str],
    habits: Habits,
    spare: Mapping[str, str] = _NOTHING,
) -> dict[int, str]:
    """Return the argument of each field, by the field's place; others stay alone.

    What a form needs goes before what may be left empty. `spare` are arguments that an
    optional field took on a page before: only a needed one may have them again.
    """
    if not habits.guesses:
        return _assigned(form, range(len(form)), given, habits)
    needed = [i for i, field in enumerate(form) if not is_optional(field)]
    found = _assigned(form, needed, {**given, **spare}, habits)
    left = {k: v for k, v in given.items() if k not in found.values()}
    others = [i for i in range(len(form)) if i not in needed]
    found |= _assigned(form, others, left, habits)
    return _left_over(form, given, found, spare, habits)


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
    near = lexicon.alike(name, field.label)
    kind = _BY_KIND[field.kind]
    if habits.weighs and field.kind == "text":
        near = max(near, lexicon.alike(f"{name} {shape(value)}", field.label))
        near = max(near, lexicon.alike(shape(value), field.label))
        kind = _ASKED if told_form(field) is not None else kind
    return near + kind if near >= _LEAST or kind else 0.0


def _left_over(
    form: Sequence[Field],
    given: Mapping[str, str],
    found: dict[int, str],
    spare: Mapping[str, str],
    habits: Habits,
) -> dict[int, str]:
    """Return the matches with what is left over on both sides, in order of reading.

    Last comes what stands in an optional field, on this page or one before.
    """
    loose = {name: place for place, name in found.items() if is_optional(form[place])}
    firm = {name for name in found.values() if name not in loose}
    left = [name for name in given if name not in found.values()]
    left += [name for name in (*loose, *spare) if name not in firm]
    values = {**spare, **given}
    for place, field in enumerate(form):
        if place in found or not field.required:
            continue
        fitting = [name for name in left if _suits(field, values[name], habits)]
        if fitting:
            found[place] = fitting[0]
            left.remove(fitting[0])
            found.pop(loose.get(fitting[0], -1), None)
    return found
