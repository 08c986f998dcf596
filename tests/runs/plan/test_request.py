"""A dry run: what a plan would take, by hand."""

import dataclasses

import pytest

from owa_bench.discovery import get
from owa_bench.errors import UnknownNameError
from owa_bench.records import price_card
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import WORKER_START_S, Request, draft_plan, estimate


def test_by_hand(small, run_options):
    budget = Budget(steps=10, act_s=2.0)
    asked = small("noop", "fixed", interventions=(0, 3), budget=budget)
    found = estimate(draft_plan(asked), run_options)
    assert found.episodes == 4
    assert found.by_arm == {"noop": 2, "fixed": 2}
    assert found.longest_s == 4 * 10 * 2.0
    assert found.unknown == ("tokens_in", "tokens_out")
    prices = price_card.load(draft_plan(asked).price_card)
    calls = prices.cost("api_calls", 4 * 10)
    hints = prices.cost("supervisor_min", 2 * 3 * 2.0)
    assert found.cost_micro_usd == calls
    assert (found.supervisor_min, found.supervisor_micro_usd) == (2 * 3 * 2.0, hints)
    assert hints > 0


def test_a_ceiling_bounds_a_meter(small, run_options):
    ceiling = Budget(steps=10, episode_meters=(("tokens_in", 5.0),))
    assert estimate(draft_plan(small("noop", budget=ceiling)), run_options).unknown == (
        "tokens_out",
    )
    free = Budget(steps=10)
    loose = estimate(draft_plan(small("noop", budget=free, interventions=(9,))), run_options)
    tight = Budget(steps=10, run_meters=(("supervisor_min", 1.0),))
    bound = estimate(draft_plan(small("noop", budget=tight, interventions=(9,))), run_options)
    assert (bound.supervisor_min, loose.supervisor_min) == (1.0, 9 * 2.0)
    assert bound.cost_micro_usd == loose.cost_micro_usd


def test_the_time_is_what_the_suites_cards_say(run_options):
    draws = tuple(
        Draw(name=name, tiers=(1,), deltas=(0.0,)) for name in ("toolquest", "changesurf")
    )
    asked = Request(agents=("noop",), draws=draws)
    entries = draft_plan(asked).plan.entries
    seconds = {name: get("suites", name).card.episode_s for name in ("toolquest", "changesurf")}
    assert seconds["changesurf"] > 5 * seconds["toolquest"]
    whole = sum(seconds[entry.suite] for entry in entries)
    found = estimate(draft_plan(asked), dataclasses.replace(run_options, workers=2))
    sizes = [get("suites", entry.suite).card.episode_bytes for entry in entries]
    assert found.record_bytes == sum(record for record, _ in sizes)
    assert found.transcript_bytes == sum(texts for _, texts in sizes)
    assert found.scripted_s == pytest.approx(whole / 2 + WORKER_START_S)


def test_the_web_battery_takes_hours(run_options):
    found = estimate(draft_plan(Request(agents=("agentic",), battery="web")), run_options)
    assert found.scripted_s > 3600.0


def test_nothing_is_written(small, run_options):
    estimate(draft_plan(small("noop")), run_options)
    assert not run_options.home.exists()


def test_a_wrong_request_raises_as_in_play(small, run_options):
    with pytest.raises(UnknownNameError):
        estimate(draft_plan(small("nop")), run_options)
