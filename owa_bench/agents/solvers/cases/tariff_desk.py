"""Steps of the parser of `tariff` that run in the sandbox; files of the folder are their memory.

The module needs numpy and the rules alone; the parser sends its source.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.cases.tariff_fit import EngineFit, FormTable, PricedRows, fit_engine
from owa_bench.agents.solvers.cases.tariff_quotes import (
    QuoteChoice,
    QuoteFit,
    fit_quotes,
    quote_candidates,
)
from owa_bench.company.language.tariff_rules import Departure, Tariff, fuel_percent

_STATE = Path("tariff-state.json")
_POOL_SEED = 1
_CLERKS = 0.085  # bills that clerks may have changed, where nobody records it


class FreightDesk:
    """What is known of a case: tariff, fuel, planned shipments, the fit of bills, quotes.

    Args:
        state: As `begin` writes it, or as it was kept.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._tariff = Tariff(**state["tariff"])
        self._table = FormTable(self._tariff, state["without"])
        self._planned = self._rows(state["planned"])

    @classmethod
    def load(cls) -> "FreightDesk":
        """Return the desk as the last step left it."""
        return cls(json.loads(_STATE.read_text("utf-8")))

    def keep(self) -> None:
        """Write the state into the folder."""
        _STATE.write_text(json.dumps(self._state), "utf-8")

    def fit_bills(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Fit departures to bills.

        Args:
            rows: Bills by canonical columns.
        """
        bills = self._rows(rows, [row["billed_cents"] for row in rows])
        noise = 0.0 if all(row["made_by"] for row in rows) else _CLERKS
        # Whoever takes the bills of two engines for those of one cannot explain them all.
        fit = fit_engine(bills, 1.0 if "history" in self._state["without"] else noise)
        self._state["bills"] = [fit.rules, fit.equals, fit.exact]
        self._state["quoted"] = [fit.rules, fit.equals, 0]

    def ask(self, count: int) -> list[dict[str, Any]]:
        """Return the next test shipments; none: every answer is settled.

        Args:
            count: At most so many.
        """
        days = sorted({row["pickup"] for row in self._state["planned"]})
        pool = quote_candidates(self._tariff, self._state["planned"], days, _POOL_SEED)
        choice = QuoteChoice(self._rows(pool), self._planned)
        chosen = choice.choose(self._quoted(), self._past_quotes(), count, late=self._state["late"])
        self._state["asking"] = chosen
        return chosen

    def tell(self, totals: Sequence[int]) -> None:
        """Take the totals of the shipments that were asked for.

        Args:
            totals: In order, cents.
        """
        self._state["asked"] += self._state["asking"]
        self._state["totals"] += totals
        bills = EngineFit(_rules(self._state["bills"][0]), *self._state["bills"][1:])
        fit = fit_quotes(self._past_quotes(), bills, self._quoted(), late=self._state["late"])
        self._state["quoted"] = [fit.rules, fit.equals, fit.explained]

    def answers(self) -> dict[str, Any]:
        """Return totals, published totals and departures of the planned shipments."""
        rules, planned = self._quoted().rules, self._planned
        totals = planned.prices(rules)
        keys = [row["id"] for row in planned.rows]
        departures = []
        for rule in rules:
            bare = planned.prices([one for one in rules if one != rule])
            touched = [key for key, hit in zip(keys, totals != bare, strict=True) if hit]
            departures.append([rule.section, touched])
        return {
            "totals": dict(zip(keys, totals.tolist(), strict=True)),
            "published": dict(zip(keys, planned.prices([]).tolist(), strict=True)),
            "departures": departures,
            "unexplained": len(self._state["asked"]) - self._state["quoted"][2],
        }

    def _quoted(self) -> QuoteFit:
        rules, equals, explained = self._state["quoted"]
        return QuoteFit(_rules(rules), equals, explained)

    def _past_quotes(self) -> PricedRows:
        return self._rows(self._state["asked"], self._state["totals"])

    def _rows(self, rows: Sequence[Mapping[str, Any]], totals: Sequence[int] = ()) -> PricedRows:
        correction = tuple(self._state["correction"]) or None
        fuel = fuel_percent([row["pickup"] for row in rows], self._state["fuel"], correction)
        return PricedRows(self._table, rows, fuel, totals)


def _rules(records: Sequence[Sequence[Any]]) -> list[Departure]:
    return [Departure(*record) for record in records]


def begin(record: Mapping[str, Any], files: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    """Begin a desk by what the pages say, and fit the bills.

    Args:
        record: Tariff, fuel, correction, "late" and "without".
        files: By table: file, served names and forms by column, one for each list.
    """
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, lists in files.items():
        tables[table] = []
        for file, names, forms in lists:
            rows = json.loads(Path(file).read_text("utf-8"))
            tables[table] += [
                {c: _plain(row[name], forms.get(c, "")) for c, name in names.items()}
                for row in rows
            ]
    state = {**record, "planned": tables["planned"], "asked": [], "totals": [], "asking": []}
    desk = FreightDesk(state)
    desk.fit_bills([row for row in tables["bills"] if row["made_by"] != "clerk"])
    desk.keep()


def _plain(value: Any, form: str) -> Any:
    """Return an amount in cents and a day in ISO, whatever their form."""
    if form == "euros":
        return int(str(value).replace(".", ""))
    return "-".join(reversed(str(value).split("."))) if form == "dotted" else value
