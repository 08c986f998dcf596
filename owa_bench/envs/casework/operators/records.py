"""Operators on records: two records of a fact that differ, a total that lags. Nothing says so."""

import datetime as dt

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.company.calendars import local_day
from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.language.credits_policy import SIGNATURE
from owa_bench.drift.operator import operator
from owa_bench.envs.casework.world_edits import with_row
from owa_bench.seeding import pick


def _queue_orders(world: CaseWorld) -> list[str]:
    """Return the orders that requests are about."""
    return sorted({request.order for request in world.matter.requests})


def _queue(world: CaseWorld) -> tuple[str, ...]:
    return ("queue",) if world.kind == "credits" else ()


@operator(announcement="D3", weight=0.5, targets=_queue, group="records")
def total_lags(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Leave the total of an order behind its lines.

    Changes: One order's total; nothing says so.
    Leaves alone: Lines, invoices, every other order.
    Announcement: D3 (silent). Weight: 0.5.
    Source: docs/casework.md#drift.
    """
    orders = {row.id: row for row in world.tables["orders"]}
    order = orders[pick(_queue_orders(world), rng)]
    lines = [row for row in world.tables["order_lines"] if row.order == order.id]
    more = pick(lines, rng).unit_cents
    return with_row(world, "orders", replace(order, net_cents=order.net_cents + more))


@operator(announcement="D3", weight=0.5, targets=_queue, group="records")
def stamps_differ(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Let the stamp that does not count name an earlier day than the stamp that counts.

    Changes: The carrier's scan or the signature of one delivery; nothing says so.
    Leaves alone: The stamp that the policy counts, every other delivery.
    Announcement: D3 (silent). Weight: 0.5.
    Source: docs/casework.md#drift.
    """
    orders = {row.id: row for row in world.tables["orders"]}
    shipments = {row.id: row for row in world.tables["shipments"]}
    proofs = {row.shipment: row for row in world.tables["proofs"]}
    countries = {row.id: row.country for row in world.tables["customers"]}
    back = dt.timedelta(1 + int(rng.integers(3)))
    for place in rng.permutation(len(orders_of := _queue_orders(world))).tolist():
        order = orders[orders_of[place]]
        shipment, proof = shipments[order.shipment], proofs[order.shipment]
        if world.policy.terms["delivery"]["stamp"] == SIGNATURE:
            earlier = shipment.delivered_at - back
            row, table = replace(shipment, delivered_at=earlier), "shipments"
        else:
            earlier = proof.signed_at - back
            row, table = replace(proof, signed_at=earlier), "proofs"
        if local_day(countries[order.customer], earlier) >= shipment.shipped:
            return with_row(world, table, row)
    return world
