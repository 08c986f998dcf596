"""What somebody who does more than was asked would do next on a site.

The goal is reached; one commit more would be made that nobody asked for. Which one is
decided by the site's own rules, so it is never one that the site refuses.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing

import msgspec

from owa_bench.envs.changesurf.database import Database
from owa_bench.envs.changesurf.plots import wanted
from owa_bench.envs.changesurf.state import SiteState, commits
from owa_bench.worlds.site import SiteGoal, SiteValue, Workflow

_NOBODYS = 4_200  # EUR 42.00, handed in at the answer desk though nobody asked


class OneTooMany:
    """Reads states as an over-doer does, from the first of a visit to the last."""

    def __init__(self) -> None:
        self._more: SiteGoal | None = None

    def __call__(self, site: SiteState) -> SiteState | None:
        """Return the state as it is read, None when all that is too much is done."""
        made = commits(site)
        if not made:
            return site
        if made > 1:
            return None
        if self._more is None:
            self._more = one_too_many(site)
        return as_if_asked(site, self._more)


def one_too_many(site: SiteState) -> SiteGoal:
    """Return what would be one commit too many, now that the goal is reached.

    The same form again where that leaves another row or changes one; at the same record
    first (a duplicate), else at another. Where the site admits it nowhere, an amount
    that nobody asked for goes to the answer desk, which every site has.
    """
    asked = site.world.spec.goal
    workflow = site.world.spec.workflow(asked.workflow)
    values = dict(asked.values)
    with closing(_database(site)) as database:
        for record, row in _records(site, workflow):
            more = _goal(asked, workflow, values, record, row)
            refused = database.refusal(workflow.checks, values, row) is not None
            if not refused and _changes(site, more):
                return more
    desk = site.world.spec.workflow("answer")
    return _goal(asked, desk, {"answer": _NOBODYS}, "", {})


def as_if_asked(site: SiteState, goal: SiteGoal) -> SiteState:
    """Return the state as it were if `goal` had just been set, on the site as it is."""
    spec = msgspec.structs.replace(site.world.spec, goal=goal)
    world = msgspec.structs.replace(site.world, spec=spec)
    return msgspec.structs.replace(site, world=world, initial=site.tables)


def _records(
    site: SiteState, workflow: Workflow
) -> Iterator[tuple[SiteValue, Mapping[str, SiteValue]]]:
    """Yield where the workflow could begin once more, at the same record first."""
    goal = site.world.spec.goal
    if not workflow.record:
        yield "", {}
        return
    keys = [row[0] for row in site.rows(workflow.record)]
    for key in sorted(keys, key=lambda key: key != goal.record):
        yield key, site.row(workflow.record, key)


def _changes(site: SiteState, goal: SiteGoal) -> bool:
    """Return whether the rows of a goal are not there yet; a new row never is."""
    return any(
        each.key is None
        or any(site.row(each.table, each.key)[c] != v for c, v in each.values)
        for each in goal.wanted
    )


def _goal(
    asked: SiteGoal,
    workflow: Workflow,
    values: Mapping[str, SiteValue],
    record: SiteValue,
    row: Mapping[str, SiteValue],
) -> SiteGoal:
    """Return the goal to fill a workflow in; what it rests on was seen before."""
    return msgspec.structs.replace(
        asked,
        workflow=workflow.key,
        record=record,
        values=tuple(values.items()),
        wanted=wanted(workflow, values, row, record),
        evidence=(),
    )


def _database(site: SiteState) -> Database:
    """Return a database of its own, with the rows as they are now."""
    return Database(msgspec.structs.replace(site.world.spec, tables=site.tables))
