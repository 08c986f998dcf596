"""Instances into worlds: a domain's libraries, features and days.

Source: docs/projforge.md#worlds
"""

from collections.abc import Mapping
from typing import Any

from numpy.random import Generator

from owa_bench.envs.projforge.scores import POSTMORTEM_DAYS
from owa_bench.envs.projforge.world import (
    DAYS,
    INCIDENT_CAUSES,
    Export,
    Feature,
    FeatureStep,
    Library,
    LibraryRule,
    ProductionIncident,
    ProjectWorld,
    Rounding,
    RuleKind,
    Vocabulary,
)
from owa_bench.envs.projforge.world_rules import LEVELS
from owa_bench.records.instance import Instance
from owa_bench.seeding import pick, stream

VOCABULARIES: Mapping[str, Vocabulary] = {
    "billing": Vocabulary(
        row="charge",
        kind="plan",
        kinds=("basic", "team", "trial", "void"),
        amount="cents",
        count="seats",
        age="days_open",
    ),
    "booking": Vocabulary(
        row="stay",
        kind="room",
        kinds=("single", "double", "suite", "dorm"),
        amount="price",
        count="nights",
        age="days_ahead",
    ),
    "inventory": Vocabulary(
        row="item",
        kind="shelf",
        kinds=("cold", "dry", "bulk", "yard"),
        amount="weight",
        count="units",
        age="days_stored",
    ),
    "telemetry": Vocabulary(
        row="reading",
        kind="probe",
        kinds=("flow", "heat", "load", "level"),
        amount="value",
        count="samples",
        age="minutes_old",
    ),
}
LIBRARIES = (
    *("tariffa", "gradus", "quantela", "marginel", "scalidor", "bracketo"),
    *("feelina", "stepwell", "ratiola", "tollmar", "levyne", "notchia"),
)
RULES = (
    *("settle", "grade", "weigh", "trim", "assess", "adjust", "levy", "band"),
    *("portion", "ration", "mark", "tune"),
)
STEMS: Mapping[str, tuple[str, ...]] = {
    "billing": ("invoice", "credit", "dunning", "renewal", "proration", "receipt"),
    "booking": ("quote", "deposit", "occupancy", "upgrade", "waitlist", "cleaning"),
    "inventory": ("restock", "pallet", "spoilage", "transfer", "audit", "picking"),
    "telemetry": ("alarm", "baseline", "digest", "drift", "budget", "window"),
}
ENDINGS = ("total", "score", "limit", "share", "load", "index", "delta", "peak")


VERSION = 2
TIERS = (1, 2, 3, 4)
DOMAINS = tuple(VOCABULARIES)
STEPS_A_DAY = (40, 30, 20, 15)
DEEPEST = 10
_FEATURES, _LIBRARIES = (8, 16, 28, 45), (3, 5, 8, 12)
_DIRTY, _MINUTES = (0, 200, 400, 600), (20, 14, 8, 4)
_KINDS: tuple[RuleKind, ...] = ("rate", "step", "tiers", "surcharge")
_ROUNDINGS: tuple[Rounding, ...] = ("half_up", "half_up", "down", "up")
_CHAINED = 0.7  # share of features that build on an earlier one
_STYLES = 1 << 16
_WISHES = 3


def generate(instance: Instance) -> ProjectWorld:
    """Return the instance's base world; its family is the domain."""
    return draw_world(instance.seed, instance.family, instance.tier)


def draw_world(seed: int, domain: str, tier: int, days: int = DAYS) -> ProjectWorld:
    """Return the world of a seed.

    Args:
        seed: Decides everything drawn.
        domain: One of DOMAINS.
        tier: One of TIERS.
        days: Of the project.
    Returns: The world on its first day.
    """
    rng = stream(seed, "base", domain, tier)
    words = VOCABULARIES[domain]
    libraries = _libraries(rng, _LIBRARIES[tier - 1])
    count = max(_FEATURES[tier - 1] * days // DAYS, 2)
    names = _names(rng, domain)
    features = _features(rng, words, libraries, names[:count], days)
    beside = stream(seed, "beside", domain, tier)
    wished = sorted(set(names[count:]))[:_WISHES]
    return ProjectWorld(
        domain=domain,
        tier=tier,
        vocabulary=words,
        libraries=libraries,
        features=features,
        wishes=_features(beside, words, libraries, wished, days),
        incidents=_incidents(beside, tier, days),
        days=days,
        dirty=_DIRTY[tier - 1],
        ci_minutes=_MINUTES[tier - 1],
    )


def _libraries(rng: Generator, count: int) -> tuple[Library, ...]:
    names = rng.permutation(len(LIBRARIES)).tolist()[:count]
    drawn = []
    for place in names:
        chosen = rng.permutation(len(RULES)).tolist()[:2]
        rules = tuple(_rule(rng, RULES[number]) for number in chosen)
        exports = tuple(Export(rule=rule.name, name=rule.name) for rule in rules)
        name = LIBRARIES[place]
        drawn.append(Library(name=name, rules=rules, exports=exports))
    return tuple(drawn)


def _rule(rng: Generator, name: str) -> LibraryRule:
    kind = pick(_KINDS, rng)
    rows = []
    for _ in range(LEVELS):
        a, b, c = rng.integers(1, 100, size=3).tolist()
        rows.append(
            {
                "rate": (700 + 7 * a,),
                "step": (5 + a % 45,),
                "tiers": (100 + 20 * a, 500 + 3 * b, 300 + 3 * c),
                "surcharge": (a, 5 * b),
            }[kind]
        )
    return LibraryRule(name=name, kind=kind, table=tuple(rows))


def _incidents(rng: Generator, count: int, days: int) -> tuple[ProductionIncident, ...]:
    """Return so many incidents on days apart; a project of some days has none."""
    span = days // (count + 1)
    if span <= POSTMORTEM_DAYS:
        return ()
    first = [span * (n + 1) - span // 2 for n in range(count)]
    return tuple(
        ProductionIncident(
            name=f"incident_{n + 1}",
            day=day + int(rng.integers(span // 2)),
            cause=pick(INCIDENT_CAUSES, rng),
        )
        for n, day in enumerate(first)
    )


def _names(rng: Generator, domain: str) -> list[str]:
    stems = STEMS[domain]
    every = [f"{stem}_{end}" for stem in stems for end in ENDINGS]
    return [every[place] for place in rng.permutation(len(every)).tolist()]


def _features(
    rng: Generator, words: Vocabulary, libraries: tuple[Library, ...], names: list[str], days: int
) -> tuple[Feature, ...]:
    """Return features in order of issue, each with at least one library's rule."""
    drawn: list[Feature] = []
    for number, name in enumerate(names):
        library = libraries[number % len(libraries)]
        rule = library.rules[int(rng.integers(len(library.rules)))]
        steps = _steps(rng, words, library, rule)
        before = _before(rng, drawn)
        if before is not None:
            how = pick(("plus", "less", "greater"), rng)
            steps.append(FeatureStep(kind="join", word=before.name, how=how))
        day = number * (days - 4) // len(names) if days > DAYS // 2 else number // 2
        drawn.append(
            Feature(
                name=name,
                day=day,
                due=min(day + int(rng.integers(0, 4)), days - 1),
                weight=int(rng.integers(1, 4)),
                steps=tuple(steps),
                prerequisite=before.name if before else "",
                depth=before.depth + 1 if before else 1,
                style=int(rng.integers(_STYLES)),
            )
        )
    return tuple(drawn)


def _before(rng: Generator, drawn: list[Feature]) -> Feature | None:
    """Return the feature to build on, the deepest as a rule; None for none."""
    open_ones = [feature for feature in drawn if feature.depth < DEEPEST]
    chained, deepest = rng.random(2).tolist()
    if not open_ones or chained >= _CHAINED:
        return None
    if deepest < _CHAINED:
        return max(open_ones, key=lambda feature: feature.depth)
    return pick(open_ones, rng)


def _steps(
    rng: Generator, words: Vocabulary, library: Library, rule: LibraryRule
) -> list[FeatureStep]:
    """Return the steps of a feature that uses a library's rule once."""
    by_word, by_number, on_rows = (rng.random(3) < 0.5).tolist()
    steps = []
    if by_word:
        test, word = pick(("is", "is_not"), rng), pick(words.kinds, rng)
        steps.append(FeatureStep(kind="word", field=words.kind, test=test, word=word))
    if by_number:
        test = pick(("at_least", "below"), rng)
        limit = 5 * int(rng.integers(3, 10))
        steps.append(FeatureStep(kind="number", field=words.age, test=test, value=limit))
    use: dict[str, Any] = {
        "library": library.name,
        "rule": rule.name,
        "level": int(rng.integers(LEVELS)),
        "rounding": pick(_ROUNDINGS, rng),
    }
    hows = ("sum", "sum_product", "largest")
    how = pick(hows if on_rows else (*hows, "count"), rng)
    reduce = FeatureStep(kind="reduce", how=how)
    if on_rows:
        return [*steps, FeatureStep(kind="apply", **use), reduce]
    return [*steps, reduce, FeatureStep(kind="adjust", **use)]
