"""Column naming by values: keys that meet, sums that add up, statuses asked for.

Words alone cannot tell two renamed text fields apart. The rule of a goal can: an entry's account is
the id of some account, a status column holds the status asked for. `CLUES` says this of the columns
of every family.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.agents.solvers import schema_matching
from owa_bench.agents.solvers.api_solver.resource_table import (
    CENTS_IN_DOLLAR,
    ResourceTable,
    control_rows,
    number,
)

WEIGHT = 2.0  # of one satisfied clue against the likeness of words
LEAST_MET = 0.5  # share of keys that are found where they should be
ROUNDS = 2  # tables lean on each other's names, so the second look sees more


class Clue(NamedTuple):
    """A condition on a role's values: unique, below, holds, kin, adds, like or meets.

    `what` is another role (below), a key of the rule (holds), "source.role" (kin: keys, like:
    amounts most of which are equal), the role that tells apart the lines of periods that meet
    (meets; "" for one line).
    """

    role: str
    kind: str
    what: str = ""


Clues = Mapping[str, tuple[Clue, ...]]  # by source


def clues(text: str) -> tuple[Clue, ...]:
    """Return the clues of a source, written `role kind what; role kind`.

    >>> clues("id unique; account kin accounts.id")[1].what
    'accounts.id'
    """
    return tuple(Clue(*part.split()) for part in text.split(";"))


def _families(text: str) -> Mapping[str, Clues]:
    """Return clues by family, from lines `family` and `source: clues` below it."""
    families: dict[str, dict[str, tuple[Clue, ...]]] = {}
    for block in re.split(r"\n(?=\w)", text.strip()):
        name, *lines = re.split(r"\n  (?=\w)", block)
        sources = (" ".join(line.split()).split(": ") for line in lines)
        families[name] = {source: clues(rest) for source, rest in sources}
    return families


CLUES = _families("""
currency_rollup
  branches: id unique; id kin receipts.branch; code unique; code kin links.code;
    status holds branch_status; entity kin entities.entity
  receipts: id unique; branch kin branches.id; currency kin rates.currency; amount adds
  entities: entity unique; entity kin branches.entity; entity kin links.entity;
    opening adds
  rates: currency kin receipts.currency; first_day below last_day;
    last_day meets currency
  links: code kin branches.code; entity kin entities.entity
deduplicate
  policies: segment unique; segment kin customers.segment
  customers: id unique; code unique; code kin links.code; status holds customer_status;
    account unique; account kin invoices.account; segment kin policies.segment
  invoices: id unique; account kin customers.account; account kin links.account;
    status holds invoice_status; amount adds
  links: code kin customers.code; account kin invoices.account
entitlement_audit
  rights: department kin people.department; entitlement kin grants.entitlement;
    entitlement kin terms.entitlement
  people: id unique; login unique; login kin links.login; seat unique;
    department kin rights.department; status holds person_status; seat kin grants.seat
  grants: id unique; seat kin people.seat; seat kin links.seat;
    entitlement kin terms.entitlement; entitlement kin rights.entitlement
  terms: entitlement kin grants.entitlement; first_day below last_day;
    last_day meets entitlement; seat_price adds
  links: login kin people.login; seat kin grants.seat
incident_timeline
  windows: name holds window; first_day below last_day; last_day meets
  services: service unique; service kin alerts.service; status holds service_status;
    component kin changes.component; component kin links.component;
    service kin links.service
  alerts: id unique; service kin services.service; loss adds
  changes: id unique; component kin services.component; component kin links.component;
    cost adds
  links: service kin services.service; component kin changes.component
reconcile
  periods: name holds period; first_day below last_day; last_day meets
  accounts: id unique; code unique; status holds account_status; id kin entries.account;
    code kin links.code; bank_account kin transfers.bank_account
  entries: id unique; account kin accounts.id; reference kin transfers.reference;
    amount adds; amount like transfers.amount
  transfers: id unique; bank_account kin accounts.bank_account; amount adds;
    amount like entries.amount; bank_account kin links.bank_account;
    reference kin entries.reference
  links: code kin accounts.code; bank_account kin transfers.bank_account
restock
  classes: class unique; class kin items.class; reorder_level below target_level
  items: sku unique; class kin classes.class; status holds item_status;
    part kin offers.part; sku kin links.sku
  offers: id unique; id kin orders.offer; part kin items.part; part kin links.part;
    price adds
  orders: id unique; offer kin offers.id; status holds open_status; total adds
  links: sku kin items.sku; part kin offers.part
sla_report
  customers: id unique; code unique; id kin tickets.customer; code kin links.code;
    contract kin agreements.contract
  tickets: id unique; customer kin customers.id; priority kin targets.priority
  agreements: contract unique; contract kin customers.contract; plan kin targets.plan;
    contract kin links.contract
  targets: plan kin agreements.plan; priority kin tickets.priority; credit adds
  links: code kin customers.code; contract kin agreements.contract
webhook_replay
  endpoints: endpoint unique; endpoint kin deliveries.endpoint;
    status holds endpoint_status
  deliveries: id unique; id kin replays.delivery; endpoint kin endpoints.endpoint;
    event kin links.event; message kin messages.message; outcome holds outcome
  replays: id unique; delivery kin deliveries.id; status holds open_status; value adds
  messages: message unique; message kin deliveries.message; message kin links.message;
    value adds
  links: event kin deliveries.event; message kin messages.message
""")


def family_clues(family: str) -> Clues:
    """Return the clues to the columns of a family, none for one not known here."""
    return CLUES.get(family.partition("-")[0], {})


class ColumnEvidence:
    """Weighs the ways in which the tables of a goal may be named."""

    def __init__(
        self, tables: Mapping[str, ResourceTable], rule: Mapping[str, Any], clues: Clues
    ) -> None:
        self._tables = tables
        self._clues = clues
        self._rule = rule
        controls = control_rows(tables.values())
        self._totals = {name: row.get("total") for name, row in controls}

    def settle(self) -> None:
        """Give every table with renamed fields its likeliest names."""
        for _ in range(ROUNDS):
            for table in self._tables.values():
                if table.fit.missing:
                    self._name(table)

    def consistency(self, table: ResourceTable) -> float:
        """Return how well a table's values are what they must be, sums aside.

        Args:
            table: The table as it is named now.
        Returns: A share in [0, 1]; 1 where no clue is about the table.
        """
        shares = self._shares(table, table.names, ("unique", "holds", "below", "kin"))
        return sum(shares) / len(shares) if shares else 1.0

    def meets(self, table: ResourceTable) -> bool:
        """Return whether the keys of a table are found where the rule looks for them.

        Args:
            table: The table as it is named now.
        Returns: True if at least half of the values of every key are.
        """
        shares = self._shares(table, table.names, ("kin",))
        return all(share >= LEAST_MET for share in shares)

    def money(self, source: str) -> list[str]:
        """Return the roles of a list whose amounts a control total would cover."""
        clues = self._clues.get(source, ())
        return [clue.role for clue in clues if clue.kind == "adds"]

    def _name(self, table: ResourceTable) -> None:
        """Choose the best naming; its lead is over the best that reads otherwise."""
        weighed: dict[tuple[str | None, ...], float] = {}
        names: dict[tuple[str | None, ...], dict[str, str]] = {}
        for naming in schema_matching.namings(table.fit):
            roles = table.roles_under(naming)
            key = tuple(roles.get(role) for role in table.source.fields)
            score = sum(table.fit.scores[pair] for pair in naming.items())
            score += WEIGHT * self._support(table, roles)
            if score > weighed.get(key, float("-inf")):
                weighed[key], names[key] = score, roles
        if not weighed:
            return
        order = sorted(weighed, key=lambda key: -weighed[key])
        table.names = names[order[0]]
        second = weighed[order[1]] if len(order) > 1 else float("-inf")
        table.lead = weighed[order[0]] - second

    def _support(self, table: ResourceTable, names: Mapping[str, str]) -> float:
        """Return how many more clues hold than fail when the roles have these names."""
        if table.source.is_control:
            return self._control(_columns(table, names))
        return sum(2.0 * share - 1.0 for share in self._shares(table, names))

    def _shares(
        self, table: ResourceTable, names: Mapping[str, str], kinds: Sequence[str] = ()
    ) -> list[float]:
        """Return how far each clue holds of which something can be said.

        `kinds` are the clues that are asked about, all of them by default.
        """
        columns = _columns(table, names)
        clues = self._clues.get(table.source.id, ())
        shares = [
            self._holds(clue, table, columns) for clue in clues if not kinds or clue.kind in kinds
        ]
        return [share for share in shares if share is not None]

    def _holds(
        self, clue: Clue, table: ResourceTable, columns: Mapping[str, Sequence[Any]]
    ) -> float | None:
        """Return in [0, 1] how far a clue holds, None if nothing can be said."""
        values = columns.get(clue.role)
        if not values:
            return None
        match clue.kind:
            case "unique":
                return len(set(values)) / len(values)
            case "holds":
                return float(self._rule.get(clue.what) in values)
            case "below":
                pairs = zip(values, columns.get(clue.what, ()), strict=False)
                return _share([a <= b for a, b in pairs if type(a) is type(b)])
            case "meets" | "like":
                return None  # they say how values lie, not what they are called
            case "kin":
                return _shared(values, self._column(clue.what))
            case _:
                total = self._totals.get(table.source.id)
                if total is None:
                    return None
                added = sum(number(v) or 0 for v in values)
                return float(total in (round(added), round(added * CENTS_IN_DOLLAR)))

    def _control(self, columns: Mapping[str, Sequence[Any]]) -> float:
        """Return how well control totals name lists and count their rows."""
        lists = columns.get("list", ())
        known = [self._tables.get(str(name)) for name in lists]
        counts = zip(known, columns.get("count", ()), strict=False)
        counted = [len(s.fetched.rows) == n for s, n in counts if s is not None]
        named = _share([s is not None for s in known]) or 0.0
        return named + (_share(counted) or 0.0)

    def _column(self, place: str) -> list[Any]:
        """Return the values of "source.role" as that table is named now."""
        source, _, role = place.partition(".")
        table = self._tables.get(source)
        if table is None or role not in table.names:
            return []
        return schema_matching.column(table.fetched.rows, table.names[role])


def _columns(table: ResourceTable, names: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the values of each role when the roles have these names."""
    rows = table.fetched.rows
    return {role: schema_matching.column(rows, name) for role, name in names.items()}


def _shared(first: Sequence[Any], second: Sequence[Any]) -> float | None:
    """Return the share of values of the smaller column that the other holds."""
    one, two = set(first), set(second)
    return len(one & two) / min(len(one), len(two)) if one and two else None


def _share(truths: Sequence[bool]) -> float | None:
    """Return the share that is true, None for none."""
    return sum(truths) / len(truths) if truths else None
