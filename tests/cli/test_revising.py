"""`owa-bench revise`: versions of one's own agent, and what is no subject."""

import re
from pathlib import Path

import msgspec
import pytest

from owa_bench.runs.laboratory.own_subject import OwnRevision
from tests.builders.sandboxes import needs_sandbox

PAGE = Path(__file__).parents[2] / "docs" / "selfrev.md"
BETTER = """\
        n = int(item[1])
        if item[2] == "1":
            self.seen = []
        same = self.seen[-n:][:1] == [item[3]] and len(self.seen) >= n
        self.seen.append(item[3])
"""
TEST = """\
import unittest
from agent import Agent

class Tests(unittest.TestCase):
    def test_answer(self):
        agent = Agent()
        agent.reset({})
        self.assertIn("WORD", str(agent.act("1-back, 1 of 24: x.")))
"""


@pytest.fixture
def subjects(place):
    """The subject of the docs page, a better version of it, and one of a note."""
    text = re.search(r"```python\n(import re.*?)```", PAGE.read_text(), re.S)[1]
    lines = text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "same, self.last" in line)
    better = "".join([*lines[:at], BETTER, *lines[at + 1 :]])
    for name, source in (
        ("base", text),
        ("better", better.replace('self.last = ""', "self.seen = []")),
        ("note", text + "# note\n"),
    ):
        (place / name).mkdir()
        (place / name / "agent.py").write_text(source)
    (place / "better" / "test_agent.py").write_text(TEST.replace("WORD", "answer"))
    (place / "note" / "test_agent.py").write_text(TEST.replace("WORD", "nothing"))
    return place


def found_of(subjects):
    data = (subjects / "found.json").read_bytes()
    return msgspec.json.decode(data, type=OwnRevision).versions


@needs_sandbox
def test_a_better_version_is_tested_and_shown(owa, subjects):
    said = owa("revise --subject base --version better --pairs 40 --out found.json")
    assert said.code == 0, said.err
    line = next(x for x in said.out.splitlines() if x.startswith("better"))
    assert "passed" in line
    assert "better (e-BH" in line
    [one] = found_of(subjects)
    gains = [pair.candidate.quality - pair.base.quality for pair in one.pairs]
    assert len(gains) == one.answer.pairs < 40
    assert sum(gains) > 0


@needs_sandbox
def test_a_note_is_counted_and_shows_nothing(owa, subjects):
    said = owa("revise --subject base --version note --pairs 10 --rule mean --out found.json")
    assert "FAILED" in said.out
    assert "not shown" in said.out
    assert "nothing" in said.err  # what the failed test says
    [one] = found_of(subjects)
    lines = 1 + TEST.count("\n")
    assert (one.files, one.added, one.removed) == (2, lines, 0)
    assert all(pair.candidate.quality == pair.base.quality for pair in one.pairs)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "must be a folder"),
        ({}, "must hold `agent.py`"),
        ({"other.py": "x = 1"}, "other.py"),
        ({"agent.py": "x" * 300_000}, "at most 64 files and 262144 bytes"),
        ({f"{i}.py": "" for i in range(70)}, "at most 64 files"),
        ({"agent.py": b"\xff\xfe"}, "must be text in UTF-8"),
    ],
)
def test_what_is_no_subject_is_named_with_its_rule(owa, subjects, files, message):
    if files is not None:
        (subjects / "odd").mkdir()
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            (subjects / "odd" / name).write_bytes(data)
    said = owa("revise --subject base --version odd")
    assert said.code == 2
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_link_out_of_the_folder_is_refused(owa, subjects):
    (subjects / "better" / "keys").symlink_to("/etc/passwd")
    said = owa("revise --subject base --version better")
    assert said.code == 2
    assert "no links" in said.err


@needs_sandbox
def test_a_program_that_raises_is_shown_with_its_line(owa, subjects):
    (subjects / "note" / "agent.py").write_text(
        "class Agent:\n    def reset(self, brief):\n        raise ValueError('no')\n"
    )
    said = owa("revise --subject base --version note")
    assert said.code == 2
    assert "`note` fails on Recall: ValueError: no (/subject/agent.py:3)" in said.err


@needs_sandbox
def test_the_same_version_twice_and_unknown_families_are_refused(owa, subjects):
    assert "same version" in owa("revise --subject base --version base").err
    said = owa("revise --subject base --version note --family nothing")
    assert "must be one of" in said.err
    said = owa("revise --subject base --version note --family ''")
    assert "got nothing" in said.err
    assert owa("revise --subject base --version note --rule all").code == 2


def test_a_place_for_the_findings_is_looked_at_before_anything_is_played(owa, subjects):
    said = owa("revise --subject base --version note --out nowhere/found.json")
    assert (said.code, "must lie in a folder that exists" in said.err) == (2, True)
