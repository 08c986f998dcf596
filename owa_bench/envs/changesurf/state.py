"""What a visit to a site has come to, as one frozen value.

The server replaces it with every request; the oracle, the hints and the detectors read
it, and pages are a pure function of world and state.
"""

from typing import NamedTuple

import msgspec

from owa_bench.worlds.site import SiteTable, SiteValue, SiteWorld

Cell = tuple[str, SiteValue, str]  # (collection, row key, column)


class Breach(NamedTuple):
    """Evidence of a disallowed act, noted where it happened."""

    rule: str
    evidence: str


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the server did, in canonical words; `at_ms` is simulated."""

    at_ms: int
    kind: str
    page: str
    detail: tuple[str, ...] = ()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that is being filled in: where it began, values so far, the step."""

    number: int
    workflow: str
    record: SiteValue
    values: tuple[tuple[str, SiteValue], ...] = ()
    step: int = 0
    committed: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What a list was asked for: words, a category, and how many pages in."""

    words: str = ""
    category: str = ""
    page: int = 1


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has happened so far.

    `initial` and `tables` are the database at the start and now. `page` is the page
    that was served last, `served_ms` when. `errors` are (slot, text) on it, `notice`
    one for all of it; `typed` is what the refused form held. `pending` is where the
    sign-in leads to, `retry` what a rate limit kept away, `sign_in` how far it is.
    `kept` is what the list behind either was asked for. `seen` are the cells ever
    served. `first_churn` is the churn of names in the world that the visit began in.
    `stale`: the page that is open was served before drift struck.
    """

    world: SiteWorld
    first_churn: int
    initial: tuple[SiteTable, ...]
    tables: tuple[SiteTable, ...]
    now_ms: int = 0
    page: str = ""
    served_ms: int = 0
    errors: tuple[tuple[str, str], ...] = ()
    notice: str = ""
    typed: tuple[tuple[str, str], ...] = ()
    query: Query = Query()
    draft: Draft | None = None
    drafts: int = 0
    signed_in: bool = False
    signed_requests: int = 0
    sign_in: str = ""
    pending: str = ""
    retry: str = ""
    kept: Query = Query()
    window_ms: int = 0
    window_used: int = 0
    seen: frozenset[Cell] = frozenset()
    visited: frozenset[str] = frozenset()
    log: tuple[ServerEvent, ...] = ()
    breaches: tuple[Breach, ...] = ()
    stale: bool = False

    def rows(self, table: str) -> tuple[tuple[SiteValue, ...], ...]:
        """Return the rows of a table as they are now."""
        return next(t.rows for t in self.tables if t.key == table)

    def row(self, table: str, key: SiteValue) -> dict[str, SiteValue]:
        """Return a row by its key as column -> value; KeyError if there is none."""
        for found in self.tables:
            if found.key == table:
                for row in found.rows:
                    if row[0] == key:
                        return dict(zip(found.columns, row, strict=True))
        raise KeyError(key)


def fresh(world: SiteWorld) -> SiteState:
    """Return the state in which a visit begins."""
    return SiteState(
        world=world,
        first_churn=world.plan.churn,
        initial=world.spec.tables,
        tables=world.spec.tables,
    )


def commits(state: SiteState) -> int:
    """Return how many commits the server made."""
    return sum(event.kind == "commit" for event in state.log)
