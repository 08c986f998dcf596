"""The rows of a world, as the answers that are worked out again read them."""

import json


def rows_of(world, vendor, resource):
    table = world.provider(vendor).table(resource)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def unique(rows):
    seen, kept = set(), []
    for row in rows:
        mark = json.dumps({k: v for k, v in row.items() if k != "id"}, sort_keys=True)
        if mark not in seen:
            seen.add(mark)
            kept.append(row)
    return kept


def linked(world, tier, vendor, resource, key, value):
    place = ("directory", "links") if tier >= 3 else (vendor, resource)
    return {row[key]: row[value] for row in rows_of(world, *place)}
