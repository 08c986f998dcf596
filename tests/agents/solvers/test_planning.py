"""A plan is walked one call at a time."""

import pytest

from owa_bench.agents.solvers.planning import PlanCall, Runner, ToolPlan, limited, reply, together


def plan() -> ToolPlan[PlanCall]:
    seen = yield PlanCall("http", {"url": "a"})
    again = yield from step(seen.value["next"])
    return PlanCall("finish", {"answer": again})


def step(url: str) -> ToolPlan[str]:
    seen = yield PlanCall("http", {"url": url})
    return seen.text


def test_walks_a_plan_and_repeats_its_end() -> None:
    runner = Runner(plan())
    assert runner.advance("ignored") == PlanCall("http", {"url": "a"})
    assert runner.advance('{"next": "b"}') == PlanCall("http", {"url": "b"})
    end = PlanCall("finish", {"answer": "done"})
    assert runner.advance("done") == end
    assert runner.advance("more") == end
    assert end.text() == '{"tool": "finish", "arguments": {"answer": "done"}}'


def errand(name: str, calls: int, *, wait: int = 0) -> ToolPlan[str]:
    """Call `calls` times, wait once before the last call, return the name."""
    for number in range(calls):
        if wait and number == calls - 1:
            yield PlanCall("wait", {"seconds": wait})
        yield PlanCall("http", {"url": f"{name}{number}"})
    return name


def walk(plan: ToolPlan[object]) -> tuple[object, list[str]]:
    """Return what a plan returned and its calls in short."""
    made: list[str] = []
    try:
        call = next(plan)
        while True:
            made.append(call.arguments.get("url") or f"wait {call.arguments['seconds']}")
            call = plan.send(reply("{}"))
    except StopIteration as end:
        return end.value, made


def test_several_plans_take_turns() -> None:
    found, made = walk(together([errand("a", 2), errand("b", 1), errand("c", 3)]))
    assert found == ["a", "b", "c"]
    assert made == ["a0", "b0", "c0", "a1", "c1", "c2"]


def test_nobody_waits_while_another_works_and_all_wait_at_once() -> None:
    plans = [errand("a", 2, wait=5), errand("b", 3), errand("c", 2, wait=9)]
    found, made = walk(together(plans))
    assert found == ["a", "b", "c"]
    assert made == ["a0", "b0", "c0", "b1", "b2", "wait 9", "a1", "c1"]


def test_no_plans_return_nothing() -> None:
    assert walk(together([])) == ([], [])


@pytest.mark.parametrize(("most", "returned", "calls"), [(3, "a", 3), (2, None, 2), (0, None, 0)])
def test_a_limited_plan_is_broken_off(most: int, returned: str | None, calls: int) -> None:
    found, made = walk(limited(errand("a", 3), most))
    assert (found, len(made)) == (returned, calls)
