"""`owa-bench evaluate` and `revise`: a submitted agent, and versions of one's own."""

import secrets
from pathlib import Path
from typing import cast

import msgspec
import typer

from owa_bench.cli import options
from owa_bench.cli.console import as_json, note, table
from owa_bench.cli.options import AsJson, option
from owa_bench.cli.playing import play_shown
from owa_bench.errors import FieldError, UsageError
from owa_bench.hosting.bundles import unpack
from owa_bench.hosting.images import is_image
from owa_bench.hosting.isolation import Isolation
from owa_bench.records.layout import RunLayout
from owa_bench.runs.laboratory.own_subject import (
    OwnRevision,
    RevisionTerms,
    VersionFinding,
    compare_versions,
)
from owa_bench.runs.plan import request as requests
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

# --- a submitted agent ----------------------------------------------------------------


def evaluate(
    agent: str = typer.Argument(
        ..., help="Tar with agent.toml and the agent, or an image's sha256:HEX."
    ),
    out: Path = option(..., "Run directory to make, or to resume."),
    battery: str = option("toolquest", "Name of a battery that ships."),
    workers: int = option(1, "Worker processes."),
    key: str = option(keys.DEFAULT, "Name of the evaluator's signing key."),
    sandbox: str = option("", "namespaces or docker; an image runs in docker."),
    json: bool = option(False, "Print JSON."),
) -> None:
    """Play a submitted agent under your seeds, your key and your sandbox (V5).

    `agent` in the manifest is a file, an object, a trained model or a command of the bundle;
    nothing else is played. The arm's name is the manifest's `name` and the digest of the bundle,
    which is in the plan. If a reader's registry names your key as an evaluator, the run is V5 for
    them. The same command continues a stopped run.

      owa-bench evaluate agent.tar --battery toolquest --out runs/theirs --key evaluator

      docker load -i theirs.tar && owa-bench evaluate sha256:HEX --out runs/theirs

      owa-bench report runs/theirs --registry trusted.toml
    """
    sandbox = sandbox or ("docker" if is_image(agent) else "namespaces")
    if sandbox not in ("namespaces", "docker"):
        rule = "must be namespaces or docker: a submitted agent runs in a sandbox"
        raise FieldError("--sandbox", sandbox, rule)
    home = keys.data_folder()
    folder, submitted = None, f"image {agent}"
    if not is_image(agent):
        bundle = unpack(Path(agent), home)
        folder, agent, submitted = bundle.folder, bundle.spec, f"bundle {bundle.digest}"
    run_options = requests.RunOptions(home=home, folder=folder, key=key, workers=workers)
    again = f"The same command, with --out {out},"
    if RunLayout(out).plan.exists():
        play_shown(out, lambda o: batch.resume(out, o), run_options, again, json=json)
        return
    request = requests.Request(
        agents=(agent,),
        battery=battery,
        name=out.name,
        verifier_nonce=f"{submitted} {secrets.token_hex(16)}",
        sandbox=cast("Isolation", sandbox),
    )

    def play(told: requests.RunOptions) -> batch.RunSummary:
        return batch.play(request, out, told)

    play_shown(out, play, run_options, again, json=json)


# --- versions of an agent -------------------------------------------------------------


_SHOWN = 12  # characters of a digest


def revise(
    subject: Path = option(..., "Folder of your agent: agent.py with a class Agent."),
    version: list[Path] = option(..., "Folder of a revised version; more than once."),
    family: str = option("n_back", "Families of Recall, such as n_back,reasoning."),
    tier: int = option(1, "Their tier."),
    pairs: int = option(60, "Pairs of a test, at most."),
    rule: str = option("e_process", "e_process, lower_bound or mean."),
    level: float = option(0.05, "Of all versions together."),
    out: Path | None = option(None, "File for all that was found, JSON."),
    json: bool = AsJson,
) -> None:
    """Test versions of your own agent against the one you have.

    Each version is read, compared line by line, and its tests (test*.py, unittest) run in the
    sandbox; base and version then play the same instances, which nobody has seen. It is no run:
    axis R reads campaigns of the suite `selfrev` alone.

      owa-bench revise --subject agent --version tried/a --version tried/b
    """
    if rule not in ("e_process", "lower_bound", "mean"):
        raise UsageError(f"`--rule` must be e_process, lower_bound or mean, got `{rule}`.")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"`--out` must lie in a folder that exists, got `{out}`.")
    terms = RevisionTerms(
        families=tuple(options.split(family)),
        tier=tier,
        pairs=pairs,
        rule=rule,  # type: ignore[arg-type]
        level=level,
    )
    found = compare_versions(subject, version, terms)
    if out is not None:
        out.write_bytes(msgspec.json.encode(found))
    if json:
        as_json(msgspec.to_builtins(found))
    else:
        _print(found)


def _print(found: OwnRevision) -> None:
    """Print a line a version."""
    terms = found.terms
    table(
        f"against {found.base} ({found.digest[:_SHOWN]}), {terms.suite} "
        f"{'+'.join(terms.families)} tier {terms.tier}",
        ("version", "digest", "lines", "tests", terms.rule, "e-value", "pairs", ""),
        [_row(one, terms) for one in found.versions],
    )
    for one in found.versions:
        if one.tests.present and not one.tests.passed:
            note(f"tests of {one.folder}: {one.tests.text}")


def _row(one: VersionFinding, terms: RevisionTerms) -> tuple[str, ...]:
    tests = "passed" if one.tests.passed else "FAILED" if one.tests.present else "none"
    return (
        one.folder,
        one.digest[:_SHOWN],
        f"+{one.added} -{one.removed}",
        tests,
        f"{one.answer.statistic:.3f}",
        f"{one.answer.e_value:.3f}",
        str(one.answer.pairs),
        f"better (e-BH at {terms.level:g})" if one.confirmed else "not shown",
    )
