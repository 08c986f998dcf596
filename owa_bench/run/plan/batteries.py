"""Batteries: what is drawn, by name or from a file, and whether it may give a level."""

from importlib import resources
from pathlib import Path

import msgspec

from owa_bench.errors import BatteryError, UnknownNameError
from owa_bench.records.protocol import Protocol
from owa_bench.records.toml import decode, in_file
from owa_bench.run.plan import draws
from owa_bench.run.plan.draws import Draw

_FOLDER = "owa_bench.batteries"


class Battery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A battery file: the protocol it is judged by and what is drawn from each suite.

    `gives_level` false marks one too small to place an agent (a demonstration).
    """

    name: str
    about: str = ""
    protocol: str = "default"
    gives_level: bool = True
    suite: tuple[Draw, ...]


def battery_names() -> tuple[str, ...]:
    """Return the names of the batteries in the package."""
    folder = resources.files(_FOLDER)
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def load(name: str) -> Battery:
    """Return the battery of a name or of a .toml file, checked.

    Errors: UnknownNameError, BatteryError with field, value and rule.
    """
    data = _read(name)
    with in_file(name):
        return parse(data)


def parse(data: bytes) -> Battery:
    """Return the battery in `data`, checked against the suites it draws from."""
    battery = decode(data, Battery, BatteryError)
    if not battery.suite:
        raise BatteryError("suite", (), "must draw from at least one suite")
    for number, draw in enumerate(battery.suite):
        draws.check(draw, BatteryError, f"suite.{number}")
    return battery


def check_admissible(battery: Battery, protocol: Protocol) -> None:
    """Refuse a battery that claims to give levels and cannot.

    Errors: BatteryError if a family has fewer instances than the protocol's m_min, or
    the magnitudes that T integrates over are not all drawn.
    Source: `aai-scale.md` section 0, admissibility (b) and (c).
    """
    if not battery.gives_level:
        return
    instances: dict[str, set[str]] = {}
    magnitudes: dict[str, set[float]] = {}
    for draw in battery.suite:
        card = draws.check(draw, BatteryError).card
        for cell in draws.cells(draw, card):
            if cell.calendar:
                continue  # enters no axis
            family = f"{cell.suite}/{cell.family}"
            instances.setdefault(family, set()).add(cell.pair)
            magnitudes.setdefault(family, set()).add(cell.delta)
    least = protocol.admissibility.family_min
    wanted = set(protocol.drift.magnitudes)
    for family, pairs in instances.items():
        if len(pairs) < least:
            raise BatteryError(
                "suite.episodes",
                len(pairs),
                f"must draw at least {least} instances of {family}",
            )
        if not wanted <= magnitudes[family]:
            raise BatteryError(
                "suite.deltas",
                tuple(sorted(magnitudes[family])),
                f"must hold every magnitude of the protocol for {family}",
            )


def _read(name: str) -> bytes:
    if name.endswith(".toml"):
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise BatteryError(
                "battery", name, f"must be a file that can be read ({error.strerror})"
            ) from error
    if name not in battery_names():
        raise UnknownNameError("battery", name, battery_names())
    return (resources.files(_FOLDER) / f"{name}.toml").read_bytes()
