"""`owa-bench play`, `norms` and `judge`: what is refused, and a course of scripts."""

import io
import json
import shlex
import sys

import msgspec
import pytest

from owa_bench.records.events import Action
from owa_bench.reports import statement
from tests.builders.run_directory import KEY, make_plan, make_run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("play --out x", "standard input is none: use --page"),
        ("play --out x --scripted --suite cartpole3d", "which has no tools to call"),
        ("play --out x --scripted --person 'a b'", "A person's name is letters"),
        ("play --out x --scripted --page --port 99999", "`--port` must lie in"),
        ("play --out x --resume --tier 2", "--tier shapes a plan"),
        ("play --out x --resume", "no plan.json"),
        ("run --agent person:ada --suite toolquest --out x", "`owa-bench play`"),
        ("norms x", "Give --out FILE"),
        ("norms x --out n --group cats", "must be one of adults, experts"),
        ("norms x --out n", "A run directory must exist"),
    ],
)
def test_wrong_use_is_one_line(owa, place, monkeypatch, words, said):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    found = owa(words)
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1


@pytest.mark.slow
def test_five_scripted_persons_give_synthetic_norms(owa, place, monkeypatch):
    draw = "--suite toolquest --family reconcile --tier 1 --delta 0"
    people = ("ada", "ben", "cy", "di", "ed")
    for person in people:
        monkeypatch.setattr("sys.stdin", io.StringIO('\nfinish {"p": 0}\n' * 2))
        found = owa(f"play {draw} --person {person} --scripted --out {person}")
        assert found.code == 0, found
        assert "1 of 1 episodes complete" in found.err
    made = owa(f"norms {' '.join(people)} --out norms.dsse.json")
    assert made.code == 0, made
    assert "synthetic norms" in made.err
    assert owa(f"norms {' '.join(people)} --check norms.dsse.json").code == 0
    assert owa(f"norms {' '.join(people[:4])} --check norms.dsse.json").code == 1
    run = f"run {draw} --interventions 0 --agent noop --out r --in-process"
    assert owa(run).code == 0
    assert owa("report r --norms norms.dsse.json").code == 0
    assert "synthetic norms" in (place / "r" / "report.html").read_text()
    assert owa("verify r").code == 0
    assert owa("recompute r").code == 0
    other = run.replace("delta 0", "delta 1").replace("--out r", "--out s")
    assert owa(other).code == 0
    refused = owa("report s --norms norms.dsse.json")
    assert refused.code == 2
    assert "must have the same terms" in refused.err


RUBRIC = """
schema = "owa-rubric-1"
name = "clarity"
question = "Is it clear?"
[scores]
0 = "no"
1 = "yes"
"""
RATER = """
import json, sys
asked = json.loads(sys.stdin.readline())
assert set(asked) == {"task", "text", "question", "scores"}, asked
assert "agentic" not in json.dumps(asked) and "fixed" not in json.dumps(asked)
print(json.dumps({"score": int(len(asked["text"]) % 2 == 0) ^ FLIP(asked["text"])}))
"""


def _rated_run(place):
    """A run of two agents whose texts are of different lengths."""

    def edit(entry, events):
        text = "done " * (1 + entry.index // 2) + "!" * (entry.index % 2)
        call = json.dumps({"tool": "finish", "arguments": {"answer": text}})
        last = max(e.step for e in events if isinstance(e, Action))
        return [
            msgspec.structs.replace(e, action=call)
            if isinstance(e, Action) and e.step == last
            else e
            for e in events
        ]

    (place / "rubric.toml").write_text(RUBRIC)
    for name, flip in (("agree", "lambda t: 0"), ("flip", "lambda t: len(t) // 5 % 2")):
        (place / f"{name}.py").write_text(RATER.replace("FLIP", f"({flip})"))
    return make_run(place / "run", make_plan(pairs=1), edit=edit)


@pytest.mark.slow
def test_two_raters_rate_blind_and_the_report_shows_their_agreement(owa, place, monkeypatch):
    layout = _rated_run(place)
    judge = "judge run --rubric rubric.toml --rater"
    assert owa("judge run").err.startswith("note: nobody has rated")
    assert "go with --rater NAME" in owa("judge run --rubric rubric.toml").err
    command = f"{sys.executable} agree.py"
    for rater in ("ada", "ben"):
        found = owa(f"{judge} {rater} --command '{command}'")
        assert found.code == 0, found
    shown = owa("judge run").out
    assert "Krippendorff's alpha" in shown
    assert "scores by raters" in shown
    again = owa(f"{judge} ada --command '{command}'")
    assert (again.code, "does not rate again" in again.err) == (2, True)
    statement.write(layout.root, KEY)
    page = layout.page.read_text()
    assert "Scores by raters" in page
    assert owa("verify run").code == owa("recompute run").code == 0
    assert owa(f"{judge} cy --command '{command}'").code == 0
    assert "two raters at most" in owa("judge run").err
    (layout.ratings / "cy.dsse.json").unlink()
    (layout.ratings / "ben.dsse.json").unlink()
    assert owa("verify run").code == 1
    flipped = f"{judge} ben --command '{sys.executable} flip.py'"
    assert owa(flipped).code == 0
    low = owa("judge run")
    assert "not reached: the ratings are shown, not scored" in low.err
    assert "scores by raters" not in low.out
    envelope = json.loads((layout.ratings / "ben.dsse.json").read_text())
    envelope["signatures"] = []
    (layout.ratings / "ben.dsse.json").write_text(json.dumps(envelope))
    assert "No signature" in owa("judge run").err
    assert owa("verify run").code == 1


@pytest.mark.parametrize("command", ["", " ", "'rate", "nosuchcommand"])
def test_a_command_that_cannot_rate_is_refused_and_nothing_is_kept(owa, place, command):
    layout = _rated_run(place)
    judge = "judge run --rubric rubric.toml --rater ada --command"
    refused = owa(f"{judge} {shlex.quote(command)}")
    assert refused.code == 2
    assert refused.err.startswith(("error: `--command` must be", "error: nosuchcommand"))
    assert refused.err.count("\n") == 1
    assert not layout.ratings.exists()


def test_a_person_rates_in_the_terminal(owa, place, monkeypatch):
    layout = _rated_run(place)
    monkeypatch.setattr("sys.stdin", io.StringIO("5\n" + "1\n" * 100))
    found = owa("judge run --rubric rubric.toml --rater ada")
    assert found.code == 0
    assert "one of 0, 1" in found.out
    assert "agentic" not in found.out
    assert (layout.ratings / "ada.dsse.json").exists()
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    stopped = owa("judge run --rubric rubric.toml --rater ben")
    assert (stopped.code, "nothing was kept" in stopped.err) == (2, True)
