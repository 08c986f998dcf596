"""Reference agents of both suites: they hold the contract and separate by class."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from owa_bench.contract_checks import check_agent
from owa_bench.discovery import get
from owa_bench.drift.calendar import nested
from owa_bench.drift.timeline import drift_step, own_schedule, source
from owa_bench.interfaces import AgentConfig
from owa_bench.records.instance import Instance

SUITE = get("suites", "projforge_fast")
AGENTS = ("project_template", "pin_bumper", "codemod", "property_tester")


def mean_quality(name, *classes, tier=1, seeds=4):
    """Return an agent's mean quality where all changes of some classes strike."""
    calendar = replace_strikes(classes)
    env = SUITE.env(source("projforge_fast", calendar))
    found = []
    for seed in range(seeds):
        chosen = Instance(
            suite="projforge_fast",
            version=2,
            family=SUITE.card.families[seed % 4],
            tier=tier,
            seed=seed,
        )
        step = drift_step("projforge_fast", chosen, 1.0, calendar)
        agent = get("agents", name).make(AgentConfig())
        chosen = replace(chosen, drift_step=step if classes else 0)
        observation, info = env.reset(options={"instance": chosen})
        over = False
        while not over:
            action = agent.act(observation, info)
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        found.append(info["q_state"])
    return float(np.mean(found))


def replace_strikes(classes):
    calendar = nested("project", classes)
    return dataclasses.replace(calendar, suite_schedule=own_schedule(SUITE))


@pytest.mark.parametrize("name", AGENTS)
def test_the_contract_holds(name, tmp_path):
    check_agent(get("agents", name), SUITE, tmp_path)


@pytest.mark.parametrize("name", AGENTS)
def test_without_drift_every_agent_delivers(name):
    assert mean_quality(name) == pytest.approx(1.0)


def test_agents_separate_by_the_class_of_what_changes():
    told = {name: mean_quality(name, "D1") for name in AGENTS}
    shown = {name: mean_quality(name, "D2") for name in AGENTS}
    silent = {name: mean_quality(name, "D3") for name in AGENTS}
    assert shown["project_template"] < 0.5 < 0.95 < shown["pin_bumper"]
    assert told["pin_bumper"] < 0.6 < 0.95 < told["codemod"]
    assert silent["codemod"] < 0.6 < 0.95 < silent["property_tester"]


def change(name, prefix):
    """Return what an operator makes of every library of a world."""
    chosen = get("operators", f"project/{name}")

    def changed(world):
        for library in world.libraries:
            rng = np.random.default_rng(1)
            world = chosen.apply(world, f"{prefix}/{library.name}", 0.1, rng=rng)
        return world

    return changed


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.project
def test_agents_that_write_code_separate_by_the_class_of_what_changes(project, tmp_path):
    cases = (
        (change("yanked", "number"), "project_template", "pin_bumper"),
        (change("signature_change", "order"), "pin_bumper", "codemod"),
        (change("behaviour_change", "result"), "codemod", "property_tester"),
    )
    for struck, *names in cases:
        last = []
        for name in names:
            memory = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            memory.mkdir()
            forge = project(days=9, changes={5: struck}).develop(name, memory)
            assert forge.state.scores.acceptance[4] == 1.0
            assert not forge.state.breaches
            last.append(forge.state.scores.acceptance[-1])
        assert last == [0.0, 1.0]
