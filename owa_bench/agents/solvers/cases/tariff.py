"""Parser of the kind `tariff`: it reads the tariff, fits bills, asks for quotes and forecasts.

`miss` names what a careless reader leaves out, in the words of the kind's sources, and "quotes".
"""

import datetime as dt
import inspect
import json
import re
from collections.abc import Iterable
from typing import Any

from owa_bench.agents.solvers.cases import tariff_desk, tariff_fit, tariff_quotes
from owa_bench.agents.solvers.cases.client import CaseClient
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.company.language import tariff_departures, tariff_rules
from owa_bench.company.language.policy import Policy
from owa_bench.company.language.tariff_form import (
    FORM,
    FUEL_CORRECTION,
    FUEL_UNTIL,
    FUEL_WEEK,
    RELEASE,
    RELEASE_TODAY,
    tariff_of,
)
from owa_bench.company.language.text import MONEY
from owa_bench.interfaces import Brief

_POLICY, _FUEL, _RELEASES = "freight-tariff", "fuel-bulletin", "rater-releases"
_BATCH, _RESERVE = 10, 10
_IMPORT = "import json, sys\nsys.path.insert(0, '.')\nimport tariff_desk\n"
_MARGIN = 2  # minutes that it waits longer than it must
_SURE, _UNSURE, _CLAIM = 0.95, 0.2, 0.97
_QUOTA = re.compile(r"(\d+) test quotes")
_TOTAL = re.compile(rf"bill (more than|at most) ({MONEY.pattern}) for (\S+)\.$")
_CLAUSE = re.compile(r"(follows|departs from) section (\d+) of")
_TOUCHED = re.compile(r"for (\S+) will have (another total than|the total of) the published")
_SOURCES = (tariff_rules, tariff_departures, tariff_fit, tariff_quotes, tariff_desk)
_PACKAGES = re.compile(r"from owa_bench\.(?:company\.language|agents\.solvers\.cases)\.")


class TariffParser:
    """Plays one case.

    Args:
        brief: Of the episode.
        miss: Sources that it leaves out.
    """

    def __init__(self, brief: Brief, miss: Iterable[str] = ()) -> None:
        self._brief = brief
        self._miss = frozenset(miss)
        self._client = CaseClient(brief)
        self._begins = dt.datetime.fromisoformat(str(brief.goal["begins"]))
        self._wait_until = self._begins
        self._answers: dict[str, Any] = {}

    def plan(self) -> ToolPlan[PlanCall]:
        """Return the plan of the case; its last call finishes."""
        client = self._client
        policy = FORM.read((yield from client.page(_POLICY)))
        if policy is None:
            return PlanCall("declare_infeasible", {"p": 0.1})
        fuel = self._bulletin((yield from client.page(_FUEL)))
        since, late = self._releases((yield from client.page(_RELEASES)))
        lists = {"planned": (yield from client.save("planned", "planned"))}
        bounds = {"pickup_from": since} if since else {}
        lists["bills"] = yield from client.save("bills", "bills", **bounds)
        yield from self._wait()
        record = {
            "tariff": tariff_of(policy)._asdict(),
            "fuel": fuel,
            "correction": (yield from self._correction()),
            "late": late and not self._miss & {"quotes", "release"},
            "without": sorted(self._miss),
        }
        yield from client.python(_modules())
        files = {
            table: [
                [f"{table}.{number}.json", dict(place.names), dict(place.forms)]
                for number, place in enumerate(places)
            ]
            for table, places in lists.items()
        }
        yield from client.python(
            f"{_IMPORT}tariff_desk.begin(json.loads({json.dumps(record)!r}), {files!r})\n"
        )
        if "quotes" not in self._miss:
            yield from self._quotes()
        text = yield from client.python(_step("print(json.dumps(desk.answers()))"))
        if not text.startswith("{"):  # the search ran too long
            return PlanCall("finish", {"p": 1.0 - _CLAIM})
        self._answers = json.loads(text)
        totals, departures = self._deliverables(policy)
        yield from client.submit("totals", totals)
        yield from client.submit("departures", departures)
        beliefs = {
            name: self._belief(policy, text) for name, text in self._brief.propositions.items()
        }
        sure = _UNSURE if self._answers["unexplained"] else _SURE
        return PlanCall("finish", {"p": sure, "beliefs": beliefs})

    # --- pages and mails --------------------------------------------------------------------

    def _bulletin(self, text: str) -> dict[str, int]:
        """Return the fuel percentages of a page, in hundredths, by the ISO day of the Monday."""
        if "fuel_correction" not in self._miss:
            self._note_time(reading.values["time"] for reading in FUEL_UNTIL.read(text))
        return {
            reading.values["monday"].isoformat(): reading.values["percent"]
            for reading in FUEL_WEEK.read(text)
        }

    def _releases(self, text: str) -> tuple[str, bool]:
        """Return since when the bills' engine is in force, and whether a later one comes."""
        today = self._begins.date()
        days = [reading.values["first"] for reading in RELEASE.read(text)]
        announced = list(RELEASE_TODAY.read(text))
        self._note_time(reading.values["time"] for reading in announced)
        late = bool(announced) or any(day > today for day in days)
        past = [day for day in days if day <= today]
        if not past or "history" in self._miss:
            return "", late
        return max(past).isoformat(), late

    def _note_time(self, clocks: Iterable[str]) -> None:
        for clock in clocks:
            at = dt.datetime.combine(self._begins.date(), dt.time.fromisoformat(clock))
            self._wait_until = max(self._wait_until, at)

    def _wait(self) -> ToolPlan[None]:
        """Wait until everything that is announced has happened."""
        minutes = int((self._wait_until - self._begins).total_seconds()) // 60
        if minutes:
            yield from self._client.wait(minutes + _MARGIN)

    def _correction(self) -> ToolPlan[list[Any]]:
        """Return day and percentage of a correction that was mailed; none: an empty list."""
        found: list[Any] = []
        if "fuel_correction" in self._miss:
            return found
        for mail in (yield from self._client.mails()).values():
            for reading in FUEL_CORRECTION.read(mail.text):
                found = [reading.values["first"].isoformat(), reading.values["percent"]]
        return found

    # --- quotes -----------------------------------------------------------------------------

    def _quotes(self) -> ToolPlan[None]:
        """Ask for quotes until every answer is settled or none is left."""
        client, quota = self._client, _QUOTA.search(self._brief.text)
        left = int(quota[1]) if quota else 0
        told = ""
        while left:
            # The first quotes look for departures that no bill shows, the last ones tell forms
            # apart.
            count = min(_BATCH if left > _RESERVE + _BATCH else _RESERVE // 2, left)
            text = yield from client.python(
                _step(f"{told}print(json.dumps(desk.ask({count})))\ndesk.keep()")
            )
            body, told = _row_list(text), ""
            if not body:
                break
            reply = yield from client.post("quote", body)
            totals = [quote["total_cents"] for quote in reply["quotes"]]
            told = f"desk.tell({totals})\n"
            left -= len(body)
        if told:
            yield from client.python(_step(f"{told}desk.keep()"))

    # --- answers ----------------------------------------------------------------------------

    def _deliverables(self, policy: Policy) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of both deliverables."""
        totals = [
            {"shipment": key, "total_cents": cents}
            for key, cents in self._answers["totals"].items()
        ]
        departures = [
            {"clause": _clause(policy, section), "shipments": touched}
            for section, touched in self._answers["departures"]
        ]
        return totals, departures

    def _belief(self, policy: Policy, text: str) -> float:
        """Return the probability of a statement, by the answers that were found."""
        totals, published = self._answers["totals"], self._answers["published"]
        if match := _TOTAL.search(text):
            above = totals[match[3]] > MONEY.read(match[2])
            holds = above == (match[1] == "more than")
        elif match := _CLAUSE.search(text):
            departed = {_clause(policy, section) for section, _ in self._answers["departures"]}
            holds = (match[2] in departed) == (match[1] == "departs from")
        elif match := _TOUCHED.search(text):
            moved = totals[match[1]] != published[match[1]]
            holds = moved == match[2].startswith("another")
        else:
            return 0.5
        return _CLAIM if holds else 1.0 - _CLAIM


def _clause(policy: Policy, section: str) -> str:
    return section if section == "new" else str(policy.sections.index(section) + 1)


def _row_list(text: str) -> list[dict[str, Any]]:
    """Return the shipments that a step prints; none if it ran too long."""
    return list(json.loads(text)) if text.startswith("[{") else []


def _modules() -> str:
    """Return the program that writes the modules of the search into the folder."""
    files = {
        f"{module.__name__.rpartition('.')[2]}.py": _PACKAGES.sub(
            "from ", inspect.getsource(module)
        )
        for module in _SOURCES
    }
    return (
        "from pathlib import Path\n"
        f"for name, text in {files!r}.items():\n    Path(name).write_text(text)\n"
    )


def _step(code: str) -> str:
    return f"{_IMPORT}desk = tariff_desk.FreightDesk.load()\n{code}\n"
