"""Fluid reasoning (Gf): concepts, compositions, towers and orders over nonce words.

concept      which objects fall under a word, from pairs that differ in one feature
composition  rules with one example each, applied one after the other: each link
             needs the list that the link before gave
tower        the shortest moves from a stack to an arrangement (there is one way)
order        the row that some statements leave open (there is one)
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

from owa_bench.envs.recall.draws import Draws
from owa_bench.envs.recall.world import Exercise

_CONCEPTS = 6
_CHAINS = 3
_TOWERS, _ORDERS = 4, 4
_CONCEPT_PARTS = (1, 1, 2, 2)  # features that a concept needs
_DEPTH = (3, 4, 5, 7)  # links of a composition
_DISCS = (3, 4, 5, 6)
_PERSONS = (4, 5, 5, 6)
_FEATURES, _VALUES = 4, 3
_QUERIES = 5
_LIST = 5
_PEGS = "ABC"
_Words = tuple[str, ...]

# Rules on lists of words; all of them differ on a list of five words.
RULES: dict[str, Callable[[_Words], _Words]] = {
    "reverse": lambda w: w[::-1],
    "rotate_left": lambda w: w[1:] + w[:1],
    "rotate_right": lambda w: w[-1:] + w[:-1],
    "swap_first": lambda w: (*w[1::-1], *w[2:]),
    "swap_last": lambda w: (*w[:-2], *w[:-3:-1]),
    "swap_ends": lambda w: (w[-1], *w[1:-1], w[0]),
    "drop_second": lambda w: w[:1] + w[2:],
    "double_first": lambda w: w[:1] + w,
    "double_last": lambda w: w + w[-1:],
}


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    exercises = [_concept(draws, number) for number in range(_CONCEPTS)]
    for number in range(_CHAINS):
        exercises += _composition(draws, number)
    exercises += [_tower(draws, number) for number in range(_TOWERS)]
    exercises += [_order(draws, number) for number in range(_ORDERS)]
    return {"exercises": tuple(exercises)}


def _concept(draws: Draws, number: int) -> Exercise:
    """Return a concept with a pair for each feature, and objects to be sorted."""
    word = draws.lexicon.words(1)[0]
    names = [draws.lexicon.words(_VALUES) for _ in range(_FEATURES)]
    needed = draws.order(_FEATURES)[: draws.by_tier(_CONCEPT_PARTS)]
    target = draws.rng.integers(_VALUES, size=_FEATURES).tolist()

    def sequence_text(values: list[int]) -> str:
        return " ".join(names[i][value] for i, value in enumerate(values))

    def falls(values: list[int]) -> bool:
        return all(values[i] == target[i] for i in needed)

    lines = []
    for feature in draws.order(_FEATURES):
        other = list(target)
        step = 1 + int(draws.rng.integers(_VALUES - 1))
        other[feature] = (other[feature] + step) % _VALUES
        verdict = "is too" if falls(other) else "is not"
        lines.append(f"'{sequence_text(target)}' is {word}; '{sequence_text(other)}' {verdict}.")
    objects = draws.rng.integers(_VALUES, size=(_QUERIES, _FEATURES)).tolist()
    for place in range(2):  # some fall under it, whatever the draw
        for feature in needed:
            objects[place][feature] = target[feature]
    order = draws.order(_QUERIES)
    listed = [objects[i] for i in order]
    key = tuple(str(i + 1) for i, values in enumerate(listed) if falls(values))
    lines += [f"{i + 1}: {sequence_text(values)}" for i, values in enumerate(listed)]
    return Exercise(
        name=f"concept/{number}",
        kind="concept",
        pages=("\n".join(lines),),
        prompt=f"Give the numbers of the objects that are {word}.",
        key=key,
        unordered=True,
    )


def _composition(draws: Draws, number: int) -> list[Exercise]:
    """Return the links of a composition; the page shows one example a rule."""
    depth = draws.by_tier(_DEPTH)
    rules = [list(RULES)[i] for i in draws.order(len(RULES))[:depth]]
    names = draws.lexicon.words(depth)
    lines = []
    for name, rule in zip(names, rules, strict=True):
        words = draws.lexicon.words(_LIST)
        lines.append(f"{name}: {' '.join(words)} -> {' '.join(RULES[rule](words))}")
    present: _Words = draws.lexicon.words(_LIST)
    lines.append(f"start: {' '.join(present)}")
    links = []
    for link, (name, rule) in enumerate(zip(names, rules, strict=True), 1):
        present = RULES[rule](present)
        to = "the start" if link == 1 else "the list before"
        links.append(
            Exercise(
                name=f"composition/{number}/{link}",
                kind="composition",
                pages=("\n".join(lines),) if link == 1 else (),
                prompt=f"Apply {name} to {to}; give the words in order.",
                key=present,
                chain=link,
            )
        )
    return links


def _tower(draws: Draws, number: int) -> Exercise:
    """Return a tower; the way from a whole stack to any arrangement is unique."""
    discs = draws.by_tier(_DISCS)
    goal = draws.rng.integers(3, size=discs).tolist()  # of the smallest disc first
    goal[-1] = 1 + goal[-1] % 2
    words = draws.lexicon.words(discs)
    moves: list[tuple[int, int]] = []
    _bring([0] * discs, goal, discs, moves)
    size = ", ".join(words)
    ends = ", ".join(f"{word} on {_PEGS[peg]}" for word, peg in zip(words, goal, strict=True))
    page = (
        f"Three pegs A, B, C. Discs from the smallest to the largest: {size}. All lie "
        "on A, the largest below. One disc moves at a time, never onto a smaller one.\n"
        f"Wanted: {ends}."
    )
    return Exercise(
        name=f"tower/{number}",
        kind="tower",
        pages=(page,),
        prompt="Give the fewest moves in order, each as FROM>TO, for example A>C.",
        key=tuple(f"{_PEGS[a]}>{_PEGS[b]}" for a, b in moves),
    )


def _bring(now: list[int], goal: list[int], discs: int, moves: list[tuple[int, int]]) -> None:
    """Move the smallest `discs` discs to their goal, the largest of them first."""
    if not discs:
        return
    last = discs - 1
    if now[last] != goal[last]:
        spare = 3 - now[last] - goal[last]
        _bring(now, [spare] * last, last, moves)
        moves.append((now[last], goal[last]))
        now[last] = goal[last]
    _bring(now, goal, last, moves)


def _order(draws: Draws, number: int) -> Exercise:
    """Return statements on a row that only one order meets."""
    persons = draws.by_tier(_PERSONS)
    names = [name.split()[0] for name in draws.lexicon.names(persons)]
    row = draws.order(persons)  # place of each name
    open_ = list(permutations(range(persons)))
    lines: list[str] = []
    while len(open_) > 1:
        a, b = draws.order(persons)[:2]
        left, right = (a, b) if row[a] < row[b] else (b, a)
        gap = row[right] - row[left]
        if gap == 1 or draws.rng.random() < 0.5:
            left_of = [p for p in open_ if p[left] < p[right]]
            line = f"{names[left]} stands somewhere to the left of {names[right]}."
        else:
            left_of = [p for p in open_ if abs(p[left] - p[right]) > 1]
            line = f"{names[a]} does not stand next to {names[b]}."
        if len(left_of) < len(open_):
            open_ = left_of
            lines.append(line)
    return Exercise(
        name=f"order/{number}",
        kind="order",
        pages=("\n".join(lines),),
        prompt="Give the names from left to right.",
        key=tuple(name for _, name in sorted(zip(row, names, strict=True))),
    )
