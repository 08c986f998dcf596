"""Declared signs of a validation: knobs, doses, and what each is to do to each axis.

The file stands beside the protocol (`owa_bench/protocols/validate_signs.toml`) and is written
before anything is played. Source: `docs/validate.md`.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Literal, NamedTuple

import msgspec

from owa_bench.errors import ProtocolError
from owa_bench.records.protocol import Positive, Share, Symbol
from owa_bench.records.toml import TomlRecord, decode, in_file

_FOLDER = "owa_bench.protocols"
FILE = "validate_signs.toml"
AXES: tuple[Symbol, ...] = ("A", "G", "P", "M", "T", "R", "S", "W", "$")
Sign = Literal["-", "0"]
Doses = Annotated[tuple[str, ...], msgspec.Meta(min_length=2)]


class ValidationNumbers(TomlRecord, frozen=True, kw_only=True):
    """Margin of a declared zero, levels of the tests, ratio of crossed effects."""

    margin: Positive
    alpha: Share
    level: Share
    ratio: Positive


class KnobDesign(TomlRecord, frozen=True, kw_only=True):
    """A knob: the axis that it is to move, who plays it, its doses, its signs.

    The first dose limits nothing. `signs` has one for each of the nine axes.
    """

    name: str
    axis: Symbol
    agent: str
    doses: Doses
    signs: Mapping[Symbol, Sign]


class CrossedKnob(TomlRecord, frozen=True, kw_only=True):
    """A knob of the crossed design, its own axis and its doses."""

    knob: str
    axis: Symbol
    doses: Doses


class CrossedDesign(TomlRecord, frozen=True, kw_only=True):
    """Two knobs, every pair of whose doses one agent plays."""

    agent: str
    autonomy: CrossedKnob
    depth: CrossedKnob


class AgentSet(TomlRecord, frozen=True, kw_only=True):
    """The unhandicapped agents over which axes are correlated."""

    names: tuple[str, ...] = ()


class ValidationDesign(TomlRecord, frozen=True, kw_only=True):
    """A whole sign file."""

    schema: Literal["owa-validate-signs-1"]
    numbers: ValidationNumbers
    crossed: CrossedDesign | None = None
    agents: AgentSet = AgentSet()
    knobs: tuple[KnobDesign, ...]


class ValidationArm(NamedTuple):
    """An arm of a validation: its name, its agent, and the knobs that are turned."""

    name: str
    agent: str
    turned: tuple[tuple[str, str], ...]


def sign_names() -> tuple[str, ...]:
    """Return the names of the package's own sign files."""
    names = (entry.name for entry in files(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if is_sign_file(name)))


def is_sign_file(name: str) -> bool:
    """Return whether a file of the package's protocols is a sign file by its name."""
    return name.endswith("_signs.toml")


def default_signs(name: str = FILE) -> bytes:
    """Return the bytes of one of the package's own sign files."""
    return (files(_FOLDER) / name).read_bytes()


def load_signs(data: bytes, name: str = FILE) -> ValidationDesign:
    """Return the design that a sign file holds.

    Args:
        data: TOML in UTF-8.
        name: Name of the file, for the messages.
    Raises: ProtocolError: A cell has no sign, or another field breaks its rule.
    """
    with in_file(name):
        design = decode(data, ValidationDesign)
        for number, knob in enumerate(design.knobs):
            _check(knob, f"knobs.{number}")
        for field in ("name", "axis"):
            values = [getattr(knob, field) for knob in design.knobs]
            if len(set(values)) < len(values):
                raise ProtocolError(f"knobs.{field}", values, "must name each once")
    return design


def _check(knob: KnobDesign, place: str) -> None:
    missing = [axis for axis in AXES if axis not in knob.signs]
    if missing:
        rule = f"must hold a sign for every axis, lacks {', '.join(missing)}"
        raise ProtocolError(f"{place}.signs", sorted(knob.signs), rule)
    if set(knob.signs) - set(AXES):
        rule = f"must hold {', '.join(AXES)} alone"
        raise ProtocolError(f"{place}.signs", sorted(knob.signs), rule)
    if knob.signs.get(knob.axis) != "-":
        rule = f'must be "-" on the knob\'s own axis {knob.axis}'
        raise ProtocolError(f"{place}.signs", knob.signs.get(knob.axis), rule)


def arm_of(agent: str, turned: Sequence[tuple[str, str, str]]) -> ValidationArm:
    """Return the arm of an agent under some doses.

    Args:
        agent: Name of the agent.
        turned: Knob, dose and the knob's first dose, which limits nothing.
    Returns: The arm; the agent itself where every dose is a first one.

    >>> arm_of("agentic", [("depth", "4", "none"), ("asks", "0", "0")]).name
    'agentic-depth-4'
    """
    doses = tuple((knob, dose) for knob, dose, first in turned if dose != first)
    return ValidationArm("-".join([agent, *(w for d in doses for w in d)]), agent, doses)


def knob_arms(knob: KnobDesign) -> tuple[ValidationArm, ...]:
    """Return the arms of a knob in order of the doses."""
    first = knob.doses[0]
    return tuple(arm_of(knob.agent, [(knob.name, d, first)]) for d in knob.doses)


def crossed_arms(crossed: CrossedDesign | None) -> tuple[tuple[ValidationArm, ...], ...]:
    """Return the arms of a crossed design, a row for each dose of autonomy."""
    if crossed is None:
        return ()
    one, other = crossed.autonomy, crossed.depth
    return tuple(
        tuple(
            arm_of(crossed.agent, [(one.knob, a, one.doses[0]), (other.knob, b, other.doses[0])])
            for b in other.doses
        )
        for a in one.doses
    )
