"""The recipe for language models: a tiny model in its place, of random weights.

What a real one learns is measured by the recipe itself.
"""

import importlib
import itertools
import json
import sys
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

pytestmark = pytest.mark.rl

EXAMPLES = Path(__file__).parents[2] / "examples"
START, END = "<|im_start|>", "<|im_end|>"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module("train_a_language_model")


@pytest.fixture(scope="module")
def serving(recipe):
    return importlib.import_module("serve_a_language_model")


@pytest.fixture(scope="module")
def tokenizer():
    """A token for each byte, and one for each mark of a turn."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([START, END])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


@pytest.fixture
def player(recipe, tokenizer):
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
    )
    model = transformers.LlamaForCausalLM(shape).eval()
    return recipe.Player(model, tokenizer, recipe.Config(family="n_back", most_tokens=6, tests=2))


def sessions(recipe, player, seeds, delta=0.0):
    return [recipe.open_sessions(player.config, seed, delta)[0] for seed in seeds]


def test_texts_of_other_lengths_beside_it_change_no_call(recipe, player):
    """Padding is never read: a text alone and in a batch get the same tokens."""
    opened = sessions(recipe, player, (1, 2))
    opened += sessions(recipe, player, (3,), delta=0.5)
    together = player.play(opened, turns=3)
    assert len({len(each.ids) for each in together}) > 1
    for seed, delta, each in zip((1, 2, 3), (0.0, 0.0, 0.5), together, strict=True):
        [alone] = player.play(sessions(recipe, player, (seed,), delta), turns=3)
        assert (alone.ids, alone.own, alone.turns) == (each.ids, each.own, each.turns)


def test_a_cache_that_grows_in_place_holds_what_the_librarys_does(recipe):
    ours, theirs = recipe.RoomyLayer(), transformers.cache_utils.DynamicLayer()
    for count in (3, 1, 1, 9, 1, 30, 1):
        keys, values = torch.rand(2, 1, 2, count, 4)
        for mine, its in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(mine, its)
    assert ours.get_seq_length() == 46


def test_own_tokens_are_those_of_the_calls(recipe, player):
    [each] = player.play(sessions(recipe, player, (1,)), turns=3)
    assert [sum(each.own[start:end]) for start, end, _ in each.turns] == [
        end - start for start, end, _ in each.turns
    ]
    assert sum(each.own) == sum(end - start for start, end, _ in each.turns)
    assert all(each.ids[end - 1] == player.end for _, end, _ in each.turns)


def test_the_oracle_is_written_as_a_model_would_have_played(recipe, player):
    each = recipe.oracle_transcript(player, 1, 0.5)
    calls = [player.tokenizer.decode(each.ids[start:end]) for start, end, _ in each.turns]
    assert all(call.endswith(END) for call in calls)
    with recipe.open_sessions(player.config, 1, 0.5)[0] as session:
        for call in calls:
            session.call(*recipe.read_call(call.removesuffix(END)))
        assert session.success
    assert sum(reward for _, _, reward in each.turns) == pytest.approx(1.0)


def test_pieces_hold_every_turn_once_and_what_comes_before(recipe, player):
    """Each call of the oracle is learnt from once; before it stand the opening and its question."""
    each = recipe.oracle_transcript(player, 1, 0.0)
    pieces = each.pieces(5000)
    assert len(pieces) > 2
    assert all(len(piece.ids) <= 5000 for piece in pieces)
    calls = [piece.ids[start:end] for piece in pieces for start, end, _ in piece.turns]
    assert calls == [each.ids[start:end] for start, end, _ in each.turns]
    assert sum(sum(piece.own) for piece in pieces) == sum(each.own)
    for number, piece in enumerate(pieces):
        assert piece.ids[: each.turns[0][1]] == each.ids[: each.turns[0][1]]
        text = player.tokenizer.decode(piece.ids)
        assert text.count(START) == text.count(END) + 1  # a call follows each question
        first = sum(len(before.turns) for before in pieces[:number])
        before = recipe.SHOWN if number else 0
        start = each.turns[first - before - 1][1] if number else 0
        shown = each.ids[start : each.turns[first][0]]
        assert piece.ids[: piece.turns[0][0]][-len(shown) :] == shown


def test_a_rollout_begins_where_the_oracle_led(recipe, player):
    opened = sessions(recipe, player, (1, 1))
    led = recipe.oracle_transcript(player, 1, 0.0)
    made = player.play(opened, turns=2, lead=9)
    assert [session.steps for session in opened] == [11, 11]
    for each in made:
        start = led.turns[9 - recipe.SHOWN - 1][1]
        shown = led.ids[start : led.turns[9][0]]
        first, *_ = each.turns[0]
        assert each.ids[first - len(shown) : first] == shown
        assert sum(each.own) == sum(end - start for start, end, _ in each.turns)


def test_a_call_counts_by_what_its_group_was_paid_at_that_turn(recipe):
    group = [
        recipe.Transcript([0] * 6, [False, True, True, False, True, False], turns)
        for turns in ([(1, 3, 1.0), (4, 5, 0.0)], [(1, 3, 0.0), (4, 5, 0.0)])
    ]
    better, worse = recipe.advantages(group)
    spread = 8**-0.5  # gaps are .5, -.5, 0, 0
    assert better == pytest.approx(np.array([0, 0.5, 0.5, 0, 0, 0]) / spread)
    assert worse == pytest.approx(-better)
    same = [recipe.Transcript([0] * 3, [False, True, True], [(1, 3, 0.2)]) for _ in range(2)]
    assert not np.any(recipe.advantages(same))


@pytest.mark.parametrize("sign", [1, -1])
def test_an_update_makes_paid_calls_likelier_and_others_not(recipe, player, sign):
    [each] = player.play(sessions(recipe, player, (1,)), turns=1)
    start, end, _ = each.turns[0]

    def likelihood():
        with torch.no_grad():
            logits = player.model(torch.tensor([each.ids])).logits[0, start - 1 : end - 1]
        said = torch.tensor(each.ids[start:end])[:, None]
        return float(torch.log_softmax(logits, -1).gather(1, said).sum())

    before = likelihood()
    recipe.Learner(player, 1e-3).update([each], [sign * np.asarray(each.own, float)])
    assert (likelihood() - before) * sign > 0


def phases_of(folder):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["phase"] for line in lines]


def test_a_training_stops_and_goes_on_where_a_phase_ended(recipe, player, tmp_path, monkeypatch):
    start = tmp_path / "start"
    player.model.save_pretrained(start)
    player.tokenizer.save_pretrained(start)
    config = recipe.Config(
        family="n_back",
        transcripts=1,
        piece=3000,
        updates=1,
        group=2,
        turns=2,
        tests=2,
        most_tokens=6,
    )
    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "reinforce", lambda *_: sys.exit("stopped"))
        with pytest.raises(SystemExit, match="stopped"):
            recipe.train(config, folder, start)
    phases = phases_of(folder)
    recipe.train(config, folder, start)
    whole = phases_of(folder)
    assert whole == [*phases, "GRPO", "trained"]
    found = json.loads((folder / "results.json").read_text())
    assert {cell["delta"] for cell in found["cells"]} == {0.0, 0.5}
    assert all(np.isfinite(cell["gains"]["pretrained to trained"]).all() for cell in found["cells"])
    with pytest.raises(SystemExit, match="is of another training"):
        recipe.train(recipe.Config(), folder, start)


def test_what_is_learnt_from_is_not_tested_on(recipe):
    config = recipe.Config()
    learnt = recipe.TRAINING_SEEDS[: config.transcripts + config.updates]
    assert not {*learnt} & {*recipe.HELD_OUT_SEEDS[: config.tests]}


def test_the_gain_is_paired(recipe):
    mean, low, high = recipe.paired([0.0, 0.5], [0.2, 0.9])
    assert (mean, low, high) == pytest.approx(
        (0.3, 0.3 - 12.706 * 0.1, 0.3 + 12.706 * 0.1), abs=1e-3
    )


def chat_messages(session, turns):
    """Return messages as a chat server gets them after some of the oracle's calls."""
    found = list(session.messages)
    for number, (name, arguments) in enumerate(session.solution()[:turns]):
        function = {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))}
        call = {"id": f"c{number}", "type": "function", "function": function}
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = session.call(name, arguments).text
        found.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return found


def test_a_server_reads_messages_as_they_were_learnt(recipe, serving, player):
    each = recipe.oracle_transcript(player, 1, 0.5)
    with recipe.open_sessions(player.config, 1, 0.5)[0] as session:
        read = serving.conversation(player, chat_messages(session, 5), session.tools)
    assert read.ids == each.ids[: each.turns[5][0]]
    assert [turn[:2] for turn in read.turns] == [turn[:2] for turn in each.turns[:5]]


@pytest.mark.parametrize("most", [4000, 4300, 6000])
def test_a_long_episode_is_read_as_it_was_learnt(recipe, tokenizer, player, most):
    """The first turn and the last few; alone, beside another, and from the whole conversation."""
    config = recipe.Config(family="n_back", most_tokens=6, piece=most)
    player = recipe.Player(player.model, tokenizer, config)
    feeds, calls = [], itertools.count()

    def written(feed, unread, *_):
        feed(unread)
        feeds.append((feed.width, feed.read.sum(1).tolist()))
        text = 'answer {"values":["no"]}' if next(calls) % 3 else "go_on {}"
        words = player.tokens(text + END)
        feed([words[:-1] for _ in unread])
        return [words for _ in unread]

    player.write = written
    made = player.play(sessions(recipe, player, (1, 2)), turns=25)
    assert max(width for width, _ in feeds) < 3 * most
    assert all(read < most + 200 for _, both in feeds for read in both)
    for row, each in enumerate(made):
        for count in range(1, len(each.turns)):
            past = recipe.Transcript(each.ids[: each.turns[count][0]], [], each.turns[:count]).view(
                most
            )
            assert len(past) == feeds[count][1][row]


def test_a_server_answers_as_the_player_plays(recipe, serving, player):
    [alone] = player.play(sessions(recipe, player, (1,)), turns=1)
    [(start, end, _)] = alone.turns
    words = player.tokenizer.decode(alone.ids[start : end - 1])
    server = serving.ChatServer(player, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    [session] = sessions(recipe, player, (1,))
    asked = {"model": "trained", "messages": session.messages, "tools": session.tools}
    url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        [named] = httpx.get(f"{url}/models").json()["data"]
        said = httpx.post(f"{url}/chat/completions", json=asked, timeout=60).json()
        player.write = lambda *_: [player.tokens(f'answer {{"values":["no"]}}{END}')]
        called = httpx.post(f"{url}/chat/completions", json=asked, timeout=60).json()
    finally:
        server.shutdown()
        server.server_close()
    assert named["id"] == "trained"
    assert said["choices"][0]["message"]["content"] == words
    assert said["usage"]["prompt_tokens"] == start
    [call] = called["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "answer", "arguments": '{"values":["no"]}'}


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ("train", ["out", "--tests", "1"], "--tests must be at least 2, got 1"),
        ("train", ["out", "--group", "x"], "--group: invalid int value: 'x'"),
        ("serve", ["nowhere"], "no model in nowhere/trained: train one"),
    ],
)
def test_wrong_use_is_told_before_anything_is_loaded(
    script, words, said, recipe, serving, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, *words])
    with pytest.raises(SystemExit):
        {"train": recipe, "serve": serving}[script].main()
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
