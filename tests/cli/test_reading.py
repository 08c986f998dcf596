"""`owa-bench play --folder` and `readers`: wrong use, and a course from end to end."""

import json

import pytest

from tests.builders.reading import ScriptedReader, call
from tests.builders.run_directory import make_plan, make_run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("play --out x --reader mine", "--reader needs --folder DIR"),
        ("play --out x --folder d --page", "--page is for a person"),
        ("play --out x --folder d --scripted", "--scripted is for a person"),
        ("play --out x --folder d --person ada", "--person is for a person"),
        ("play --out x --folder d --reader 'a b'", "A reader's name is letters"),
        ("play --out x --folder x", "must lie apart from the run directory"),
        ("play --out x --folder .", "must lie apart from the run directory"),
        ("play --out x --folder full", "must be empty or new"),
        ("play --out x --folder d --suite cartpole3d", "which has no tools to call"),
        ("play --out x --folder d --resume --tier 2", "--tier shapes a plan"),
        ("play --out x --folder d --resume", "no plan.json"),
        ("run --agent reader:mine --suite toolquest --out x", "`owa-bench play`"),
        ("readers x", "A run directory must exist"),
    ],
)
def test_wrong_use_is_one_line(owa, place, words, said):
    (place / "full").mkdir()
    (place / "full" / "file").write_text("x")
    found = owa(words)
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1


def test_readers_are_played_and_printed(owa, place):
    draw = "--suite toolquest --family reconcile --tier 1 --delta 0 --episodes 2"
    script = ScriptedReader(place / "desk", lambda *_: call("finish", p=0.25))
    script.start()
    played = owa(f"play {draw} --folder desk --reader mine --out mine")
    script.end()
    assert played.code == 0, played
    assert "open for the reader: desk/0001" in played.err
    assert "2 of 2 episodes complete" in played.err
    make_run(place / "others", make_plan(pairs=1))

    printed = owa("readers mine others")
    assert printed.code == 0
    assert "others has no arm `reader:NAME`: it is left out" in printed.err
    (row,) = json.loads(owa("readers mine --json").out)
    assert row["reader"] == "mine"
    assert (row["episodes"], row["tasks"], row["successes"]) == (2, 2, 0)
    assert (row["low"], round(row["high"], 3)) == (0.0, 0.842)
    assert (row["acts"], row["p"], row["brier"]) == (2, 0.25, 0.0625)
    lines = owa("readers mine --markdown").out.splitlines()
    assert lines[0].startswith("| run | reader | suite | tier |")
    assert lines[1].startswith("| --- |")
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:9] == [*("mine", "mine", "toolquest", "1", "2", "2", "2", "0/2"), "0.00 to 0.84"]
    assert cells[-2:] == ["0.25", "0.0625"]
    assert len(lines) == 3

    (shard,) = (place / "mine" / "trace").glob("*.zst")
    shard.write_bytes(shard.read_bytes()[:-20])
    broken = owa("readers mine others --markdown")
    assert broken.code == 1
    assert "mine does not verify" in broken.err
    assert len(broken.out.splitlines()) == 2
