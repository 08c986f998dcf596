"""The protocol file: it loads, it pins its price card, and it names a bad field."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import owa_bench
from benchmarks import proposition_rates
from owa_bench.canonical import sha256
from owa_bench.discovery import find
from owa_bench.errors import ProtocolError
from owa_bench.records.protocol import SYMBOLS, Protocol, load
from tests.builders.episodes import PRICE_BYTES, PROTOCOL, PROTOCOL_BYTES


def test_default_pins_the_default_price_card() -> None:
    assert PROTOCOL.price_card == sha256(PRICE_BYTES)


def test_another_number_is_another_protocol_by_name() -> None:
    published = {"default-8": "51710900b0e9b4708ecff4bc597239917294dccc2ddc14815346c5ea75186fb7"}
    assert published.get(PROTOCOL.name) == sha256(PROTOCOL_BYTES), (
        "give the changed protocol a new `name`, name it here, and say **scores** in CHANGELOG.md"
    )


def test_digest_changes_with_any_byte() -> None:
    assert sha256(PROTOCOL_BYTES) != sha256(PROTOCOL_BYTES + b"\n")


@pytest.mark.parametrize(
    ("old", "new", "field", "rule"),
    [
        (b"mild = 0.25", b"mild = 0.3", "drift.mild", "must be one of"),
        (b"mild = 0.25", b"mild = 3.0", "drift.mild", "<= 1.0"),
        (b"rho = 0.95", b'rho = "most"', "closures.rho", "expected `float`"),
        (b"rho = 0.95", b"rho = nan", "closures.rho", "expected `float`"),
        (b"gamma = 0.5", b"gama = 0.5", "index.gama", "is not a field"),
        (b"level = 1\n", b"level = 9\n", "gates.0.level", "<= 4"),
        (b"\nname =", b"\nnickname =", "nickname", "is not a field"),
        (b"[0.1, 0.9]", b"[0.9, 0.1]", "world_model.base_rate", "must rise"),
        (b"high = 3.16", b"high = 1e-9 # ", "economics.high", "must be above"),
        (
            b'"changesurf/default" = 0.44',
            b'"changesurf/default" = 0.05',
            "world_model.references.changesurf/default",
            "must lie in",
        ),
        (b"[0.0, 0.1, ", b"[0.1, ", "drift.magnitudes", "must run from 0 to 1"),
        (b"0.5, 0.75, 1.0]", b"0.75, 0.5, 1.0]", "drift.magnitudes", "must rise"),
        (b"R = { low = 0.0", b"R = { low = 1.0", "anchors.R.high", "must be above"),
        (b"[drift]", b"[drift", "file", "TOML"),
        (b"below_level = 0.9967", b"below_level = 0.9966", "statistics.below_level", "0.996667"),
        (b"gate_level = 0.95 ", b"gate_level = 0.96 ", "statistics.below_level", "0.997333"),
        (
            b'gate = "cognitive"\nnumbers = { vrp = 0.8, hallucination = 0.1 }',
            b'gate = "cognitive"\nnumbers = { vrp = 0.8, hallucination = 0.1, fidelity = 0.5 }',
            "statistics.below_level",
            "16 tests of one level",
        ),
    ],
)
def test_a_bad_field_is_named(old: bytes, new: bytes, field: str, rule: str) -> None:
    assert old in PROTOCOL_BYTES
    with pytest.raises(ProtocolError) as caught:
        load(PROTOCOL_BYTES.replace(old, new, 1))
    assert caught.value.field == field
    assert rule in str(caught.value)


def test_a_protocol_from_before_below_reads_its_level() -> None:
    line = next(x for x in PROTOCOL_BYTES.splitlines(True) if x.startswith(b"below_level"))
    assert load(PROTOCOL_BYTES.replace(line, b"")) == PROTOCOL


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ProtocolError, match=r"`index.gamma` must be given"):
        load(PROTOCOL_BYTES.replace(b"gamma = 0.5", b"# no", 1))


def test_every_gate_of_the_table_has_a_plug_in() -> None:
    assert {rule.gate for rule in PROTOCOL.gates} <= set(find("gates"))


def test_the_gate_table_is_that_of_the_scale() -> None:
    table = {(rule.of, rule.level): rule.required for rule in PROTOCOL.gates if rule.gate == "axis"}
    rows = {
        "A": (0.5, 0.6, 0.7, 0.9),
        "G": (0.2, 0.3, 0.4, 1.0),
        "P": (0.3, 0.5, 0.6, 0.9),
        "M": (None, 0.5, 0.6, 0.85),
        "T": (None, 0.6, 0.7, 0.9),
        "R": (None, 0.2, 0.3, 0.6),
        "S": (None, 0.2, 0.4, 0.8),
        "W": (None, 0.6, 0.65, 0.85),
        "$": (None, 0.4, 0.45, 0.8),
    }
    for symbol, row in rows.items():
        assert tuple(table.get((symbol, level)) for level in (1, 2, 3, 4)) == row


def test_software_weights_split_embodiment() -> None:
    weights = PROTOCOL.index.weights
    assert set(weights) == set(SYMBOLS)
    assert weights["E"] == 0
    assert sum(weights.values()) == pytest.approx(8 + 1.5 + 0.5)
    assert weights["P"] == weights["M"] == weights["T"] == pytest.approx(1 + 0.5 / 3)


# --- fields that nothing reads --------------------------------------------------------

SOURCE = Path(owa_bench.__file__).parent
PROTOCOL_MODULE = SOURCE / "records" / "protocol.py"


def leaves(record: type, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (section, class of it, field) for every field of the protocol."""
    for field in msgspec.structs.fields(record):
        kind = field.type
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from leaves(kind, field.name)
        else:
            yield path, record.__name__, field.name


class Names(NamedTuple):
    """The attributes that a module reads, and those with its plain names."""

    attributes: set[str]
    every: set[str]


@cache
def names_by_module() -> tuple[Names, ...]:
    found = []
    for path in SOURCE.rglob("*.py"):
        if path != PROTOCOL_MODULE:
            nodes = tuple(ast.walk(ast.parse(path.read_text())))
            attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
            plain = {n.id for n in nodes if isinstance(n, ast.Name)}
            found.append(Names(attributes, attributes | plain))
    return tuple(found)


def unread(fields: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the fields that no module reads which gets at their section.

    A number that `load` compares, or a method of its section returns, is read there.
    """
    own = PROTOCOL_MODULE.read_text()
    return [
        f"{section}.{field}"
        for section, owner, field in fields
        if f"self.{field}" not in own
        and f"rules.{field}" not in own
        and not any(
            field in names.attributes and (not section or names.every & {section, owner})
            for names in names_by_module()
        )
    ]


def test_every_field_is_read_by_code() -> None:
    assert unread(leaves(Protocol)) == []


def test_a_field_that_nothing_reads_is_found() -> None:
    invented = [("memory", "Memory", "no_memory_max"), ("generality", "Generality", "x")]
    assert unread(invented) == ["memory.no_memory_max", "generality.x"]


# --- proposition classes --------------------------------------------------------------


def test_every_proposition_class_has_a_reference() -> None:
    classes = {
        f"{name}/{kind}"
        for name, item in find("suites").items()
        for kind in item.plugin.card.proposition_kinds
    }
    assert classes <= set(PROTOCOL.world_model.references)


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["toolquest", "changesurf", "recall"])
def test_references_are_the_shares_of_drawn_worlds(suite: str) -> None:
    """Within 3.5 standard errors; the propositions of one instance are one draw."""
    seeds = 6
    shares = proposition_rates.rates(suite, seeds)
    card = find("suites")[suite].plugin.card
    assert set(shares) == set(card.proposition_kinds)
    draws = seeds * len(card.families) * len(card.tiers)
    for kind, (true, whole) in shares.items():
        p = PROTOCOL.world_model.references[f"{suite}/{kind}"]
        error = (p * (1 - p) / min(draws, whole)) ** 0.5
        assert abs(true / whole - p) < 3.5 * error, kind
