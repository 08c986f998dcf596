"""Which field of a form each argument of a goal goes into."""

from collections.abc import Mapping, Sequence

from owa_bench.skills import lexicon, matching
from owa_bench.skills.clerk.habits import Habits
from owa_bench.skills.surfing.fields import Field, shape, takes

_OFFERED = 2.0  # a value that stands among a field's options
_BY_KIND = {"date": 1.5, "check": 1.0, "choice": _OFFERED, "text": 0.0}
_LEAST = 0.15  # likeness from which a name alone decides


def matched(
    form: Sequence[Field], given: Mapping[str, str], habits: Habits
) -> dict[int, str]:
    """Return the argument of each field, by the field's place; others stay alone."""
    scores = {
        (name, str(place)): score
        for name, value in given.items()
        for place, field in enumerate(form)
        if takes(field, value) and (score := _score(field, name, value, habits)) > 0.0
    }
    chosen = matching.assign(scores, given)
    found = {int(place): name for name, place in chosen.items()}
    return _left_over(form, given, found) if habits.guesses else found


def _score(field: Field, name: str, value: str, habits: Habits) -> float:
    if not habits.guesses:
        near = matching.overlap(name, field.label)
        return near + _BY_KIND[field.kind] if near else 0.0
    near = lexicon.alike(name, field.label)
    kind = _BY_KIND[field.kind]
    if habits.weighs and field.kind == "text":
        near = max(near, lexicon.alike(f"{name} {shape(value)}", field.label))
        near = max(near, lexicon.alike(shape(value), field.label))
    return near + kind if near >= _LEAST or kind else 0.0


def _left_over(
    form: Sequence[Field], given: Mapping[str, str], found: dict[int, str]
) -> dict[int, str]:
    """Return the matches with what is left over on both sides, in order of reading."""
    open_fields = [i for i, f in enumerate(form) if i not in found and f.required]
    left = [name for name in given if name not in found.values()]
    for place in open_fields:
        fitting = [name for name in left if takes(form[place], given[name])]
        if fitting:
            found[place] = fitting[0]
            left.remove(fitting[0])
    return found
