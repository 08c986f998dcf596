"""Fixtures of small runs."""

from tests.builders.small_runs import (  # noqa: F401
    call,
    end,
    layout,
    played,
    run_options,
    small,
    start,
    subgoal,
    toy_plan,
)
