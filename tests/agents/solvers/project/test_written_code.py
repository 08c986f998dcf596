"""Code that agents write: features from prose, calls rewritten by changelogs."""

import sys
import types

import numpy as np
import pytest

from owa_bench.agents.solvers.project import feature_code, library_contract
from owa_bench.discovery import get
from owa_bench.envs.projforge import generate
from owa_bench.envs.projforge.world_code import changelog, library_source
from owa_bench.envs.projforge.world_rules import answer, draw_request, feature_prose

OPERATORS = {
    "major_rename": "name",
    "signature_change": "order",
    "deprecation_with_sunset": "alias",
}


def forms_of(world):
    """Return the calls by library that its manual and changelog tell."""
    forms = {}
    for library in world.libraries:
        sections = library_contract.changelog_sections(changelog(library))
        told = library_contract.manual_forms(changelog(library))
        for section in sections[1:]:
            told = library_contract.told_forms(told, section)
        forms[library.name] = told
    return forms


def written(world, forms):
    return {
        feature.name: feature_code.function_code(
            feature_code.Issue(feature.name, feature_prose(world, feature)), forms
        )
        for feature in world.features
    }


def handler(world, functions, monkeypatch, *, day=20):
    for library in world.libraries:
        module = types.ModuleType(library.name)
        exec(library_source(library, day), vars(module))
        monkeypatch.setitem(sys.modules, library.name, module)
    names = tuple(library.name for library in world.libraries)
    service = types.ModuleType("service")
    code = feature_code.service_code(functions, names, wrapped=False)
    exec(code, vars(service))
    return service.handle


def wrong_in(world, functions, monkeypatch, **options):
    """Return the features that written code answers wrongly to some request."""
    handle = handler(world, functions, monkeypatch, **options)
    rng = np.random.default_rng(0)
    requests = [draw_request(world, rng) for _ in range(4)]
    return {
        feature.name
        for feature in world.features
        if [handle(feature.name, r) for r in requests]
        != [answer(world, feature, r) for r in requests]
    }


@pytest.mark.parametrize("domain", generate.DOMAINS)
def test_every_sentence_of_an_issue_becomes_code(domain, monkeypatch):
    for seed in range(3):
        world = generate.draw_world(seed, domain, 3)
        assert not wrong_in(world, written(world, forms_of(world)), monkeypatch)


@pytest.mark.parametrize(("name", "prefix"), OPERATORS.items())
def test_calls_follow_what_changelogs_tell(name, prefix, monkeypatch):
    world = generate.draw_world(1, "billing", 1)
    functions, before = written(world, forms_of(world)), forms_of(world)
    operator, rng = get("operators", f"project/{name}"), np.random.default_rng(0)
    for library in world.libraries:
        world = operator.apply(world, f"{prefix}/{library.name}", 0.1, rng=rng)
    stale = dict(functions)
    for library, after in forms_of(world).items():
        for feature, code in functions.items():
            functions[feature] = library_contract.rewritten(code, library, before[library], after)
    assert functions != stale
    assert not wrong_in(world, functions, monkeypatch)
    with pytest.raises((AttributeError, IndexError)):
        wrong_in(world, stale, monkeypatch, day=29)


def test_a_rewritten_call_can_be_rewritten_again():
    plain = library_contract.CallForm(name="settle", order=("amount", "level"))
    moved = library_contract.CallForm(
        name="settle_of", order=("level", "amount"), scale=10, offset=1, default="up"
    )
    code = "value = tariffa.settle(r['cents'], 2, rounding='down') + tariffa.settle(value, 0)\n"
    there = library_contract.rewritten(code, "tariffa", {"settle": plain}, {"settle": moved})
    assert there == (
        "value = (tariffa.settle_of(2, r['cents'], rounding='down') - 1) // 10 + "
        "(tariffa.settle_of(0, value, rounding='half_up') - 1) // 10\n"
    )
    back = library_contract.rewritten(there, "tariffa", {"settle": moved}, {"settle": plain})
    assert back == code
    other = library_contract.rewritten(code, "gradus", {"settle": plain}, {"settle": moved})
    assert other == code


def test_what_functions_answer_gives_their_forms():
    now = {
        "compute_levy": [["level", "amount"], [21, 41, 61, 81], ["down"], False],
        "levy": [["amount", "level"], [21, 41, 61, 81], ["down"], True],
    }
    forms = library_contract.measured_forms(("levy",), {"levy": [2, 4, 6, 8]}, now)
    assert forms == {
        "levy": library_contract.CallForm(
            name="compute_levy", order=("level", "amount"), default="down", scale=10, offset=1
        )
    }


def test_only_a_message_of_the_contract_test_is_read():
    assert library_contract.found_in("1 passed") == {}
    assert library_contract.found_in('FOUND {"gradus":{}} END') == {"gradus": {}}
