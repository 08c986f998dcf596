"""Signature of a run's plan, made again where what it was in does not read."""

from pathlib import Path

import msgspec

from owa_bench.canonical import canonical_json, key_id, seal, unseal
from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import Plan
from owa_bench.run.store import keys
from owa_bench.run.store.files import write_whole


def mend_signature(layout: RunLayout, plan: Plan, home: Path, name: str) -> None:
    """Sign a run's plan again where its signature does not read.

    Args:
        layout: The run directory.
        plan: The plan that it holds.
        home: The data folder.
        name: Of the key in it.

    Raises:
        RunDirectoryError: The signature does not read, and the key is another one.
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
