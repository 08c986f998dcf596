"""Readers play through files: what they are given, what is taken, what is kept."""

import json
import os
import re
import threading

import pytest

from owa_bench.bridges import reader, reader_folder
from owa_bench.bridges.person import play_person
from owa_bench.bridges.reader import play_reader
from owa_bench.bridges.reader_text import MOST_UNREADABLE, example_call
from owa_bench.errors import UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.records.events import Resource
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.reports import statement, verify
from owa_bench.reports.export.readers import reader_table
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from tests.bridges.scripts import instances_of, scripts_of
from tests.builders.reading import ScriptedReader, call, write_whole

FINISH = call("finish", p=0.25)


def request(suite="toolquest", families=("reconcile",), tier=1, **changes):
    draw = Draw(
        name=suite,
        families=families,
        tiers=(tier,),
        deltas=(0.0,),
        interventions=(0,),
        **{k: changes.pop(k) for k in ("episodes",) if k in changes},
    )
    return Request(agents=("reader:mine",), draws=(draw,), **changes)


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Return a function that lets a scripted reader play; run and folder beside it."""
    monkeypatch.setattr(reader, "POLL_S", 0.01)
    monkeypatch.setattr(reader_folder, "GRACE_S", 0.05)
    layout = RunLayout(tmp_path / "run")
    options = RunOptions(home=tmp_path / "home")

    def played(answer, asked=None, door=tmp_path / "desk"):
        script = ScriptedReader(door, answer)
        script.start()
        summary = play_reader(asked, layout.root, options, door)
        script.end()
        return summary

    played.layout, played.home, played.options = layout, options.home, options
    played.door = tmp_path / "desk"
    return played


def ends(layout):
    leaves = [leaf for leaf in files.read_leaves(layout) if leaf.status == "complete"]
    return [files.read_trace(layout, leaf).end for leaf in leaves]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def planned(play, asked):
    """Write the plan alone, so that its answers are known; play it with None."""
    batch.play(asked, play.layout.root, play.options, plan_only=True)


def by_script(scripts):
    """Answer with each entry's script, one call a turn."""
    waiting = [list(script) for script in scripts]

    def answer(folder, text):
        return waiting[int(folder.name) - 1].pop(0)

    return answer


def test_a_reader_sees_files_alone_and_plays_a_run_like_any_other(play):
    planned(play, request(episodes=2))
    scripts = scripts_of(play.layout, play.home)
    assert play(by_script(scripts)).complete == 2
    assert (play.door / "where.txt").read_text() == "done\n"
    assert names(play.door) == ["0001", "0002", "where.txt"]
    folder = play.door / "0001"
    acts = [json.loads((folder / f"act-{n:04d}.json").read_text()) for n in (1, 2)]
    assert acts == scripts[0][:2]
    count = len(scripts[0])
    kept = {f"act-{n:04d}.json" for n in range(1, count + 1)}
    kept |= {f"next-{n:04d}.txt" for n in range(count)}
    assert set(names(folder)) == {"brief.txt", "next.txt", *kept}
    assert [end.q_state for end in ends(play.layout)] == [1.0, 1.0]
    (arm,) = read_plan(play.layout).arms
    assert (arm.name, arm.agent, arm.hosting) == ("mine", "reader:mine", "reader")
    assert [check for check in verify.verify(play.layout.root) if not check.ok] == []
    judged = statement.write(play.layout.root, keys.load(play.home, keys.DEFAULT))
    assert judged.verdicts[0].counted == 2
    assert [check for check in verify.verify(play.layout.root) if not check.ok] == []
    assert all(check.ok for check in verify.recompute(play.layout.root))
    escrow.reveal(play.home, play.layout)
    assert replay.replay_run(play.layout).passed


def test_the_brief_says_everything_and_nothing_of_the_harness(play):
    planned(play, request())
    (script,) = scripts_of(play.layout, play.home)
    play(by_script([script]))
    brief = (play.door / "0001" / "brief.txt").read_text()
    for words in (
        "Reconcile the ledger",
        "- steps: 200",
        "- questions to the supervisor: 0",
        "- unit-entries: The API of",
        '{"tool": "http", "arguments": {"method": "GET", "url": "https://',
        "- finish: End the episode",
        "    - method (string, required)",
        "`next.txt` changes",
        "`act.json`",
    ):
        assert words in brief, words
    (instance,) = instances_of(play.layout, play.home)
    hidden = (str(instance.seed), play.layout.root.name + "/", str(play.home), "seed")
    for path in (play.door / "0001").iterdir():
        assert [word for word in hidden if word in path.read_text()] == [], path
    first = (play.door / "0001" / "next-0000.txt").read_text()
    assert first.startswith("[before your first act; step 0, 200 steps left]\n")
    second = (play.door / "0001" / "next-0001.txt").read_text()
    assert second.startswith("[answer to act.json 1; step 1, 199 steps left]\n")


def test_characters_are_counted_by_the_harness_and_priced_in_the_table(play):
    play(lambda _folder, _text: FINISH, request(episodes=2))
    given = written = 0
    for folder in (play.door / "0001", play.door / "0002"):
        told = [path.read_text() for path in sorted(folder.glob("next*.txt"))]
        given += sum(map(len, told)) + len((folder / "brief.txt").read_text())
        written += len((folder / "act-0001.json").read_text())
    traces = [files.read_trace(play.layout, e) for e in files.read_leaves(play.layout)]
    spent = {"characters_in": 0.0, "characters_out": 0.0}
    for event in (event for trace in traces for event in trace.of(Resource)):
        if event.meter in spent:
            assert event.source == "harness"
            spent[event.meter] += event.amount
    assert spent == {"characters_in": given, "characters_out": written}
    (row,) = reader_table([play.layout.root]).rows
    assert (row.reader, row.suite, row.tier) == ("mine", "toolquest", 1)
    assert (row.episodes, row.attempts, row.tasks, row.acts) == (2, 2, 2, 2)
    assert (row.characters_in, row.characters_out) == (given, written)
    assert row.usd == pytest.approx((given / 4 * 3 + written / 4 * 15) / 1e6, abs=2e-6)
    assert (row.successes, row.stated, row.p, row.brier) == (0, 2, 0.25, 0.0625)


def test_each_sitting_has_a_fresh_folder_and_notes_carry_over(play):
    seen = {}

    def answer(folder, text):
        if folder.name not in seen:
            memory = folder / "memory"
            held = {path.name: path.read_text() for path in memory.iterdir()}
            seen[folder.name] = held
            (memory / "notes.txt").write_text(f"from {folder.name}")
        return call("go_on") if len(seen) < 3 else FINISH

    play(answer, request("recall", ("retrieval",), tier=2))
    assert seen["0001"] == {}
    assert seen["0002"] == {"notes.txt": "from 0001"}
    assert seen["0003"] == {"notes.txt": "from 0002"}
    brief = (play.door / "0002" / "brief.txt").read_text()
    assert "This is sitting 2 of the episode." in brief
    assert "`memory/` in this folder is yours" in brief
    ended = (play.door / "0001" / "next.txt").read_text()
    assert "the sitting has ended" in ended
    (end,) = ends(play.layout)
    assert end.outcome == "finished"
    assert [check for check in verify.verify(play.layout.root) if not check.ok] == []
    statement.write(play.layout.root, keys.load(play.home, keys.DEFAULT))
    assert all(check.ok for check in verify.recompute(play.layout.root))


@pytest.mark.parametrize("what", ["too much", "a link", "a fifo"])
def test_notes_that_cannot_be_kept_fail_the_episode(play, what):
    def answer(folder, text):
        notes = folder / "memory" / "notes"
        if folder.name != "0001":
            return FINISH
        if not os.path.lexists(notes):
            if what == "too much":
                notes.write_bytes(b"x" * (1 << 17))
            elif what == "a link":
                notes.symlink_to("/etc/passwd")
            else:
                os.mkfifo(notes)
        return call("go_on")

    play(answer, request("recall", ("retrieval",), tier=2))
    (end,) = ends(play.layout)
    assert end.outcome == "agent_raised"
    assert "memory" in end.reason


def test_every_seat_of_a_crew_has_a_folder_of_its_own(play):
    seats = {}

    def answer(folder, text):
        brief = (folder / "brief.txt").read_text()
        seats[folder.name] = re.search(r"You play the seat `(\w+)`", brief)[1]
        return FINISH

    play(answer, request("multicrew", ("contract",)))
    assert len(set(seats.values())) == len(seats) >= 1
    assert "lead" in seats.values()


def test_tools_that_come_on_offer_in_mid_sitting_are_described(play):
    offers = set()

    def answer(_folder, text):
        if "[tools on offer now]" in text:
            offers.add(text.split("[tools on offer now]\n")[1].split("\n")[0])
        return [call("go_on")] * 4

    play(answer, request("recall", ("retrieval",), tier=2))
    assert any("search, open" in offer for offer in offers)
    described = [path.read_text() for path in play.door.glob("*/next-*.txt")]
    assert any("    - query (" in text or "- search: " in text for text in described)


def test_a_list_of_calls_is_played_in_order_until_one_is_refused(play):
    told = []

    def answer(_folder, text):
        told.append(text)
        if len(told) == 1:
            return [call("vault"), call("fly"), call("vault")]
        return FINISH

    play(answer, request())
    assert "step 2, 198 steps left" in told[1]
    assert "calls of act.json 1 dropped after a refused one: 1." in told[1]
    assert "[call 1]" in told[1]
    assert "`tool` must be one of" in told[1].split("[call 2]")[1]
    (end,) = ends(play.layout)
    assert end.steps == 3


def test_resume_goes_on_in_the_next_folder_and_only_through_its_own_door(play):
    two = request(episodes=2)

    with pytest.MonkeyPatch.context() as patched:
        whole = reader.SittingFolder.take

        def take(self):
            if self.place.name == "0002":
                raise KeyboardInterrupt
            return whole(self)

        patched.setattr(reader.SittingFolder, "take", take)
        assert (
            play(lambda folder, _text: FINISH if folder.name == "0001" else None, two).missing == 1
        )
    assert (play.door / "where.txt").read_text() == "stopped\n"
    assert [end.outcome for end in ends(play.layout)] == ["finished"]
    with pytest.raises(UsageError, match="as it was begun"):
        play_person(None, play.layout.root, play.options, screen=None)
    with pytest.raises(UsageError, match="must be empty or new"):
        play_reader(two, play.layout.root, play.options, play.door)
    assert play(lambda _folder, _text: FINISH).missing == 0
    assert names(play.door) == ["0001", "0002", "0003", "where.txt"]
    assert (play.door / "where.txt").read_text() == "done\n"
    assert [end.outcome for end in ends(play.layout)] == ["finished", "finished"]
    (row,) = reader_table([play.layout.root]).rows
    assert (row.planned, row.episodes, row.attempts) == (2, 2, 3)


def test_leaving_within_an_episode_fails_it(play, monkeypatch):
    whole = reader.SittingFolder.take

    def take(self):
        if self.taken:
            raise KeyboardInterrupt
        return whole(self)

    monkeypatch.setattr(reader.SittingFolder, "take", take)
    play(lambda _folder, _text: call("vault"), request())
    (end,) = ends(play.layout)
    assert (end.outcome, end.steps) == ("agent_raised", 1)
    assert "the reader left before the episode had ended" in end.reason


def test_a_reader_that_never_answers_times_out(play):
    play(lambda *_: None, request(budget=Budget(act_s=0.2)))
    (end,) = ends(play.layout)
    assert (end.outcome, end.steps) == ("agent_timeout", 0)
    assert "the reader wrote no act.json within 0.2 s" in end.reason


# --- hostile files --------------------------------------------------------------------


def _link(path):
    path.with_name("elsewhere.json").write_text(json.dumps(FINISH))
    path.symlink_to("elsewhere.json")


def _unreadable(path):
    path.write_text(json.dumps(FINISH))
    path.chmod(0)


def _folder(path):
    path.mkdir()
    (path / "inside").write_text("x")


def _huge(path):
    with path.open("wb") as file:
        file.truncate((1 << 20) + 1)


HOSTILE = {
    "link": (_link, "it is no plain file"),
    "dangling link": (lambda path: path.symlink_to("/nowhere"), "no plain file"),
    "fifo": (os.mkfifo, "it is no plain file"),
    "folder": (_folder, "it is no plain file"),
    "huge": (_huge, "and 1048576 are read"),
    "empty": (lambda path: path.write_text(""), "it is no JSON"),
    "half": (lambda path: path.write_text('{"tool": "fin'), "it is no JSON"),
    "bytes": (lambda path: path.write_bytes(b"\xff\xfe{}"), "it is no UTF-8 text"),
    "deep": (lambda path: path.write_text('{"a":' * 9999), "no JSON"),
    "number": (lambda path: path.write_text("7"), '{"tool": NAME'),
    "no calls": (lambda path: path.write_text("[]"), "1 to 50 of them"),
    "too many": (lambda path: path.write_text(str([{}] * 51)), "1 to 50 of them"),
}


def test_what_is_no_act_is_told_back_and_costs_no_step(play):
    told, waiting = [], list(HOSTILE.values())

    def answer(folder, text):
        told.append(text)
        if not waiting:
            return FINISH
        make, _ = waiting.pop(0)
        make(folder / "act.json")
        return None

    play(answer, request())
    for number, (_, fault) in enumerate(HOSTILE.values(), 1):
        assert fault in told[number], told[number]
        assert f"act.json {number} was not played and cost no step" in told[number]
        assert "step 0, 200 steps left" in told[number]
        kept = play.door / "0001" / f"refused-{number:04d}.json"
        assert os.path.lexists(kept)
    (end,) = ends(play.layout)
    assert (end.outcome, end.steps) == ("finished", 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_told_back(play):
    told = []

    def answer(folder, text):
        told.append(text)
        return FINISH if len(told) > 1 else _unreadable(folder / "act.json")

    play(answer, request())
    assert "it cannot be read: Permission denied" in told[1]


def test_a_file_that_is_still_written_is_waited_for(play, monkeypatch):
    monkeypatch.setattr(reader_folder, "GRACE_S", 0.4)

    def answer(folder, text):
        whole = json.dumps(FINISH)
        with (folder / "act.json").open("w") as file:
            for letter in whole:
                file.write(letter)
                file.flush()
                threading.Event().wait(0.02)

    play(answer, request())
    (end,) = ends(play.layout)
    assert (end.outcome, end.steps, end.stated) == ("finished", 1, 0.25)
    assert not list(play.door.glob("*/refused-*"))


def test_too_many_unreadable_acts_in_a_row_fail_the_episode(play):
    count = iter(range(10_000))
    play(lambda *_: f"no JSON {next(count)}", request())
    (end,) = ends(play.layout)
    assert (end.outcome, end.steps) == ("agent_raised", 0)
    assert f"no act {MOST_UNREADABLE} times in a row" in end.reason


def test_an_act_before_its_answer_is_set_aside(play, monkeypatch):
    told = []
    whole = reader.SittingFolder.set_early_aside

    def two_acts(self):  # the second is written while the first is played
        if self.taken == 1:
            write_whole(self.place, call("finish", p=0.99))
        return whole(self)

    monkeypatch.setattr(reader.SittingFolder, "set_early_aside", two_acts)

    def answer(_folder, text):
        told.append(text)
        return call("vault") if len(told) == 1 else FINISH

    play(answer, request())
    assert "early-0002.json was written before this answer" in told[1]
    (end,) = ends(play.layout)
    assert (end.steps, end.stated) == (2, 0.25)
    kept = (play.door / "0001" / "early-0002.json").read_text()
    assert json.loads(kept)["arguments"]["p"] == 0.99


def test_an_act_that_is_replaced_while_it_is_taken_is_played_as_it_is_kept(play, monkeypatch):
    whole = reader.SittingFolder._keep

    def keep(self, kind):
        write_whole(self.place, call("finish", p=0.75))
        return whole(self, kind)

    monkeypatch.setattr(reader.SittingFolder, "_keep", keep)
    play(lambda *_: FINISH, request())
    (end,) = ends(play.layout)
    assert end.stated == 0.75


def test_a_folder_that_the_reader_destroys_fails_the_episode(play):
    def answer(folder, text):
        (folder / "next.txt").unlink()
        (folder / "next.txt").mkdir()
        return call("vault")

    play(answer, request())
    (end,) = ends(play.layout)
    assert end.outcome == "agent_raised"
    assert "the reader's folder cannot be used" in end.reason


def test_planted_files_in_the_way_of_ours_do_no_harm(play, tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    turns = []

    def answer(folder, text):
        turns.append(text)
        if len(turns) > 1:
            return FINISH
        (folder / ".next.txt.part").symlink_to(target)
        (folder / "next-0001.txt").symlink_to(target)
        (play.door / "0002").mkdir()
        return call("vault")

    play(answer, request(episodes=2))
    assert target.read_text() == "mine"
    assert [end.outcome for end in ends(play.layout)] == ["finished", "finished"]
    assert (play.door / "0003" / "brief.txt").exists()


@pytest.mark.parametrize("place", ["run", "run/desk", "home/desk", "."])
def test_a_folder_in_which_the_run_would_be_seen_is_refused(play, tmp_path, place):
    with pytest.raises(UsageError, match="`--folder` must lie apart from"):
        play_reader(request(), play.layout.root, play.options, tmp_path / place)


def test_a_reader_cannot_be_run_without_a_folder(play):
    with pytest.raises(UsageError, match="owa-bench play"):
        batch.play(request(), play.layout.root, play.options)


def test_an_example_call_is_one_that_its_schema_allows():
    def tool(name, **parameters):
        fields = {"type": "object", "additionalProperties": False, **parameters}
        return ToolSpec(name=name, about="", parameters=fields)

    impossible = {"properties": {"x": {"type": "string", "minLength": 9}}}
    tools = [
        tool("look"),
        tool("no", **impossible, required=["x"]),
        tool(
            "yes",
            properties={
                "n": {"type": "integer", "minimum": 3, "maximum": 9},
                "m": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "o": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            },
            required=["n", "m", "o"],
        ),
    ]
    made = json.loads(example_call(tools))
    assert made == call("yes", n=3, m=["text"], o=True)
    assert json.loads(example_call(tools[:2])) == call("look")
