"""A subject of one's own: versions of an agent's folder, tested and compared.

The harness reads the folders, counts what differs, runs the tests that a version holds in the
sandbox, and plays base and version on the same instances of a holdout whose seeds come from the
digest of its plan and a key drawn after the folders were read.

Source: docs/selfrev.md#a-subject-of-ones-own
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from owa_bench.discovery import get
from owa_bench.envs.selfrev.world import PROGRAM, lines_changed
from owa_bench.errors import UsageError
from owa_bench.interfaces import InnerDraw, PlayedPair, Subject, Suite
from owa_bench.records.holdout import HoldoutPlan, HoldoutRule, HoldoutStatistic, e_bh
from owa_bench.runs.laboratory import program_server
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from owa_bench.runs.laboratory.programs import BACKEND, ENTRY, write_files
from owa_bench.sandbox import backends
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import Bind, Limits, SandboxJob
from owa_bench.seeding import fresh_bytes

MOST_FILES, MOST_BYTES = 64, 256 * 1024
_LEFT_OUT = ("__pycache__", ".git", ".venv", ".pytest_cache", ".ruff_cache")
_TEST_LIMITS = Limits(wall_s=60, cpu_s=60)
_TEXT = 300  # characters of what tests say


class TestOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a version's own tests gave: were there any, did they pass, what they say."""

    present: bool
    passed: bool
    text: str = ""


class VersionFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One version against the base.

    `added` and `removed` are lines, over the files that differ. `confirmed`: e-BH over all versions
    of the call rejects that it is no better. `pairs` are all attempts.
    """

    folder: str
    digest: str
    files: int
    added: int
    removed: int
    tests: TestOutcome
    plan: str
    answer: HoldoutStatistic
    confirmed: bool
    pairs: tuple[PlayedPair, ...]


class RevisionTerms(msgspec.Struct, frozen=True, kw_only=True):
    """On what versions are compared, and by which test."""

    suite: str = "recall"
    families: tuple[str, ...] = ("n_back",)
    tier: int = 1
    pairs: int = 60
    rule: HoldoutRule = "e_process"
    level: float = 0.05


class OwnRevision(msgspec.Struct, frozen=True, kw_only=True):
    """All that a comparison of versions found; `key` is that of its draws, in hex."""

    base: str
    digest: str
    terms: RevisionTerms
    key: str
    versions: tuple[VersionFinding, ...]


def read_subject(folder: Path) -> Subject:
    """Return the version that a folder holds.

    Args:
        folder: With `agent.py`; caches and environments in it are left out.
    Raises: UsageError: There is no such folder, no entry file, or too much in it.
    """
    if not folder.is_dir():
        raise UsageError(f"A subject must be a folder, got `{folder}`.")
    files: dict[str, str] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part in _LEFT_OUT for part in name.parts):
            continue
        if path.is_symlink():
            raise UsageError(f"A subject must hold no links, got `{path}`.")
        size += path.stat().st_size
        if len(files) >= MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"A subject must hold at most {MOST_FILES} files and {MOST_BYTES} "
                f"bytes, `{folder}` holds more: give a folder with the agent alone."
            )
        try:
            files[name.as_posix()] = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"`{path}` must be text in UTF-8.") from error
    if ENTRY not in files:
        raise UsageError(
            f"A subject must hold `{ENTRY}` with a class `Agent`, `{folder}` has "
            f"{', '.join(sorted(files)[:5]) or 'no files'}."
        )
    return Subject(agent=PROGRAM, options=tuple(sorted(files.items())))


def compare_versions(base: Path, versions: Sequence[Path], terms: RevisionTerms) -> OwnRevision:
    """Test versions of a subject against its base.

    Args:
        base: Folder of the base.
        versions: Folders of the versions.
        terms: What is played; the level is divided by the number of versions.
    Returns: What was found.
    Raises: UsageError: A folder is no subject, equals another, or its program fails.
    """
    first = read_subject(base)
    read = [(folder, read_subject(folder)) for folder in versions]
    for place, (folder, version) in enumerate(read):
        if version.digest in {first.digest, *(v.digest for _, v in read[:place])}:
            raise UsageError(f"`{folder}` is the same version as another one.")
    card = get("suites", terms.suite).card
    key = fresh_bytes(32)
    with LocalLaboratory(key) as laboratory:
        laboratory.begin(_draw(get("suites", terms.suite), terms))
        for folder, version in ((base, first), *read):
            if why := laboratory.trial(version):
                raise UsageError(f"`{folder}` fails on {card.title}: {why}")
        comparisons = [
            _finding(laboratory, folder, (first, version), terms, len(read))
            for folder, version in read
        ]
    confirmed = e_bh([one.answer.e_value for one in comparisons], terms.level)
    return OwnRevision(
        base=str(base),
        digest=first.digest,
        terms=terms,
        key=key.hex(),
        versions=tuple(
            msgspec.structs.replace(one, confirmed=flag)
            for one, flag in zip(comparisons, confirmed, strict=True)
        ),
    )


def _draw(suite: Suite, terms: RevisionTerms) -> InnerDraw:
    card = suite.card
    unknown = sorted(set(terms.families) - set(card.families))
    if unknown or not terms.families:
        got = unknown[0] if unknown else "nothing"
        raise UsageError(f"`--family` must be one of {', '.join(card.families)}, got {got}.")
    if terms.tier not in card.tiers:
        raise UsageError(f"`--tier` must be one of {card.tiers}, got {terms.tier}.")
    return InnerDraw(
        suite=card.name,
        version=card.version,
        families=terms.families,
        tier=terms.tier,
        pool=len(terms.families),
    )


def _finding(
    laboratory: LocalLaboratory,
    folder: Path,
    pair: tuple[Subject, Subject],
    terms: RevisionTerms,
    count: int,
) -> VersionFinding:
    base, version = pair
    plan = HoldoutPlan(
        hypothesis=f"{folder.name} is better",
        base=base.digest,
        candidate=version.digest,
        metric="quality",
        pairs=terms.pairs,
        rule=terms.rule,
        level=terms.level / count,
    )
    result = laboratory.answer(laboratory.register(plan), base, version)
    old, new = dict(base.options), dict(version.options)
    added, removed = lines_changed(old, new)
    return VersionFinding(
        folder=str(folder),
        digest=version.digest,
        files=sum(old.get(name) != new.get(name) for name in old.keys() | new.keys()),
        added=added,
        removed=removed,
        tests=run_tests(new),
        plan=plan.digest,
        answer=result.answer,
        confirmed=False,
        pairs=result.pairs,
    )


def run_tests(files: Mapping[str, str]) -> TestOutcome:
    """Run a version's own tests (`test*.py`, unittest) in a sandbox.

    Args:
        files: Text by path.
    Returns: What came of them.
    """
    if not any(Path(name).match("test*.py") for name in files):
        return TestOutcome(present=False, passed=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        place = Path(name)
        write_files(place / "subject", files)
        (place / "work").mkdir()
        folder = program_server.FOLDER
        command = ("-m", "unittest", "discover", "-s", folder, "-t", folder)
        result = backends.get(BACKEND).run(
            SandboxJob(
                argv=(str(binds.interpreter()), "-B", "-S", *command),
                work=place / "work",
                binds=(*binds.python(), Bind(source=place / "subject", target=folder)),
                hidden=binds.python_hidden(),
                limits=_TEST_LIMITS,
            )
        )
    text = result.output.decode(errors="replace").strip()[-_TEXT:]
    passed = result.exit_code == 0 and result.limit is None
    return TestOutcome(present=True, passed=passed, text=text)
