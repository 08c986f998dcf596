"""A family, and draws that families share: items, who knows what, documents.

Source: docs/multicrew.md#worlds
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.envs.multicrew.world import Clause, CrewItem, Document, DocumentLine, Shape
from owa_bench.seeding import stream

_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "tr", "v")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("k", "l", "m", "n", "r", "s", "t", "lt", "nd", "rk", "sk", "st")
_CONSONANTS = "bdfgklmnprstvz"
ROLES = ("lead", "design", "build", "supply", "legal", "audit")
_LINES_A_DOCUMENT = 4  # sentences that hold, besides decoys
_STYLES = 1 << 12
_EFFORTS = (2, 3, 4)
_CONTESTED = ("law", "contract", "habit")
SHAPES: tuple[Shape, ...] = ("star", "tree", "mesh")


class Size(NamedTuple):
    """What a tier decides.

    `private` is the share of clauses that another role than the item's knows, `ratio` T / B,
    `conflicts` the number of contested clauses.
    """

    seats: int
    items: int
    layers: int
    private: float
    ratio: float
    interval: int
    tokens: int
    conflicts: int


SIZES = (
    Size(2, 8, 3, 0.3, 0.8, 1, 160, 0),
    Size(3, 14, 4, 0.5, 0.6, 2, 120, 2),
    Size(4, 24, 4, 0.7, 0.4, 3, 60, 4),
    Size(6, 40, 5, 0.8, 0.25, 4, 40, 8),
)


class CrewDraws:
    """The streams of one world and its words."""

    def __init__(self, seed: int, family: str, tier: int) -> None:
        self.rng: Generator = stream(seed, "base", family)
        self._words: Generator = stream(seed, "words", family)
        self.claims: Generator = stream(seed, "claims", family)
        self._used: set[str] = set()
        self.size = SIZES[tier - 1]
        self.roles = ROLES[: self.size.seats]

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of some."""
        return options[int(self.rng.integers(len(options)))]

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`.

        Args:
            low: The least.
            high: The greatest.
        """
        return int(self.rng.integers(low, high + 1))

    def word(self) -> str:
        """Return a nonce word of one syllable and a half that was not given before."""
        rng = self._words
        while True:
            parts = (_ONSETS, _VOWELS, _CODAS, _VOWELS)
            word = "".join(part[int(rng.integers(len(part)))] for part in parts)
            if word not in self._used:
                self._used.add(word)
                return word

    def code(self) -> str:
        """Return a nonce of four letters and three digits, "kavo-417"."""
        rng = self._words
        parts = (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS)
        letters = "".join(part[int(rng.integers(len(part)))] for part in parts)
        return f"{letters}-{int(rng.integers(100, 1000))}"

    def other_role(self, role: str) -> str:
        """Return a role that is not this one."""
        return str(self.pick([name for name in self.roles if name != role]))


def draw_items(draws: CrewDraws, shape: Shape) -> tuple[CrewItem, ...]:
    """Return items without clauses, in an order in which each follows its needs.

    Args:
        draws: The streams.
        shape: Of the graph: a chain; a star (one before all); a tree (one each); a mesh (one or two
            of the layer before).
    Returns: The items, roles spread evenly.
    """
    count = draws.size.items
    layers = _layers(draws, shape, count)
    items: list[CrewItem] = []
    roles = [draws.roles[i % len(draws.roles)] for i in range(count)]
    order = draws.rng.permutation(count).tolist()
    before: list[str] = []
    for layer in layers:
        here = []
        for _ in range(layer):
            wanted = 2 if shape == "mesh" and len(before) > 1 else 1
            wanted = draws.between(1, wanted) if before else 0
            chosen = draws.rng.permutation(len(before))[:wanted].tolist()
            item = CrewItem(
                name=draws.word(),
                role=roles[order[len(items)]],
                effort=draws.pick(_EFFORTS),
                needs=tuple(before[i] for i in sorted(chosen)),
            )
            items.append(item)
            here.append(item.name)
        before = here
    return tuple(items)


def _layers(draws: CrewDraws, shape: Shape, count: int) -> list[int]:
    """Return how many items stand in each layer."""
    if shape == "chain":
        return [1] * count
    depth = draws.size.layers
    if shape == "star":
        return [1] * (depth - 1) + [count - depth + 1]
    rest = count - depth
    extra = [rest // depth + (i < rest % depth) for i in range(depth)]
    return [1 + more for more in extra]


def owned(draws: CrewDraws, item: CrewItem) -> str:
    """Return the role that knows a clause of an item, its own or another.

    Args:
        draws: The streams, and the tier's share of other roles.
        item: The item.
    """
    if draws.rng.random() < draws.size.private:
        return draws.other_role(item.role)
    return item.role


def contest(
    draws: CrewDraws, clauses: Sequence[Clause], rivals: Mapping[str, str], count: int
) -> tuple[Clause, ...]:
    """Return the clauses, of which some are contested by another role.

    Args:
        draws: The streams.
        clauses: All of them.
        rivals: A wrong value for each that may be contested, by its name.
        count: How many are.
    Returns: The clauses; the one that holds has the stronger ground.
    """
    names = [clause.name for clause in clauses if clause.name in rivals]
    order = draws.rng.permutation(len(names)).tolist()
    chosen = {names[i] for i in order[:count]}
    found = []
    for clause in clauses:
        if clause.name in chosen:
            strong = draws.between(0, len(_CONTESTED) - 2)
            weak = draws.between(strong + 1, len(_CONTESTED) - 1)
            clause = replace(
                clause,
                ground=_CONTESTED[strong],
                rival=rivals[clause.name],
                rival_owner=draws.other_role(clause.owner),
                rival_ground=_CONTESTED[weak],
            )
        found.append(clause)
    return tuple(found)


def draw_documents(
    draws: CrewDraws, clauses: Sequence[Clause], wrong: Mapping[str, str]
) -> tuple[Document, ...]:
    """Return the documents of all roles: what each knows, among decoys.

    Args:
        draws: The streams.
        clauses: All of them.
        wrong: By name of a clause a value that does not hold, for decoys.
    Returns: Documents of a few sentences each, one role's after another's.
    """
    documents = []
    for role in draws.roles:
        known = [c for c in clauses if role in c.sides]
        known = [known[i] for i in draws.rng.permutation(len(known)).tolist()]
        for first in range(0, len(known), _LINES_A_DOCUMENT):
            here = known[first : first + _LINES_A_DOCUMENT]
            lines = [_line(draws, clause, role) for clause in here]
            decoys = draws.between(1, 3)
            for clause in [c for c in here if c.name in wrong][:decoys]:
                lines.append(
                    DocumentLine(
                        subject=clause.subject,
                        attribute=clause.attribute,
                        value=wrong[clause.name],
                        standing=draws.pick(("former", "draft")),
                        style=draws.between(0, _STYLES),
                    )
                )
            lines.append(DocumentLine(standing="filler", style=draws.between(0, _STYLES)))
            mixed = draws.rng.permutation(len(lines)).tolist()
            name = f"{role}-{first // _LINES_A_DOCUMENT + 1}"
            ordered = tuple(lines[i] for i in mixed)
            documents.append(Document(name=name, owner=role, lines=ordered))
    return tuple(documents)


def settle_by_word(
    draws: CrewDraws, clauses: Sequence[Clause], rivals: Mapping[str, str], count: int
) -> tuple[Clause, ...]:
    """Return the clauses, of which some have two readings that a third role decides on.

    Args:
        draws: The streams.
        clauses: All of them.
        rivals: The other reading of each, by its name.
        count: How many have two.
    Returns: The clauses, and one for each decision that says whose it is.
    """
    order = draws.rng.permutation(len(clauses)).tolist()
    chosen = {clauses[i].name for i in order[:count]}
    found = []
    for clause in clauses:
        if clause.name in chosen:
            clause = replace(
                clause,
                ground="reading",
                rival=rivals[clause.name],
                rival_owner=draws.other_role(clause.owner),
                rival_ground="reading",
                settler=draws.pick(draws.roles),
            )
            who = Clause(
                subject=f"{clause.subject} {clause.attribute}",
                attribute="say",
                value=clause.settler,
                owner=draws.other_role(clause.settler),
            )
            found.append(who)
        found.append(clause)
    return tuple(found)


def _line(draws: CrewDraws, clause: Clause, role: str) -> DocumentLine:
    """Return the sentence by which a role knows a clause."""
    value, ground = clause.value, clause.ground
    if role == clause.settler:
        ground = "word"
    elif role != clause.owner:
        value, ground = clause.rival, clause.rival_ground
    return DocumentLine(
        subject=clause.subject,
        attribute=clause.attribute,
        value=value,
        ground=ground,
        style=draws.between(0, _STYLES),
    )


# --- a family: draws, a form of fragments, and an acceptance --------------------------
# A fragment is what a seat hands in for an item. It is accepted by what it does: the
# family runs it against the values that hold, in the light of the fragments it builds
# on.


Fragment = Mapping[str, Any]
Values = Mapping[str, str]  # name of a clause to its value


class Content(NamedTuple):
    """What a family draws: items with clauses, and wrong values of each clause."""

    items: tuple[CrewItem, ...]
    clauses: tuple[Clause, ...]
    wrong: Mapping[str, str]


class ClauseDraft:
    """Clauses as a family draws them, each with its wrong value."""

    def __init__(self) -> None:
        self._clauses: list[Clause] = []
        self._wrong: dict[str, str] = {}

    def add(self, subject: str, attribute: str, owner: str, value: str, other: str) -> str:
        """Add a clause.

        Args:
            subject: The item, site, part or module that it is about.
            attribute: What it says of it.
            owner: The role that knows it.
            value: What holds.
            other: A wrong value.
        Returns: Its name.
        """
        clause = Clause(subject=subject, attribute=attribute, value=value, owner=owner)
        self._clauses.append(clause)
        self._wrong[clause.name] = other
        return clause.name

    def content(self, items: Iterable[CrewItem]) -> Content:
        """Return the clauses with the items that bear them."""
        return Content(tuple(items), tuple(self._clauses), self._wrong)


class Family(NamedTuple):
    """A family.

    `form` is a JSON schema of a fragment; `problem` says what is wrong with the form of an item's
    fragment beyond that ("" for nothing), which everybody is told; `accepts` and `solution` take
    item, values and the accepted fragments that it builds on. `reviewed`: an item is merged only
    when another seat has approved it. `runs`: fragments are code, merged by git; `accepts` takes in
    place of them what main answered when it was run.
    """

    name: str
    about: str
    form: Mapping[str, Any]
    draw: Callable[[CrewDraws, tuple[CrewItem, ...]], Content]
    problem: Callable[[CrewItem, Fragment], str]
    accepts: Callable[[CrewItem, Values, Mapping[str, Fragment], Fragment], bool]
    solution: Callable[[CrewItem, Values, Mapping[str, Fragment]], Fragment]
    reviewed: bool = False
    runs: bool = False
    decided: bool = False  # contested clauses have readings on which one role decides
