"""Each skill switched off leaves undone what it is for, on live worlds."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from owa_bench import discovery
from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.api_solver.self_checks import audit, share
from owa_bench.agents.solvers.api_solver.solver import ApiSolver
from owa_bench.agents.solvers.api_solver.task_state import TaskState
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import Security
from owa_bench.agents.solvers.planning import Runner, reply
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.interfaces import Brief
from owa_bench.records.instance import Instance

SEEDS = range(6)
# The drift that each skill withstands, at full magnitude; None: no drift at all.
DRIFT = {
    "pages": None,
    "repages": "nested:D1+D2",
    "searches": "nested:D2",
    "adds_up": "single:api/silent_units",
}


def work(seed: int, config: SkillConfig, calendar: str | None, folder: Any) -> TaskState:
    """Let one solver work on one world; return its task state."""
    schedule = calendars.parse(calendar or "nested", "api")
    suite = discovery.get("suites", "toolquest")
    env = suite.env(timelines.source("toolquest", schedule), interventions=0)
    plain = Instance(suite="toolquest", version=3, family="reconcile", tier=1, seed=seed)
    delta = 1.0 if calendar else 0.0
    step = timelines.drift_step("toolquest", plain, delta, schedule)
    drifted = msgspec.structs.replace(plain, drift_step=step)
    observation, _ = env.reset(options={"instance": drifted})
    task = env.unwrapped.task
    brief = Brief(text=task.text, goal=task.goal, interventions_left=0)
    job = ApiSolver(brief, FactMemory(folder), config)
    runner, over = Runner(job.solve()), False
    while not over:
        action = runner.advance(observation["text"]).text()
        observation, _, ended, cut, _ = env.step(action)
        over = ended or cut
    env.close()
    return job.task


@pytest.mark.parametrize("skill", DRIFT)
def test_without_a_skill_tables_are_less_sound(skill: str, tmp_path: Any) -> None:
    calendar = DRIFT[skill]
    off = dataclasses.replace(ALL_SKILLS, **{skill: False})
    pairs = [
        tuple(share(audit(work(seed, h, calendar, tmp_path))) for h in (ALL_SKILLS, off))
        for seed in SEEDS
    ]
    assert all(whole >= lacking for whole, lacking in pairs), pairs
    assert any(whole == 1.0 > lacking for whole, lacking in pairs), pairs


def test_without_waiting_a_limit_is_the_end() -> None:
    said = reply('{"status": 429, "headers": {"retry-after": "3"}, "body": {}}')
    hasty = HttpSession(0, waits=False).http("GET", "https://h.example/a")
    next(hasty)
    with pytest.raises(StopIteration) as end:
        hasty.send(said)
    assert end.value.value.status == 429
    patient = HttpSession(0).http("GET", "https://h.example/a")
    next(patient)
    assert patient.send(said).tool == "wait"


@pytest.mark.parametrize("skill", ["guesses", "weighs"])
def test_one_way_of_naming_is_enough_and_none_leaves_roles_out(skill: str, tmp_path: Any) -> None:
    """Fields renamed under stale documents are named by words or by values."""
    none = dataclasses.replace(ALL_SKILLS, guesses=False, weighs=False)
    one = dataclasses.replace(none, **{skill: True})
    lacking = {
        config: sum(
            sheet.lacks
            for seed in SEEDS
            for sheet in work(seed, config, "nested:D1+D2", tmp_path).tables.values()
        )
        for config in (none, one)
    }
    assert lacking[one] == 0
    assert lacking[none] > 0


def test_without_retries_the_first_refusal_stands(tmp_path: Any) -> None:
    desk = HttpSession(0)
    security = Security("header", "X-Key")
    access = AuthenticatedClient(
        "Halden", security, "https://h.example", desk, FactMemory(tmp_path), retries=False
    )
    plan = access.request("GET", "https://h.example/a")
    assert next(plan).tool == "vault"
    entries = [{"name": name, "about": "Halden"} for name in ("one", "two")]
    assert plan.send(reply(json.dumps({"entries": entries}))).arguments == {"name": "one"}
    assert plan.send(reply('{"value": "secret"}')).tool == "http"
    with pytest.raises(StopIteration) as end:
        plan.send(reply('{"status": 401, "headers": {}, "body": {}}'))
    assert end.value.value.status == 401
    assert desk.statuses[401] == 1


def test_a_twin_desk_repeats_nothing_that_was_served() -> None:
    desk = HttpSession(3)
    plan = desk.http("GET", "https://h.example/a", query={"page": 1})
    next(plan)
    with pytest.raises(StopIteration):
        plan.send(reply('{"status": 200, "headers": {}, "body": [1]}'))
    twin = desk.cached_copy(waits=False)
    assert twin.hints == 0
    again = twin.http("GET", "https://h.example/a", query={"page": 1})
    with pytest.raises(StopIteration) as end:
        next(again)
    assert end.value.value.body == [1]
    assert next(twin.http("GET", "https://h.example/a", query={"page": 2})).tool == ("http")
