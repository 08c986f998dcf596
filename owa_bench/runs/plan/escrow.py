"""The master secret of a run: committed to before episode 0, revealed after it.

A plan publishes H(nonce | master). Both lie in the user's data folder under that commitment until
`reveal` writes them into the run directory; then anybody can derive every seed and regenerate every
episode.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import CheckFailure, TraceError, UsageError
from owa_bench.records.layout import Reveal, RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.witness import seed_nonce
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store.directory import refuse_revealed
from owa_bench.runs.store.files import plan_digest, write_whole
from owa_bench.runs.store.keys import check_private, write_private
from owa_bench.seeding import commitment, fresh_bytes, mixed_master


class Escrow(NamedTuple):
    """A master, the nonce that hides it, and the commitment to both."""

    master: bytes
    nonce: bytes
    commitment: str


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """`reveal.json`, and the file in the data folder: hex strings."""

    master: str
    nonce: str


def commit(folder: Path, master: bytes | None = None) -> Escrow:
    """Return a fresh master (or the one given) under a fresh nonce, stored in `folder`.

    Args:
        folder: The data folder.
        master: The master secret; None for a fresh one.
    Returns: Master, nonce and commitment.
    """
    master = fresh_bytes() if master is None else master
    nonce = fresh_bytes()
    escrow = Escrow(master, nonce, commitment(nonce, master))
    write_private(_path(folder, escrow.commitment), _encoded(escrow))
    return escrow


def find(folder: Path, name: str) -> Escrow:
    """Return the master and nonce of a commitment.

    Args:
        folder: The data folder.
        name: The commitment, 64 hex digits.
    Raises: UsageError: The folder does not hold them.
    """
    path = _path(folder, name)
    if not path.exists():
        raise UsageError(
            f"No master lies in {folder} under the commitment {name}. It is on the "
            "machine, and in the data folder, where the plan was made."
        )
    check_private(path)
    return _checked(path, name)


def reveal(folder: Path, layout: RunLayout) -> Reveal:
    """Publish master and nonce of a run in its `reveal.json`; again does nothing.

    Args:
        folder: The data folder.
        layout: The run directory.
    Returns: What was published.
    Raises:
        RunDirectoryError: There is no plan.
        UsageError: The folder does not hold the master.
    """
    plan = read_plan(layout)
    if layout.reveal.exists():
        escrow = _checked(layout.reveal, plan.commitment)
    else:
        escrow = find(folder, plan.commitment)
        write_whole(layout.reveal, _encoded(escrow))
    return Reveal(escrow.master.hex(), escrow.nonce.hex())


def revealed_root(layout: RunLayout, plan: Plan) -> bytes:
    """Return the secret that the seeds of a revealed run derive from.

    Args:
        layout: The run directory.
        plan: Its plan.
    Returns: The master, a verifier's challenge or nonce mixed in.
    Raises:
        UsageError: The run is not revealed.
        CheckFailure: What was revealed is not what was committed to.
    """
    if not layout.reveal.exists():
        raise UsageError(
            f"{layout.root} is not revealed yet, so its seeds are not known. "
            f"Its owner runs: owa-bench escrow reveal {layout.root}"
        )
    escrow = _checked(layout.reveal, plan.commitment)
    return seed_root(layout, plan, escrow.master)


def shared_commitment(run_dir: Path | None) -> str:
    """Return the commitment of a run whose worlds another plays too, "" without one.

    Raises: UsageError: the run is revealed, or its worlds belong to its plan alone.
    """
    if run_dir is None:
        return ""
    layout = RunLayout(run_dir)
    refuse_revealed(layout)
    plan = read_plan(layout)
    if plan.challenger:
        raise UsageError(
            f"The worlds of {run_dir} derive from a challenge to its own plan, so no "
            "other plan can play them: play both agents in one run (--agent twice)."
        )
    return plan.commitment


def seed_root(layout: RunLayout, plan: Plan, master: bytes) -> bytes:
    """Return the secret that a run's seeds derive from.

    Args:
        layout: The run directory.
        plan: Its plan.
        master: The master that it commits to.
    Returns: The master, a verifier's challenge or nonce mixed in.
    Raises: CheckFailure: The plan waits for a challenge, or holds two.
    """
    return mixed_master(master, seed_nonce(layout, plan, plan_digest(layout)))


def _checked(path: Path, name: str) -> Escrow:
    """Return the escrow in a file; it must be what `name` commits to."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
        master, nonce = bytes.fromhex(file.master), bytes.fromhex(file.nonce)
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} does not hold a master and a nonce: {error}.") from error
    if commitment(nonce, master) != name:
        raise CheckFailure(f"{path} is not what the commitment {name} was made to.")
    return Escrow(master, nonce, name)


def _encoded(escrow: Escrow) -> bytes:
    """Return the bytes of an escrow file."""
    file = _File(master=escrow.master.hex(), nonce=escrow.nonce.hex())
    return msgspec.json.encode(file) + b"\n"


def _path(folder: Path, name: str) -> Path:
    """Return the file of a commitment."""
    if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
        raise UsageError(f"A commitment is 64 hex digits, got {name!r}.")
    return folder / "escrow" / f"{name}.json"
