"""The part of the report's page that says what went wrong."""

import re

from owa_bench.reports.page.render_html import failures_part
from owa_bench.reports.page.templates import with_code
from owa_bench.reports.read.failures import KINDS, FailureSummary, read_episode, summarise
from tests.builders.failed_episodes import action, failed, finish, solved

HOSTILE = "<script>alert(1)</script>"


def page_of(*traces, arms=("agent", "other")):
    return str(failures_part(summarise(arms, map(read_episode, traces))))


def test_kinds_stand_by_agent_with_what_to_look_at():
    one = failed(solved(1, "docs"), action(2), finish(3))
    two = failed(finish(1), index=1, arm="other")
    page = page_of(one, two)
    assert "2 of 2 counted episodes failed" in page
    early, idle = (page.index(KINDS[kind].words) for kind in ("early", "idle"))
    assert idle < early  # in the order of precedence
    for kind in ("early", "idle"):
        assert KINDS[kind].next in page
    counts = re.findall(r'data-label="(agent|other)">(\d+|–)<', page)
    assert counts == [("agent", "–"), ("other", "1"), ("agent", "1"), ("other", "–")]
    assert 'href="view/index.html#000000.0"' in page
    assert "off the path at step 2" in page
    assert "first missed <code>key</code>" in page


def test_text_of_agents_is_escaped():
    page = page_of(failed(outcome="agent_raised", reason=HOSTILE, arm=HOSTILE), arms=(HOSTILE,))
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page


def test_a_run_without_failures_says_so():
    assert "No episode failed" in str(failures_part(FailureSummary(arms=("a",))))


def test_the_number_of_groups_is_of_all():
    rows = [
        read_episode(failed(outcome="agent_raised", reason=f"E{'x' * i}", index=i))
        for i in range(1, 31)
    ]
    page = str(failures_part(summarise(["agent"], rows, 20)))
    assert "The largest 10 of 30." in page
    assert page.count('data-label="episodes"') == 10


def test_what_stands_between_backticks_is_code():
    assert str(with_code("run `a < b` now")) == "run <code>a &lt; b</code> now"
