"""The parser of served text: it solves cases, and each source that it leaves out costs."""

import pytest

from owa_bench.company.kinds.contract import THETA
from owa_bench.envs.casework.judge import case_quality
from owa_bench.envs.casework.kinds import FAMILIES, KINDS, TIERS
from tests.builders import cases

DELTAS = (0.0, 0.5, 1.0)
PLAYED = [(family, tier, delta) for family in FAMILIES for tier in TIERS for delta in DELTAS]
SHORT = [
    *(("credits", tier, delta) for tier, delta in ((1, 1.0), (2, 0.5), (3, 1.0))),
    *(
        (family, tier, delta)
        for family in ("close", "tariff")
        for tier, delta in ((1, 1.0), (2, 0))
    ),
]


@pytest.mark.parametrize(("family", "tier", "delta"), SHORT)
def test_the_parser_solves_each_case(family, tier, delta):
    episode = cases.play(cases.timeline(family, tier, delta=delta))
    assert episode.ending.q_state == 1.0
    assert episode.ending.outcome == "finished"


@pytest.mark.slow
@pytest.mark.parametrize(("family", "tier", "delta"), PLAYED)
def test_the_parser_solves_many_cases(family, tier, delta):
    for seed in range(cases.FIRST + 1, cases.FIRST + 4):
        assert cases.play(cases.timeline(family, tier, seed, delta)).ending.q_state == 1.0


@pytest.mark.parametrize("family", ["credits"])
def test_a_parser_that_leaves_a_source_out_answers_as_the_truth_without_it(family):
    """So the table of what a trap costs, made from truths, holds for what is played."""
    drawn = cases.world(family, 2)
    present = sorted({r for item in cases.final_truth(drawn).items for r in item.reasons})
    for source in present[:2]:
        episode = cases.play(cases.timeline(family, 2), {source})
        blind = cases.state_of(drawn, cases.final_truth(drawn, {source}))
        assert episode.session.state.settled == blind.settled
        assert episode.ending.q_state == pytest.approx(case_quality(drawn, blind), abs=1e-6)


def test_its_statements_are_right_where_it_is():
    episode = cases.play(cases.timeline("credits", 2))
    truths = {p.name: p.truth for p in KINDS["credits"].propositions(cases.world("credits", 2))}
    stated = {e.proposition: e.p for e in episode.log if type(e).__name__ == "Belief"}
    assert episode.ending.q_state >= THETA
    assert {name: p > 0.5 for name, p in stated.items() if name in truths} == truths
