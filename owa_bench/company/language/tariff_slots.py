"""Slots of tariffs: weights, rates, factors and fine percentages, as they are written and read."""

import re

import numpy as np

from owa_bench.seeding import pick


class KiloSlot:
    """A weight in grams: "0.5 kg", "30 kg", "500 g"."""

    pattern = r"\d+(?:\.\d)? kg|\d+ g"

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return the weight in kilograms, or in grams below one kilogram.

        Args:
            value: Grams, a multiple of 100.
            rng: Draws the unit below one kilogram.
        """
        if value < 1000 and rng.random() < 0.5:
            return f"{value} g"
        kilos, rest = divmod(value, 1000)
        return f"{kilos}.{rest // 100} kg" if rest else f"{kilos} kg"

    def read(self, text: str) -> int:
        """Return the grams."""
        number, unit = text.split()
        if unit == "g":
            return int(number)
        kilos, _, tenths = number.partition(".")
        return 1000 * int(kilos) + 100 * int(tenths or 0)


class KiloListSlot:
    """Weights of whole kilograms in rising order: "10, 30 and 70 kg"."""

    pattern = r"\d+(?:, \d+)* and \d+ kg|\d+ kg"

    def write(self, value: tuple[int, ...], rng: np.random.Generator) -> str:
        """Return the weights.

        Args:
            value: Grams, each a multiple of 1,000.
            rng: Not used.
        """
        *first, last = (str(grams // 1000) for grams in value)
        return f"{', '.join(first)} and {last} kg" if first else f"{last} kg"

    def read(self, text: str) -> tuple[int, ...]:
        """Return the grams."""
        return tuple(1000 * int(number) for number in re.findall(r"\d+", text))


class RateListSlot:
    """Rates in euros by band: "0.80 / 0.71 / 0.65"."""

    pattern = r"\d+\.\d\d(?: / \d+\.\d\d)*"

    def write(self, value: tuple[int, ...], rng: np.random.Generator) -> str:
        """Return the rates.

        Args:
            value: Cents.
            rng: Not used.
        """
        return " / ".join(f"{cents // 100}.{cents % 100:02d}" for cents in value)

    def read(self, text: str) -> tuple[int, ...]:
        """Return the cents."""
        return tuple(int(number.replace(".", "")) for number in text.split(" / "))


class FinePercentSlot:
    """A percentage with two decimals, kept in hundredths: "10.25 percent", "10.25 %"."""

    pattern = r"\d+\.\d\d (?:percent|%)"

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return the percentage.

        Args:
            value: Hundredths of a percent.
            rng: Draws the word or the sign.
        """
        return f"{value // 100}.{value % 100:02d} {pick(('percent', '%'), rng)}"

    def read(self, text: str) -> int:
        """Return the hundredths."""
        return int(text.split()[0].replace(".", ""))


class FactorSlot:
    """A factor kept in percent: "1.45"."""

    pattern = r"\d\.\d\d"

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return the factor.

        Args:
            value: Percent.
            rng: Not used.
        """
        return f"{value // 100}.{value % 100:02d}"

    def read(self, text: str) -> int:
        """Return the percentage."""
        return int(text.replace(".", ""))
