"""Checks before a run goes on: the lease of its shards, the signature of its plan."""

from pathlib import Path

import msgspec

from owa_bench.canonical import canonical_json, key_id, seal, unseal
from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.shards import read_lease
from owa_bench.runs.store import keys
from owa_bench.runs.store.files import shard_paths, write_whole
from owa_bench.seeding import fresh_bytes

# --- lease: which shards the session of one driver may write --------------------------
# A lock keeps a second driver of this machine away, but not a worker on another machine
# whose driver was killed. So each session draws a lease, which stands in the head of
# each of its shards, and notes in `lease.json` how long all earlier shards were when it
# began. When a session ends, and before the next begins, every earlier shard must be as
# long as noted and every later one must bear the lease noted last: what a worker wrote
# after its session was over is refused.


_FIX = "then go on with `owa-bench run --resume`."


class LeaseNote(msgspec.Struct, frozen=True, kw_only=True):
    """The file `lease.json`: the last session, and bytes of all shards before it."""

    lease: str
    shards: dict[str, int]


class RunLease:
    """The lease of one session; the run's lock must be held.

    Raises: RunDirectoryError: A shard was written to after its session was over.
    """

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self.check()
        self.token = fresh_bytes(16).hex()
        self._note()

    def check(self) -> None:
        """Refuse shards that a worker of an earlier session wrote to since.

        Raises: RunDirectoryError: Naming the shard and the way out.
        """
        if not self._layout.lease.exists():
            return  # the first session, or a run from before leases
        noted = _read(self._layout)
        for path in shard_paths(self._layout):
            size = noted.shards.get(path.name)
            if size is None and read_lease(path) != noted.lease:
                raise RunDirectoryError(
                    f"{path} was written by a worker of a session that was over: it "
                    "does not bear the lease of the last one. Move it and its pack "
                    f"away, {_FIX}"
                )
            if size is not None and path.stat().st_size != size:
                raise RunDirectoryError(
                    f"{path} must have the {size} bytes that it had when its session "
                    f"was over, got {path.stat().st_size}: a worker wrote on. Cut it "
                    f"with `truncate -s {size}`, {_FIX}"
                )

    def close(self) -> None:
        """Check once more, and note the session's own shards."""
        self.check()
        self._note()

    def _note(self) -> None:
        shards = {path.name: path.stat().st_size for path in shard_paths(self._layout)}
        note = LeaseNote(lease=self.token, shards=shards)
        write_whole(self._layout.lease, msgspec.json.encode(note))


def _read(layout: RunLayout) -> LeaseNote:
    try:
        return msgspec.json.decode(layout.lease.read_bytes(), type=LeaseNote)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(
            f"{layout.lease} cannot be read: {error}. Put back a copy or, where no "
            "worker of this run is alive any more, remove it; then resume."
        ) from error


# --- signature of the plan ------------------------------------------------------------


def mend_signature(layout: RunLayout, plan: Plan, home: Path, name: str) -> None:
    """Sign a run's plan again where its signature does not read.

    Args:
        layout: The run directory.
        plan: The plan that it holds.
        home: The data folder.
        name: Of the key in it.
    Raises: RunDirectoryError: The signature does not read, and the key is another one.
    """
    public = bytes.fromhex(plan.public_key)
    try:
        unseal(layout.plan_envelope.read_bytes(), public, PLAN_TYPE)
    except (OSError, CheckFailure) as error:
        key = keys.load(home, name) if name in keys.key_names(home) else None
        if key is None or keys.public_hex(key) != plan.public_key:
            raise RunDirectoryError(
                f"{layout.plan_envelope} does not read ({str(error).rstrip('.')}), and "
                f"the key that signed the plan, {key_id(public)}, is not here: put "
                "back a copy of the file."
            ) from error
        payload = canonical_json(msgspec.json.decode(layout.plan.read_bytes()))
        write_whole(layout.plan_envelope, seal(PLAN_TYPE, payload, key))
