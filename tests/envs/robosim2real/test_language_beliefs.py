"""Propositions of the language view: a coin for who does not measure, known to who does."""

import json

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.envs.robosim2real.language import beliefs
from owa_bench.envs.robosim2real.world import Body
from tests.builders import arm_tool_episodes as episodes
from tests.builders.arm_tool_episodes import SUITE, ArmTable

SEEDS = 1000


@pytest.fixture(scope="module")
def worlds():
    return [SUITE.generate(episodes.instance("push", 1, seed)) for seed in range(SEEDS)]


@pytest.mark.parametrize("name", beliefs.KINDS)
def test_a_proposition_is_true_of_about_half_of_the_units(name, worlds):
    claim = beliefs.CLAIMS[name]
    true = np.mean([claim.number(world) > claim.above for world in worlds])
    assert 0.45 <= true <= 0.55


@pytest.mark.parametrize("name", beliefs.KINDS)
def test_no_constant_is_better_than_a_coin(name, worlds):
    claim = beliefs.CLAIMS[name]
    truth = np.array([claim.number(world) > claim.above for world in worlds], dtype=float)
    scores = [np.mean((p - truth) ** 2) for p in np.linspace(0, 1, 101)]
    assert min(scores) > 0.2475


def test_the_text_is_the_same_for_every_unit():
    assert (
        len(
            {json.dumps(ArmTable("push", seed=seed).episode.task.propositions) for seed in range(9)}
        )
        == 1
    )


def test_the_card_names_every_kind():
    assert SUITE.card.proposition_kinds == beliefs.KINDS


@pytest.mark.parametrize("family", ["reach", "pick_place"])
def test_who_measures_knows(family, tmp_path):
    """The reference states what it measured: far less than the .25 of a coin."""
    errors = {name: [] for name in beliefs.KINDS}
    for seed in range(12):
        _, actions = episodes.play(episodes.reference, tmp_path, family, 1, seed)
        stated = json.loads(actions[-1])["arguments"]["beliefs"]
        line = episodes.timeline(episodes.instance(family, 1, seed))
        for entry in SUITE.oracle.propositions(line):
            errors[entry.name].append((stated[entry.name] - entry.truth) ** 2)
    assert {name: np.mean(of) < 0.15 for name, of in errors.items()} == dict.fromkeys(errors, True)


def test_drift_counts_in_the_truth():
    table = ArmTable(body={"dead_time": 0.15, "camera": (0.05, 0.0, 0.0)})
    truths = {one.name: one.truth for one in SUITE.oracle.propositions(table.timeline)}
    assert truths["delay"]
    assert truths["camera"]


def test_the_drawing_has_no_offset_and_its_delay_reads_as_none():
    table = ArmTable(unit=Body())
    for claim in beliefs.CLAIMS.values():
        assert claim.number(table.world) == pytest.approx(0.0, abs=0.01)
    assert table.call("calibrate", what="delay")["measured"]["delay_ms"] < 20
    camera = table.call("calibrate", what="camera")["measured"]
    assert camera == {"camera_offset_mm": [0.0, 0.0, 0.0], "camera_turn_deg": 0.0}
    assert table.call("calibrate", what="encoders")["measured"]["encoder_offset_mm"] == [
        0.0,
        0.0,
        0.0,
    ]


def test_a_measured_delay_is_that_of_the_unit_within_the_spread():
    gaps = []
    for seed in range(16):
        table = ArmTable(seed=seed)
        measured = table.call("calibrate", what="delay")["measured"]["delay_ms"]
        gaps.append(measured - beliefs.delay_ms(table.world))
    assert abs(np.mean(gaps)) < 10
    assert np.std(gaps) < 15
