"""The page of cases: the case that it tells is the one that is played."""

import re
from pathlib import Path

from owa_bench.envs.casework.judge import case_truth
from tests.builders import cases

PAGE = Path(__file__).parents[3] / "docs/casework.md"


def test_the_replies_that_the_page_quotes_are_served():
    story = PAGE.read_text().split("## A case from brief to verdict")[1].split("\n## ")[0]
    quoted = [line.strip() for line in re.findall(r"^ {4}(.*)$", story, re.M)]
    assert len(quoted) >= 6
    timeline = cases.timeline("credits", 2, 10_007)
    texts = []
    episode = cases.play(timeline, texts=texts)
    served = " ".join(" ".join(texts).split()) + episode.task.text
    for line in quoted:
        assert line in served, line
    truth = case_truth(timeline.worlds[0], episode.session.state)
    answers = {item.id: item.answer for item in truth.items}
    assert answers["R-02"]["amount_cents"] == 330
    assert answers["R-12"]["code"] == "duplicate"
    assert episode.ending.q_state == 1.0


def test_the_page_names_every_operator():
    from owa_bench.discovery import find

    names = {n.partition("/")[2] for n in find("operators") if n.startswith("casework/")}
    assert names == set(re.findall(r"`(\w+)`", PAGE.read_text().split("## Drift")[1])) & names
