"""Words of the held-out third never stand in a practice world; elsewhere they do."""

import pytest

from owa_bench.envs.toolquest.draws import practice_share
from owa_bench.envs.toolquest.families import FAMILIES
from owa_bench.envs.toolquest.generate import TIERS, generate
from owa_bench.records.instance import Instance
from owa_bench.seeding import PRACTICE_BIT

SEEDS = range(12)


def held_out(words):
    return set(words[practice_share(len(words)) :])


def plans(family):
    """Yield (vendor key, resource plan) of everything a family may rest on."""
    for vendor in FAMILIES[family].templates:
        for resource in vendor.resources:
            yield vendor.key, resource


def worlds(family, first):
    for seed in SEEDS:
        yield generate(
            Instance(
                suite="toolquest",
                version=3,
                family=family,
                tier=TIERS[seed % len(TIERS)],
                seed=first + seed,
            )
        )


def shown(world, family):
    """Yield each word of a world with the held-out words of its place."""
    for vendor, plan in plans(family):
        for provider in world.providers:
            if provider.key.partition("-")[0] != vendor:
                continue
            for side in (provider.contract, provider.documented):
                for resource in side.resources:
                    if resource.key == plan.key:
                        yield from _words(resource, plan)


def _words(resource, plan):
    slugs = {slug.rpartition("/")[2] for slug in held_out(plan.slugs)}
    for path in (resource.path, *resource.other_paths):
        yield path.rpartition("/")[2], slugs
    fields = {field.key: field for field in plan.fields}
    for field in resource.fields:
        if field.key not in fields:
            continue  # what documents may list and nobody serves
        for name in (field.name, *field.aliases):
            yield name, held_out(fields[field.key].names)
        named = zip(field.choices, fields[field.key].choices, strict=True)
        for choice, (_, *others) in named:
            for name in choice.aliases:
                yield name, held_out(others)


@pytest.mark.parametrize("family", FAMILIES)
def test_practice_knows_no_held_out_word(family):
    for world in worlds(family, PRACTICE_BIT):
        assert not [word for word, kept in shown(world, family) if word in kept]


@pytest.mark.parametrize("family", FAMILIES)
def test_other_worlds_use_held_out_words(family):
    used = {
        word for world in worlds(family, 0) for word, kept in shown(world, family) if word in kept
    }
    assert len(used) > 20


@pytest.mark.parametrize("family", FAMILIES)
def test_titles_of_practice_vendors_are_of_the_practice_share(family):
    suffixes = set()
    for vendor in FAMILIES[family].templates:
        suffixes |= held_out(vendor.suffixes)
    titles = {
        p.title.partition(" ")[2]
        for world in worlds(family, PRACTICE_BIT)
        for p in world.providers
        if not p.distractor
    }
    known = {
        word
        for vendor in FAMILIES[family].templates
        for word in vendor.suffixes[: practice_share(len(vendor.suffixes))]
    }
    assert titles
    assert not titles & (suffixes - known)
