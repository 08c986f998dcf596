"""`owa-bench keygen`, `escrow`, `witness` and `replay`: evidence of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from owa_bench.cli.console import OUT, as_json, check_line, note, progress
from owa_bench.cli.options import AsJson, KeyName, RunDir, option
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import APART_H
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import directory, keys
from owa_bench.runs.store.challenge_log import log_of
from owa_bench.runs.store.date_log import DateLog, dates_beside

if TYPE_CHECKING:
    from owa_bench.runs.replay import RunReplay


def keygen(
    name: str = typer.Argument(keys.DEFAULT, help="What to call the key."), json: bool = AsJson
) -> None:
    """Make an Ed25519 signing key in your data folder (mode 0600).

    The folder is ~/.local/share/owa-bench; OWA_BENCH_HOME names another. `run` makes the key
    `default` by itself if there is none, and no other. A key is never overwritten.

      owa-bench keygen

      owa-bench keygen verifier --json
    """
    made = keys.keygen(keys.data_folder(), name)
    if json:
        as_json(made._asdict())
        return
    OUT.print(f"private key  {made.private}")
    OUT.print(f"public key   {made.public}")
    OUT.print(f"             {made.public_hex}")


def prune(run_dir: Path = RunDir, json: bool = AsJson) -> None:
    """Drop the transcripts of a run: every text and picture, for good.

    The events keep the digest of each, so figures, `verify`, `recompute` and `replay` stay as they
    are; `verify` says that transcripts were pruned.

      owa-bench prune runs/first
    """
    found = directory.prune(RunLayout(run_dir))
    if json:
        as_json(found._asdict())
        return
    OUT.print(f"dropped {found.packs} packs of {found.size:,} bytes in {run_dir}")


def commit(json: bool = AsJson) -> None:
    """Draw a master and keep it; prints the commitment to it.

    `run` draws one of its own for every plan. This one is for a verifier who plays runs from Python
    with seeds announced beforehand.

      owa-bench escrow commit
    """
    made = escrow.commit(keys.data_folder())
    if json:
        as_json({"commitment": made.commitment})
        return
    OUT.print(made.commitment)


def reveal(
    run_dir: Path = RunDir,
    unfinished: bool = option(False, "Reveal though episodes are missing: they stay so."),
    json: bool = AsJson,
) -> None:
    """Publish a run's master and nonce in reveal.json, so that others can replay it.

    Whoever has the master knows every world, so nothing more is played under a revealed plan; a run
    that is not whole is revealed with --unfinished only.

      owa-bench escrow reveal runs/first
    """
    from owa_bench.runs.play import batch  # brings all that plays

    layout = RunLayout(run_dir)
    missing = batch.summary(layout).missing
    if missing and not unfinished and not layout.reveal.exists():
        raise UsageError(
            f"{missing} episodes of {run_dir} are not played, and after the reveal "
            f"they cannot be. Go on with `owa-bench run --out {run_dir} --resume`, or "
            "give them up with --unfinished."
        )
    revealed = escrow.reveal(keys.data_folder(), layout)
    if json:
        as_json(revealed._asdict())
        return
    OUT.print(f"Revealed in {layout.reveal}.")


def witness_plan(
    run_dir: Path = RunDir,
    rfc3161: str | None = option(None, "Have the digest stamped at this address.", metavar="URL"),
    nonce: str | None = option(None, "A verifier's nonce, signed with --key."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Get evidence that the plan existed before episode 0 (assurance V3).

    Between the plan and the play:

      owa-bench run --battery toolquest --agent agentic --out RUN --plan-only

      owa-bench witness RUN --nonce TEXT --key verifier

      owa-bench run --out RUN --resume

    It weighs something where a reader's registry names who signed: the verifier signs on a machine
    of theirs. Dates of commits prove nothing.
    """
    from owa_bench.runs.plan import witness  # brings an HTTP client

    if (rfc3161 is None) == (nonce is None):
        raise UsageError("Name one way to witness: --rfc3161 URL or --nonce TEXT.")
    layout, own = RunLayout(run_dir), False
    if rfc3161 is not None:
        made = witness.by_rfc3161(layout, rfc3161)
    else:
        signer = keys.ensure(keys.data_folder(), key)
        made = witness.by_nonce(layout, nonce or "", signer)
        own = keys.public_hex(signer) == read_plan(layout).public_key
    if json:
        as_json(made)
        return
    OUT.print(f"Plan {made.plan_digest} witnessed by {made.kind}.")
    if made.attempts:
        note(
            f"{made.attempts} attempts were already on record: "
            "this does not count as before episode 0."
        )
    if own:
        note(
            "the run's own key signed this, which proves "
            "nothing: a verifier signs with a key of theirs (--key)."
        )


def challenge_plan(
    run_dir: Path = RunDir,
    url: str | None = option(None, "The verifier's service.", metavar="URL"),
    date: bool = option(False, "Date the last look of a placement (docs/placement.md#dates)."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Give a plan the challenge that its seeds wait for, or ask a verifier for it.

    A plan that names a challenger is played on worlds that nobody knew when it was
    signed. The submitter:

      owa-bench run --battery toolquest --agent agentic --out RUN --plan-only
      --challenger KEY

      owa-bench challenge RUN --url http://verifier.example:8327

      owa-bench run --out RUN --resume

    The verifier, without a service, on a machine of theirs:

      owa-bench challenge RUN --key verifier

    With --date it dates the last look of a placement: once when its batches were played, and a day
    later to open the next date. `owa-bench place --verifier URL` asks by itself.
    """
    from owa_bench.runs.plan import witness  # brings an HTTP client

    layout, home = RunLayout(run_dir), keys.data_folder()
    if date:
        _date_look(layout, url, key, json=json)
        return
    if url is not None:
        made = witness.ask_challenge(layout, url)
    else:
        made = witness.challenge(layout, keys.load(home, key), log_of(home, key))
    if json:
        as_json(made)
        return
    OUT.print(f"Plan {made.plan_digest} challenged with {made.nonce[:16]}..")
    if made.submitter:
        OUT.print(f"It is plan {made.number} of {made.submitter} at this verifier.")
    else:
        note(
            "the key that signed the plan is not on the verifier's list of submitters: "
            "no row on a leaderboard (`owa-bench verifier register`)"
        )


def _date_look(layout: RunLayout, url: str | None, key: str, *, json: bool) -> None:
    """Date the last look of a placement, or ask a verifier to, and say when it is open."""
    from owa_bench.runs.plan import dates  # brings an HTTP client

    if url is not None:
        told = dates.ask_date(layout, url)
    else:
        home = keys.data_folder()
        log = log_of(home, key)
        signer, kept = keys.load(home, key), DateLog(dates_beside(log.path))
        told = dates.date_last_look(layout, signer, log, kept)
    if json:
        as_json(told)
        return
    opened = f"opened {told.opened}" if told.opened else f"to be opened {APART_H} hours later"
    OUT.print(f"Look {told.look} closed {told.closed}, {opened}.")


def replay(
    run_dir: Path = RunDir,
    episodes: int | None = option(None, "Replay only this many, spread over the plan."),
    inner: int | None = option(
        None, "Play only so many inner attempts of a campaign, drawn afresh."
    ),
    sign: bool = option(False, "Write a receipt signed with your key."),
    key: str = KeyName,
    json: bool = AsJson,
) -> None:
    """Play recorded actions again from the revealed seeds and compare what happens.

    Needs reveal.json. A receipt over every counted episode lifts the run to assurance V4 where the
    registry of a reader names your key.

      owa-bench replay runs/first

      owa-bench replay runs/first --episodes 20

      owa-bench replay runs/selfrev --inner 50

      owa-bench replay runs/first --sign --key verifier
    """
    from owa_bench.runs import replay as replaying  # brings all that plays

    layout = RunLayout(run_dir)
    if sign and inner is not None:
        raise UsageError("A receipt says that whole episodes were played: leave out `--inner`.")
    signer = keys.ensure(keys.data_folder(), key) if sign else None
    with progress() as bar:
        task = bar.add_task("replaying", total=episodes)
        replays = replaying.replay_run(
            layout, episodes, progress=lambda _: bar.advance(task), inner=inner
        )
    if signer is not None:
        log = log_of(keys.data_folder(), key)
        replaying.sign(layout, replays, signer, log)
    if json:
        as_json({**replays._asdict(), "passed": replays.passed})
    else:
        _print_replays(replays)
    if not replays.passed:
        outcomes = {attempt.outcome for attempt in replays.attempts}
        msg = "The run does not replay."
        if outcomes == {"exempt"}:
            msg = "Nothing was compared: a clock ended every episode that was replayed."
        raise CheckFailure(msg)


def _print_replays(replays: "RunReplay") -> None:
    """Print one line per attempt that is not simply the same, and the count."""
    for attempt in replays.attempts:
        if attempt.outcome != "same":
            check_line(
                attempt.attempt_id,
                ok=attempt.outcome == "exempt",
                detail=attempt.detail,
                skipped=attempt.outcome == "exempt",
            )
    for suite, why in replays.other_code.items():
        note(f"suite {suite}: {why}", OUT)
    same = sum(attempt.outcome == "same" for attempt in replays.attempts)
    detail = f"{same} of {len(replays.attempts)} episodes happened again, event by event"
    check_line("replay", ok=replays.passed, detail=detail)
