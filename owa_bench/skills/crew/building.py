"""Fragments of items made of the values that an agent has gathered."""

from collections.abc import Mapping
from typing import Any

_SEARCHED = 2000


def build(
    family: str,
    item: Mapping[str, Any],
    values: Mapping[str, str],
    before: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the fragment of an item.

    Args:
        family: Of the task.
        item: As the goal has it.
        values: Of its clauses, by name.
        before: The fragments that it builds on.
    Returns: The fragment.
    """
    return _MAKERS[family.rpartition("/")[2]](item, values, before)


def _schema(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in item["clauses"]:
        value = values[name]
        match name.rpartition(".")[2]:
            case "tag":
                fields["tag"] = {"type": "string", "const": value}
            case "kinds":
                fields["kind"] = {"type": "string", "enum": value.split(" and ")}
            case "limit":
                limits = {"minLength": 1, "maxLength": int(value)}
                fields["name"] = {"type": "string", **limits}
            case "range":
                low, high = (int(number) for number in value.split(" and "))
                fields["amount"] = {"type": "integer", "minimum": low, "maximum": high}
    return {"properties": fields, "required": sorted(fields)}


def _booking(
    item: Mapping[str, Any],
    values: Mapping[str, str],
    before: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    own = {name.rpartition(".")[2]: values[name] for name in item["clauses"]}
    open_for, first, period = (int(word) for word in own["hours"].split()[::2])
    length = int(own["length"])
    ends = (int(job["start"]) + int(job["length"]) for job in before.values())
    start = max(ends, default=0) + int(own["gap"])

    def is_open(hour: int) -> bool:
        return hour >= first and (hour - first) % period < open_for

    while start < _SEARCHED and not all(map(is_open, range(start, start + length))):
        start += 1
    return {"site": item["site"], "start": start, "length": length, "key": own["key"]}


def _runbook(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    part, order = values[f"{item['name']}.cause"], values[f"{item['name']}.order"]
    moves = ["drain", "switch"] if order.startswith("drain") else ["switch", "drain"]
    return {
        "steps": [
            {"do": "set", "part": part, "value": values[f"{part}.flag"]},
            {"do": "pin", "part": part, "value": values[f"{part}.version"]},
            *({"do": move} for move in moves),
            {"do": "start"},
        ]
    }


def _function(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    first = values[f"{item['module']}.layout"].split()[0]
    second = "count" if first == "amount" else "amount"
    amount = "amount"
    if cap := values.get(f"{item['name']}.cap"):
        amount = f"min(amount, {cap})"
    bonus = values.get(f"{item['name']}.bonus", "0")
    calls = [one.split(".") for one in item.get("imports", "").split(" and ") if one]
    text = f"def {item['name']}(rows):\n"
    for module, name in calls:
        text += f"    from app.{module} import {name}\n"
    text += f"    total = sum({amount} * count + {bonus}\n"
    text += f"                for {first}, {second} in rows if count >= 3)\n"
    for module, name in calls:
        same = values[f"{module}.layout"].startswith(first)
        rows = "rows" if same else "[(b, a) for a, b in rows]"
        text += f"    total += {name}({rows})['total']\n"
    tag = values[f"{item['name']}.tag"]
    return {"source": f"{text}    return {{'tag': {tag!r}, 'total': total}}"}


_MAKERS = {
    "contract": _schema,
    "negotiate": _schema,
    "schedule": _booking,
    "duties": _booking,
    "incident": _runbook,
    "codebase": _function,
}
BUILDS_ON = ("schedule", "duties")  # whose fragments depend on those they build on
