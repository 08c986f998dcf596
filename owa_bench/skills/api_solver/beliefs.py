"""What the agent holds true about the world after what it has seen."""

from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.skills import calibration
from owa_bench.skills.api_solver.resource_table import ResourceTable
from owa_bench.skills.api_solver.silent_drift import UNITS

UNKNOWN = 0.5
SEEN = 0.97  # read off the served rows themselves
ADDED_UP = 0.98  # a unit that control totals confirm
DOCUMENTED = 0.8  # a unit that only the documents state
LOOKED_AT = 0.93  # documents against a whole collection, units added up
NOT_ADDED_UP = 0.75  # the same without control totals


def beliefs(
    propositions: Sequence[Mapping[str, Any]], sheets: Mapping[str, ResourceTable]
) -> dict[str, float]:
    """Return a probability for each proposition of the goal."""
    return {
        str(claim["id"]): _belief(claim, sheets.get(str(claim.get("source"))))
        for claim in propositions
    }


def _belief(claim: Mapping[str, Any], sheet: ResourceTable | None) -> float:
    if sheet is None or not sheet.crop.rows:
        return UNKNOWN
    match claim["kind"]:
        case "unit":
            return _unit(claim, sheet)
        case "duplicate":
            one, other = claim["rows"]
            same = sheet.same_posting(one, other, claim.get("fields", ()))
            return _sided(same, SEEN)
        case "bound":
            return _bound(claim, sheet)
        case "docs":
            return _docs(claim, sheet)
        case _:
            return UNKNOWN


def _unit(claim: Mapping[str, Any], sheet: ResourceTable) -> float:
    unit = None if UNITS in sheet.doubts else sheet.units.get(claim["field"])
    sure = ADDED_UP if sheet.checked else DOCUMENTED
    return _sided(None if unit is None else unit == claim["claim"], sure)


def _bound(claim: Mapping[str, Any], sheet: ResourceTable) -> float:
    where = claim["where"].items()
    for row in sheet.table():
        if all(row.get(role) == value for role, value in where):
            value = row.get(claim["field"])
            return _sided(value if isinstance(value, bool) else None, SEEN)
    return UNKNOWN


def _docs(claim: Mapping[str, Any], sheet: ResourceTable) -> float:
    differ = bool(sheet.crop.lags) or sheet.units != sheet.documented
    added_up = sheet.checked or not sheet.documented
    sure = LOOKED_AT if differ or added_up else NOT_ADDED_UP
    if sheet.doubts and not differ:
        sure = UNKNOWN
    return _sided(differ == (claim["claim"] == "differ"), sure)


def _sided(truth: bool | None, sure: float) -> float:
    """Return `sure` for what was seen true, its opposite for false, .5 if unseen."""
    if truth is None:
        return UNKNOWN
    return calibration.stated(sure if truth else 1.0 - sure)
