import threading

import pytest

from owa_bench.errors import PlanError
from owa_bench.records.events import Action, Resource
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.budget import EpisodeSink, EpisodeTally, Exhausted, RunTally, totals
from tests.builders.episodes import PRICES


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Remembering:
    active = False

    def __init__(self) -> None:
        self.took = []

    def emit(self, event) -> None:
        self.took.append(event)

    def blob(self, data: bytes) -> str:
        return f"blob {data!r}"

    def secret(self, name: str, value: str) -> None:
        self.took.append((name, value))


def used(meter: str, amount: float) -> Resource:
    return Resource(step=1, meter=meter, amount=amount, source="harness")


def declared(meter: str, amount: float) -> Resource:
    return Resource(step=1, meter=meter, amount=amount, source="agent")


def acted() -> Action:
    return Action(
        step=1,
        action="{}",
        verified=False,
        reward=0.0,
        terminated=False,
        truncated=False,
        observation="",
        at_ms=0,
    )


def test_without_ceilings_nothing_runs_out() -> None:
    tally = EpisodeTally(Budget(), Clock())
    tally.take(used("tokens_in", 1e12))
    assert tally.exhausted() is None
    assert tally.wall_left() is None


def test_meter_runs_out_when_its_ceiling_is_reached() -> None:
    budget = Budget(episode_meters=(("api_calls", 3.0), ("tokens_in", 10.0)))
    tally = EpisodeTally(budget, Clock())
    tally.take(used("api_calls", 2))
    assert tally.exhausted() is None
    tally.take(used("api_calls", 1))
    found = tally.exhausted()
    assert found == Exhausted("api_calls", 3.0, 3.0, timed=False)
    assert found.reason == "budget:api_calls"


def test_money_is_what_env_and_harness_measured_by_the_card() -> None:
    """Neither what an agent declares nor a simulated supervisor spends any."""
    budget = Budget(run_meters=(("usd", 0.004),))
    run = RunTally(budget)
    tally = EpisodeTally(budget, Clock(), run, PRICES)
    tally.take(declared("tokens_in", 1e6))
    tally.take(used("supervisor_min", 90.0))
    tally.take(used("tokens_in", 1000.0))
    assert tally.exhausted() is None
    tally.take(used("tokens_out", 100.0))
    found = tally.exhausted()
    assert (found.reason, found.timed) == ("budget:usd", True)
    assert run.spent["usd"] == pytest.approx(0.0045)
    recorded = totals([used("tokens_in", 1000.0), declared("cpu_s", 9.0)], PRICES)
    assert recorded["usd"] == pytest.approx(0.003)


def test_money_is_a_ceiling_of_the_run_alone() -> None:
    with pytest.raises(PlanError, match=r"episode_meters.*usd"):
        EpisodeTally(Budget(episode_meters=(("usd", 1.0),)), Clock())


def test_steps_count_actions() -> None:
    tally = EpisodeTally(Budget(steps=2), Clock())
    tally.take(acted())
    assert tally.exhausted() is None
    tally.take(acted())
    assert tally.exhausted().reason == "budget:steps"


@pytest.mark.parametrize("meter", ["cpu_s", "gpu_s", "wall_s"])
def test_meter_that_depends_on_the_machine_is_timed(meter: str) -> None:
    tally = EpisodeTally(Budget(episode_meters=((meter, 1.0),)), Clock())
    tally.take(used(meter, 1.5))
    assert tally.exhausted() == Exhausted(meter, 1.0, 1.5, timed=True)


def test_wall_clock_runs_from_the_start_of_the_episode() -> None:
    clock = Clock()
    tally = EpisodeTally(Budget(episode_wall_s=5.0), clock)
    clock.now += 4.0
    assert tally.wall_left() == 1.0
    assert tally.exhausted() is None
    clock.now += 1.5
    assert tally.exhausted() == Exhausted("wall_s", 5.0, 5.5, timed=True)


def test_ceiling_of_the_run_counts_every_episode_and_is_timed() -> None:
    budget = Budget(run_meters=(("tokens_out", 10.0),))
    run = RunTally(budget, {"tokens_out": 4.0})
    one, two = (EpisodeTally(budget, Clock(), run) for _ in range(2))
    one.take(used("tokens_out", 3))
    assert two.exhausted() is None
    two.take(used("tokens_out", 3))
    for tally in (one, two):
        assert tally.exhausted() == Exhausted("tokens_out", 10.0, 10.0, timed=True)
    assert one.spent == {"tokens_out": 3.0}


def test_run_is_added_to_from_many_threads() -> None:
    run = RunTally(Budget())

    def add() -> None:
        for _ in range(2_000):
            run.add({"bytes": 1.0})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.spent == {"bytes": 8_000.0}


def test_metered_sink_counts_and_hands_on() -> None:
    inner = Remembering()
    tally = EpisodeTally(Budget(episode_meters=(("bytes", 1.0),)), Clock())
    sink = EpisodeSink(inner, tally, evaluation=False)
    sink.emit(used("bytes", 2.0))
    sink.secret("key", "value")
    assert sink.active
    assert sink.blob(b"x") == "blob b'x'"
    assert inner.took == [used("bytes", 2.0), ("key", "value")]
    assert tally.exhausted().meter == "bytes"


def test_resumed_run_begins_with_what_was_recorded() -> None:
    events = [acted(), used("bytes", 2.0), used("tokens_in", 1.0), used("bytes", 0.5)]
    assert totals(events) == {"bytes": 2.5, "tokens_in": 1.0}


@pytest.mark.parametrize(
    ("budget", "field"),
    [
        (Budget(episode_meters=(("tokens", 1.0),)), "budget.episode_meters"),
        (Budget(run_meters=(("cpu", 1.0),)), "budget.run_meters"),
        (Budget(run_meters=(("cpu_s", 0.0),)), "budget.run_meters.cpu_s"),
        (Budget(run_meters=(("cpu_s", float("nan")),)), "budget.run_meters.cpu_s"),
        (Budget(run_meters=(("cpu_s", float("inf")),)), "budget.run_meters.cpu_s"),
        (Budget(run_meters=(("cpu_s", 1.0), ("cpu_s", 2.0))), "budget.run_meters"),
        (Budget(steps=0), "budget.steps"),
        (Budget(act_s=0.0), "budget.act_s"),
        (Budget(act_s=float("nan")), "budget.act_s"),
        (Budget(episode_wall_s=-1.0), "budget.episode_wall_s"),
    ],
)
def test_bad_ceiling_is_named(budget: Budget, field: str) -> None:
    with pytest.raises(PlanError) as caught:
        RunTally(budget)
    assert caught.value.field == field


def test_a_meter_nearly_right_is_offered() -> None:
    with pytest.raises(PlanError, match="did you mean `api_calls`"):
        RunTally(Budget(run_meters=(("api_cals", 1.0),)))
