"""`owa-bench play`, `norms` and `judge`: what people do, and what is made of it."""

import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from owa_bench.cli import draw_options, options
from owa_bench.cli.console import ERR, OUT, as_json, note, table
from owa_bench.cli.options import AsJson, KeyName, option
from owa_bench.errors import CheckFailure, FieldError, UsageError, one_of
from owa_bench.records.plan import PERSON, READER, SCRIPTED_PERSON, Budget
from owa_bench.records.toml import decode, in_file
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.store import keys

if TYPE_CHECKING:
    from owa_bench.records.people import Rubric
    from owa_bench.reports.read.bundle import Bundle
    from owa_bench.reports.read.ratings import RatedItem

_SHAPING = (
    *("suite", "family", "tier", "delta", "episodes", "interventions", "person"),
    *("act_seconds", "steps", "scripted", "repeats", "protocol", "reader"),
)
_SCREEN = ("person", "page", "port", "scripted")


def play(
    context: typer.Context,
    out: Path = option(..., "Run directory to make, or to resume."),
    person: str = option("person", "Name of the arm: who plays."),
    folder: Path | None = option(None, "Play through files in this empty folder."),
    reader: str = option("reader", "Name of the arm with --folder: who reads."),
    suite: str = option("toolquest", "The suite."),
    family: str | None = option(None, "Families; all if left out."),
    tier: str = option("1", "Tiers."),
    delta: str = option("0", "Drift magnitudes."),
    episodes: int = option(1, "Instances per family."),
    repeats: int = option(1, "Noise seeds per instance."),
    interventions: str = option("0", "Supervisor budgets, as in `run`."),
    protocol: str = option("default", "Name or TOML file, as in `run`."),
    page: bool = option(False, "A page in a browser in place of this terminal."),
    port: int = option(0, "Of the page, on 127.0.0.1; 0: any free one."),
    act_seconds: float = option(3600.0, "Most time for a step, pauses not counted."),
    steps: int | None = option(None, "Most steps an episode."),
    scripted: bool = option(False, "A program plays in a person's place: say so."),
    resume: bool = option(False, "Go on with the run in --out."),
    key: str = KeyName,
) -> None:
    """Let a person play episodes, in this terminal, in a page, or through files.

    The person is shown what an agent is shown, and the run directory is like any other: report,
    verify, recompute and replay read it. Every sitting begins with an empty page. Who stops between
    two episodes goes on with --resume; an episode that is left has failed. With --folder a reader
    (a language model, a person, a program) sees text files and writes act.json: docs/readers.md.

      owa-bench play --suite toolquest --tier 1 --person ada --page --out runs/ada

      owa-bench play --out runs/ada --page --resume

      owa-bench play --suite toolquest --reader mine --folder desk --out runs/mine
    """
    from owa_bench.bridges.person import play_person
    from owa_bench.bridges.person_page import PageScreen
    from owa_bench.bridges.person_terminal import TerminalScreen
    from owa_bench.bridges.reader import play_reader

    given = options.given_names(context)
    if folder is not None:
        options.refuse_together(given, _SCREEN, "is for a person, not for --folder.")
    else:
        options.refuse_together(given, ("reader",), "needs --folder DIR.")
    request = None
    if resume:
        why = "shapes a plan, and --resume goes on with the plan that is there."
        options.refuse_together(given, _SHAPING, why)
        scripted = _is_scripted(out)
    else:
        agent = f"{SCRIPTED_PERSON if scripted else PERSON}{person}"
        request = Request(
            agents=(agent if folder is None else f"{READER}{reader}",),
            draws=draw_options.draws_of(
                suite=suite,
                family=family,
                tier=tier,
                delta=delta,
                interventions=interventions,
                episodes=episodes,
                repeats=repeats,
            ),
            name=out.name,
            protocol=protocol,
            budget=Budget(steps=steps, act_s=act_seconds),
        )
    run = RunOptions(home=keys.data_folder(), key=key, folder=Path.cwd())
    if folder is not None:
        summary = play_reader(request, out, run, folder, announce=_announce)
    elif page:
        with PageScreen(options.port(port), scripted=scripted) as screen:
            ERR.print(f"play at {screen.url}")
            summary = play_person(request, out, run, screen)
    else:
        if not (scripted or sys.stdin.isatty()):
            raise UsageError(
                "A person plays at a terminal, and standard input is none: use --page, "
                "or say with --scripted that a program plays."
            )
        summary = play_person(request, out, run, TerminalScreen(sys.stdin, sys.stdout))
    ERR.print(f"{summary.complete} of {summary.entries} episodes complete in {summary.root}")
    if summary.complete < summary.entries:
        door = f" --folder {folder}" if folder else " --page" if page else ""
        ERR.print(f"go on: owa-bench play --out {out}{door} --resume")


def _announce(folder: Path) -> None:
    """Say which folder a reader is to look into."""
    ERR.print(f"open for the reader: {folder}")


def norms(
    run_dirs: list[Path] = typer.Argument(help="Runs of `owa-bench play`, one a person."),
    out: Path | None = option(None, "The norms file to write."),
    group: str = option("adults", "Who they are: adults, or experts of the field."),
    baseline: Path | None = option(None, "A run of one baseline agent: the anchor a."),
    check: Path | None = option(None, "Exit 1 unless this file says the same."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Make norms of several people's runs; `report --norms` reads them.

    Every run is verified, played by one person to its end, and of the same terms. A threshold needs
    as many persons as the protocol says, each watched by somebody who signed (`owa-bench attend`)
    and whom the reader's registry names. With --check the figures are made again and compared with
    a file that somebody gave you.

      owa-bench norms runs/ada runs/ben runs/cy runs/di runs/ed --out norms.dsse.json
    """
    from owa_bench.records.people import Group, read_norms
    from owa_bench.reports.export.norms import make_norms, sealed_norms
    from owa_bench.reports.statement import write_atomically
    from owa_bench.scoring.verdict.norms import norm_tables

    if group not in ("adults", "experts"):
        raise FieldError("--group", group, one_of(group, ("adults", "experts")))
    if out is None and check is None:
        raise UsageError("Give --out FILE to write norms, or --check FILE.")
    given = read_norms(check.read_bytes(), check.name) if check else None
    who: Group = "experts" if group == "experts" else "adults"
    made = make_norms(run_dirs, given.group if given else who, baseline)
    if given is not None and msgspec.structs.replace(given, public_key="") != made:
        raise CheckFailure(f"{check} does not say what these runs give.")
    if out is not None:
        signer = keys.ensure(keys.data_folder(), key)
        write_atomically(out, sealed_norms(made, signer))
    if json:
        as_json(msgspec.to_builtins(made))
        return
    for found in norm_tables(made):
        table(found.title, found.columns, found.rows)
    if made.synthetic:
        note("programs played: reports print (synthetic norms)")


def attend(run_dir: Path = options.RunDir, key: str = KeyName) -> None:
    """Sign that you watched the person of a run play it, alone, to its end.

    Norms enter a gate only if a watcher that the reader's registry names signed for each person.
    Use a key of yours: the one that signed the run's plan is refused.

      owa-bench keygen invigilator

      owa-bench attend runs/ada --key invigilator
    """
    from owa_bench.reports.export.norms import sign_attendance

    path = sign_attendance(run_dir, keys.load(keys.data_folder(), key))
    ERR.print(f"signed: {path}")


def judge(
    run_dir: Path = options.RunDir,
    rubric: Path | None = option(None, "The rubric (TOML); with --rater."),
    rater: str | None = option(None, "Who rates; none: print the agreement."),
    command: str | None = option(None, "Rates by JSON lines in a person's place."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Rate open texts by a rubric, blind; two raters, then their agreement.

    A rater sees the task and the text, in an order of their own, and neither agent nor figures nor
    the other rater. Ratings are signed beside the run; the report shows them, and scores them only
    where the raters agree. No axis reads them.

      owa-bench judge runs/first --rubric clarity.toml --rater ada

      owa-bench judge runs/first
    """
    from owa_bench.reports.read.bundle import read
    from owa_bench.reports.read.ratings import rating_tables

    bundle = read(run_dir)
    if rater is not None:
        if rubric is None:
            raise UsageError("--rater needs --rubric FILE.")
        _rate(bundle, _rubric(rubric), rater, command, key)
        ERR.print(f"rated by {rater}; without --rater: the agreement")
        return
    if rubric is not None or command is not None:
        raise UsageError("--rubric and --command go with --rater NAME: who rates.")
    tables = rating_tables(bundle)
    if json:
        as_json(msgspec.to_builtins(tables))
        return
    for found in tables:
        table(found.title, found.columns, found.rows)
        note(found.note)
    if not tables:
        note("nobody has rated this run: give --rubric and --rater")


def _rubric(path: Path) -> "Rubric":
    """Return the rubric in a TOML file."""
    from owa_bench.records.people import Rubric

    with in_file(path.name):
        found = decode(path.read_bytes(), Rubric, FieldError)
        for score in found.scores:
            options.number("scores", score, int)
    return found


def _rate(bundle: "Bundle", rubric: "Rubric", rater: str, command: str | None, key: str) -> None:
    """Let a rater score every item, and sign what they said."""
    from owa_bench.canonical import canonical_json, public_bytes, seal
    from owa_bench.records.layout import RATINGS_TYPE
    from owa_bench.records.people import RaterScores
    from owa_bench.reports.read.ratings import rated_items
    from owa_bench.reports.statement import write_atomically

    path = bundle.layout.ratings / f"{rater}.dsse.json"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", rater):
        raise FieldError("--rater", rater, "must be letters, digits, `.`, `_` and `-`")
    if path.exists():
        raise UsageError(f"{path} is there already: who has rated does not rate again.")
    signer = keys.ensure(keys.data_folder(), key)
    items = rated_items(bundle, rubric, rater)
    ask = _ask_score if command is None else partial(_by_command, _words(command))
    given = {item.attempt: ask(rubric, item) for item in items}
    ratings = RaterScores(
        rater=rater,
        rubric=rubric,
        evidence_root=bundle.evidence_root,
        scores=dict(sorted(given.items())),
        public_key=public_bytes(signer.public_key()).hex(),
    )
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, seal(RATINGS_TYPE, canonical_json(ratings), signer))


def _ask_score(rubric: "Rubric", item: "RatedItem") -> int:
    """Return a person's score of an item."""
    scale = "\n".join(f"  {score}: {words}" for score, words in rubric.scores.items())
    OUT.print(f"\n{item.task}\n\n--- text ---\n{item.text}\n\n{rubric.question}\n{scale}")
    while True:
        OUT.print("score: ", end="")
        line = sys.stdin.readline()
        if not line:
            raise UsageError("The rater stopped; nothing was kept.")
        if line.strip() in rubric.scores:
            return int(line)
        OUT.print(f"one of {', '.join(rubric.scores)}")


def _words(command: str) -> list[str]:
    """Return a command's words, as a shell splits them."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        rule = "must be a command whose quotes are closed"
        raise FieldError("--command", command, rule)
    return words


def _by_command(command: list[str], rubric: "Rubric", item: "RatedItem") -> int:
    """Return a command's score of an item: one JSON line in, one out."""
    asked = {"task": item.task, "text": item.text, "question": rubric.question}
    done = subprocess.run(  # noqa: S603 - the user's own command
        command,
        input=msgspec.json.encode({**asked, "scores": rubric.scores}) + b"\n",
        capture_output=True,
        check=False,
    )
    try:
        score = msgspec.json.decode(done.stdout, type=dict[str, int])["score"]
    except (msgspec.DecodeError, KeyError) as error:
        words = done.stdout[:80].decode(errors="replace")
        raise FieldError("--command", words, 'must answer {"score": N}') from error
    if str(score) not in rubric.scores:
        raise FieldError("score", score, one_of(score, rubric.scores))
    return score


def _is_scripted(out: Path) -> bool:
    """Return whether the run in a directory is played by a program."""
    from owa_bench.records.layout import RunLayout
    from owa_bench.runs.plan.plan import read_plan

    arms = read_plan(RunLayout(out)).arms
    return any(arm.agent.startswith(SCRIPTED_PERSON) for arm in arms)
