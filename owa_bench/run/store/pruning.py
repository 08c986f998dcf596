"""Pruning of a run: its packs are dropped, digests of their blobs stay in events."""

from typing import NamedTuple

import msgspec

from owa_bench.errors import UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PrunedPacks, pack_paths, read_pruned
from owa_bench.run.store.directory import locked
from owa_bench.run.store.files import plan_digest, write_whole


class Pruned(NamedTuple):
    """How many packs were dropped, and their bytes."""

    packs: int
    size: int


def prune(layout: RunLayout) -> Pruned:
    """Drop the transcripts of a run; `verify` says so from then on and still passes.

    The names of the packs are written down first, so a kill in between loses nothing.

    Args:
        layout: The run directory.

    Returns:
        What was dropped.

    Raises:
        RunDirectoryError: It is no run directory.
        UsageError: It is being played, or it holds no transcripts.
    """
    plan_digest(layout)
    with locked(layout.root):
        paths = tuple(pack_paths(layout))
        if not paths:
            raise UsageError(f"{layout.root} holds no transcripts to prune.")
        sizes = {path.name: path.stat().st_size for path in paths}
        packs = PrunedPacks(packs=read_pruned(layout) | sizes)
        write_whole(layout.pruned, msgspec.json.encode(packs))
        for path in paths:
            path.unlink()
    return Pruned(len(paths), sum(sizes.values()))
