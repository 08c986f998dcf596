"""Names of vendors, and names that look like them."""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import IntegerDraws

STEMS = (
    "Halden", "Quillon", "Merrow", "Tarven", "Osmund", "Brixel", "Calder", "Dorvane",
    "Elbrook", "Fenwick", "Garrow", "Hollin", "Istrel", "Jarnow", "Kelmar", "Lorvik",
    "Mandel", "Norvall", "Ostrel", "Pellan", "Quarrel", "Rendal", "Sorvin", "Tessel",
    "Ulvern", "Vandor", "Wexley", "Yarrow", "Zendal", "Ambrel", "Boldan", "Corvell",
    "Dunmar", "Estven", "Farrel", "Gilmor", "Harken", "Ivoran", "Jolwin", "Kestrel",
)  # fmt: skip
_VOWELS = "aeiou"


def titles(draws: IntegerDraws, suffixes: Sequence[Sequence[str]]) -> list[str]:
    """Return a title per vendor, each with a stem of its own."""
    stems = draws.sample(draws.known(STEMS), len(suffixes))
    return [
        f"{stem} {draws.word(words)}"
        for stem, words in zip(stems, suffixes, strict=True)
    ]


def lookalikes(draws: IntegerDraws, title: str, suffixes: Sequence[str]) -> list[str]:
    """Return two titles easily taken for `title`: one vowel off, and another suffix."""
    stem, suffix = title.split(" ")
    places = [i for i, letter in enumerate(stem) if letter in _VOWELS]
    place = draws.pick(places)
    vowel = draws.pick([v for v in _VOWELS if v != stem[place]])
    other = draws.pick([s for s in draws.known(suffixes) if s != suffix])
    return [f"{stem[:place]}{vowel}{stem[place + 1 :]} {suffix}", f"{stem} {other}"]


class Heir(NamedTuple):
    """The family of vendors that may take over another one's business."""

    family: str
    suffixes: tuple[str, ...]


def heir(family: str) -> Heir:
    """Return the family that arrives when vendors of `family` retire."""
    return Heir(f"{family}-cloud", ("Cloud", "Online", "Nova"))
