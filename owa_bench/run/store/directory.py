"""Guards of a run directory: may this plan be played in it, by this process alone?"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from owa_bench.canonical import sha256
from owa_bench.errors import RunDirectoryError, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.run.agents import agent_spec
from owa_bench.run.store import files
from owa_bench.run.store.provenance import environment, other_code

_LOCK_PATIENCE_S = 3.0


def refuse_unwritable_name(out: Path) -> None:
    """Refuse a name whose bytes are no text: records could not name the run."""
    try:
        str(out.absolute()).encode()
    except UnicodeEncodeError as error:
        raise RunDirectoryError(
            f"A run directory must have a name in UTF-8, got {os.fsencode(out)!r}."
        ) from error


def refuse_other_content(layout: RunLayout, *, resume: bool) -> None:
    """Refuse a directory that holds something else, or a run unless resumed."""
    if layout.plan.exists():
        if not resume:
            raise UsageError(
                f"{layout.root} holds a run; resume it, or choose another directory."
            )
        return
    if resume:
        raise RunDirectoryError(
            f"{layout.root} is no run to resume: it has no plan.json."
        )
    if layout.root.exists() and not layout.root.is_dir():
        raise RunDirectoryError(
            f"{layout.root} must be a folder, and it is a file; choose another name."
        )
    if layout.root.exists() and not _is_free(layout):
        raise RunDirectoryError(
            f"{layout.root} must be empty or a run, and it is neither (no plan.json); "
            "choose another directory."
        )


def _is_free(layout: RunLayout) -> bool:
    """Return whether a folder holds nothing but what a killed plan writer left.

    The plan itself is written last, so without it nothing was begun.
    """
    left = {layout.protocol, layout.price_card, layout.plan_envelope}
    parts = {files.part_of(path) for path in (*left, layout.plan)}
    return set(layout.root.iterdir()) <= left | parts


def make_folder(out: Path) -> None:
    """Make a run directory; RunDirectoryError where that cannot be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(
            f"{out} cannot be made: {error.strerror}. Choose another directory."
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold a run directory against a second player; the lock leaves no file.

    Workers of a killed run let go of it within moments, which are waited for.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + _LOCK_PATIENCE_S
        while not _lock_taken(descriptor):
            if time.monotonic() > until:
                raise UsageError(f"{folder} is being played by another process.")
            time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def refuse_differences(fields: Sequence[str], layout: RunLayout) -> None:
    """Refuse to go on with a plan that differs in these fields."""
    if fields:
        raise UsageError(
            f"The plan in {layout.root} differs from what would be played now in: "
            f"{', '.join(fields)}. A run goes on only under its own plan; start "
            "another directory."
        )


def refuse_other_terms(layout: RunLayout, plan: Plan) -> None:
    """Refuse a run whose protocol or price card is not the one its plan fixed."""
    fixed = {
        layout.protocol: plan.protocol_digest,
        layout.price_card: plan.price_digest,
    }
    for path, digest in fixed.items():
        if not path.is_file() or sha256(path.read_bytes()) != digest:
            raise RunDirectoryError(
                f"{path} must be the file that the plan fixed (SHA-256 {digest}): put "
                "it back, or start another directory."
            )


def drifted(plan: Plan, folder: Path | None) -> tuple[str, ...]:
    """Return what is no longer as the plan has it; `folder` is where agents lie."""
    found = []
    for arm in plan.arms:
        agent = agent_spec.load(arm.agent, folder=folder)
        if agent.fingerprint != arm.fingerprint:
            found.append(f"agent {arm.agent}")
    found += explained(plan)
    if environment() != plan.environment:
        found.append("environment")
    return tuple(found)


def explained(plan: Plan) -> list[str]:
    """Return a line per suite whose code is not known to be the plan's."""
    return [f"suite {name} ({why})" for name, why in other_code(plan.suites).items()]


def refuse_revealed(layout: RunLayout) -> None:
    """Refuse to play worlds that an agent could already know."""
    if layout.reveal.exists():
        raise UsageError(
            f"{layout.root} is revealed: its seeds are public, so nothing more is "
            "played under its plan. Start another directory."
        )
