"""`owa-bench revise`: versions of one's own agent, tested against its base."""

from pathlib import Path

import msgspec

from owa_bench.cli import options
from owa_bench.cli.console import as_json, note, table
from owa_bench.cli.options import AsJson, option
from owa_bench.errors import UsageError
from owa_bench.run.laboratory.own_subject import (
    OwnRevision,
    RevisionTerms,
    VersionFinding,
    compare_versions,
)

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

    Each version is read, compared line by line, and its tests (test*.py, unittest) run
    in the sandbox; base and version then play the same instances, which nobody has
    seen. It is no run: axis R reads campaigns of the suite `selfrev` alone.

      owa-bench revise --subject agent --version tried/a --version tried/b
    """
    if rule not in ("e_process", "lower_bound", "mean"):
        raise UsageError(
            f"`--rule` must be e_process, lower_bound or mean, got `{rule}`."
        )
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
