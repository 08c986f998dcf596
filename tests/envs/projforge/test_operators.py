"""Operators of ProjForge: their contract, and that features ask for the same after."""

import numpy as np
import pytest

from owa_bench.contract_checks import check_operator
from owa_bench.discovery import find
from owa_bench.envs.projforge.generate import DOMAINS, draw_world
from owa_bench.envs.projforge.world import distance
from owa_bench.envs.projforge.world_code import library_source, reference_service
from owa_bench.envs.projforge.world_rules import answer, requests_of
from owa_bench.seeding import stream

OPERATORS = {
    name: found.plugin for name, found in find("operators").items() if name.startswith("project/")
}
OF_RESULTS = {"behaviour_change", "default_changed"}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_contract_holds(name):
    check_operator(OPERATORS[name], [draw_world(3, d, 2) for d in DOMAINS])


@pytest.mark.parametrize("name", OPERATORS)
def test_features_ask_for_the_same_after_a_change(name):
    world = draw_world(5, "billing", 2)
    chosen = OPERATORS[name]
    for target in chosen.targets(world):
        drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(1))
        assert 0 < distance(world, drifted) < 1
        assert drifted.features == world.features
        assert [lib.rules for lib in drifted.libraries] == [lib.rules for lib in world.libraries]


def product(world, day, source):
    """Return `handle` of a product on the world's libraries, in this process."""
    modules = {}
    for library in world.libraries:
        scope = {}
        exec(library_source(library, day), scope)
        modules[library.name] = type("Library", (), {})
        for name, value in scope.items():
            setattr(modules[library.name], name, staticmethod(value) if callable(value) else value)
    lines = [line for line in source.splitlines() if not line.startswith("import ")]
    exec("\n".join(lines), modules)
    return modules["handle"]


def share_right(world, day, source):
    handle, right, count = product(world, day, source), 0, 0
    for feature in world.features:
        for name, request in requests_of(world, feature, stream(1, feature.name), 3):
            count += 1
            try:
                value = handle(name, request)
            except (AttributeError, TypeError, IndexError):
                continue
            right += value in (
                answer(world, feature, request),
                {"answer": answer(world, feature, request)},
            )
    return right / count


@pytest.mark.parametrize("name", OPERATORS)
def test_adapted_code_answers_rightly_and_old_code_does_not_where_libraries_bite(name):
    world = draw_world(7, "inventory", 1)
    old = reference_service(world, world.features, adapted=False)
    assert share_right(world, 0, old) == 1.0
    chosen = OPERATORS[name]
    for target in chosen.targets(world):
        drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(2))
        for day in (0, 29):
            new = reference_service(drifted, drifted.features)
            assert share_right(drifted, day, new) == 1.0
        if name.split("/")[1] in {"behaviour_change", "major_rename", "signature_change"}:
            assert share_right(drifted, 0, old) < 1.0


def test_every_silent_change_shows_in_the_examples_of_a_feature():
    """What an agent can check: three examples of each feature that uses the library."""
    seen = {}
    for seed in range(6):
        world = draw_world(seed, DOMAINS[seed % 4], 2)
        old = reference_service(world, world.features, adapted=False)
        for name in OF_RESULTS:
            chosen = OPERATORS[f"project/{name}"]
            for target in chosen.targets(world):
                drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(3))
                seen.setdefault(name, []).append(share_right(drifted, 0, old) < 1.0)
    assert np.mean(seen["behaviour_change"]) >= 0.95
    assert np.mean(seen["default_changed"]) >= 0.5
