"""Runs the units of a plan side by side; a unit done is a file, so a stop costs one."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from owa_bench.errors import UsageError
from owa_bench.subjects.cartpole3d import Plan, Row, Unit, done, units

_PLAN, _UNITS = "plan.json", "units"


def run(
    plan: Plan, folder: Path, *, workers: int, told: Callable[[int, int], None]
) -> list[Row]:
    """Do what is left of a plan in `folder` and return all of its rows.

    `told(done, all)` is called at the start and after each unit.
    Errors: UsageError if the folder holds another plan.
    """
    _settle(plan, folder)
    whole = units(plan)
    left = [unit for unit in whole if not _file(folder, unit).exists()]
    told(len(whole) - len(left), len(whole))
    if left:
        # Forked children would share the parent's torch threads; fresh ones do not.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            jobs = [pool.submit(work, unit, plan, folder) for unit in left]
            try:
                for count, job in enumerate(as_completed(jobs), 1):
                    job.result()
                    told(len(whole) - len(left) + count, len(whole))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # begun units alone end
                raise
    rows = (msgspec.json.decode(_file(folder, unit).read_bytes()) for unit in whole)
    return [row for part in rows for row in part]


def work(unit: Unit, plan: Plan, folder: Path) -> None:
    """Do a unit and write its rows, whole or not at all."""
    target = _file(folder, unit)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_suffix(f".{os.getpid()}")
    written.write_bytes(msgspec.json.encode(done(unit, plan)))
    written.replace(target)


def _file(folder: Path, unit: Unit) -> Path:
    return folder / _UNITS / f"{unit.name}.json"


def _settle(plan: Plan, folder: Path) -> None:
    """Write the plan, or see that the folder's is the same."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _PLAN
    text = msgspec.json.format(msgspec.json.encode(plan._asdict()), indent=2)
    if not path.exists():
        path.write_bytes(text)
    elif path.read_bytes() != text:
        raise UsageError(f"`{folder}` holds another plan ({path}): name a new folder.")
