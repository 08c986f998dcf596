"""Repositories of the family codebase, worked on without a crew."""

import json

import pytest

from owa_bench.envs.multicrew.code_repository import CodeRepository
from owa_bench.envs.multicrew.families import codebase
from owa_bench.envs.multicrew.suite import SUITE
from tests.builders import crew_episodes as episodes

FAMILY = "codebase"


def values_of(world):
    return {clause.name: clause.value for clause in world.clauses}


@pytest.fixture
def crew():
    """Return a world and its repository."""
    world = SUITE.generate(episodes.instance(FAMILY, 1, 3))
    code = CodeRepository(world)
    yield world, code
    code.close()


def source(world, item):
    return codebase.solution(item, values_of(world), {})["source"]


def commit(code, item, text, seat="lead", tick=1):
    code.commit(item, {"source": text}, {}, seat=seat, tick=tick)


def right(world, code, items):
    """Return the names of items that are right on main, needs and all."""
    answers = {n: json.loads(a) for n, a in code.examine(items).answers.items()}
    values = values_of(world)
    found = set()
    for item in world.items:
        if item.name in answers and found.issuperset(item.needs):
            before = {need: answers[need] for need in item.needs}
            if codebase.accepts(item, values, before, answers[item.name]):
                found.add(item.name)
    return found


def same_module(world):
    """Return two items of one module that need nothing of each other."""
    for one in world.items:
        for two in world.items:
            apart = one is not two and one.name not in two.needs
            if apart and codebase.path_of(one) == codebase.path_of(two):
                return one, two
    raise AssertionError
