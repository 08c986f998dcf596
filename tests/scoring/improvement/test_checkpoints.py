"""A campaign in which every axis has evidence: AAI_dyn by day, kappa, tables."""

import pytest

from tests.builders.campaign import judged

pytestmark = pytest.mark.slow  # each judges a campaign of fourteen days


@pytest.mark.part(4)
def test_aai_dyn_has_a_slope_where_every_axis_has_evidence() -> None:
    whole = judged(0.01).kappas[0]
    assert whole.family is None
    assert whole.slope is not None, whole.reason
    assert whole.slope > 0
    assert whole.logit is not None
    assert {"per USD", "kappa_total, agent and human"} <= set(whole.details)
    flat = judged().kappas[0].slope
    assert flat == pytest.approx(0.0)


@pytest.mark.part(4)
def test_the_tables_of_a_campaign_are_there() -> None:
    titles = {table.title for table in judged(0.01).tables}
    assert {
        "Curvature of self-improvement",
        "Continuous score",
        "Theorem 3.1: what its assumptions measure here",
    } <= titles


def test_the_last_lines_are_those_of_level_five() -> None:
    lines = [gate for gate in judged(0.01).gates if gate.level == 5]
    assert len(lines) == 6
    assert {line.status for line in lines} == {"NO EVIDENCE"}
