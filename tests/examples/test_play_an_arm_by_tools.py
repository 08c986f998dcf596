"""The example of the language view: it prints brief, calls, replies and verdict."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("numba")

EXAMPLE = Path(__file__).parents[2] / "examples" / "play_an_arm_by_tools.py"
PAGE = Path(__file__).parents[2] / "docs" / "armtools.md"


def printed(capsys, monkeypatch, *arguments):
    spec = importlib.util.spec_from_file_location("play_an_arm_by_tools", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["play_an_arm_by_tools.py", *arguments])
    module.main()
    return capsys.readouterr().out


def form(text):
    """Return a text without its breaks and numbers, which an engine may round otherwise."""
    return re.sub(r"-?\d+(\.\d+)?", "#", " ".join(text.split()))


def test_the_page_tells_the_episode_that_the_example_plays(capsys, monkeypatch):
    out = printed(capsys, monkeypatch, "push", "--seed", "7")
    assert "q_state 1," in out
    page = form(PAGE.read_text())
    brief, *calls = out.split("\n\n> ")
    assert form(brief) in page
    told = [call for call in calls if form(call) in page]
    assert len(told) >= 9
