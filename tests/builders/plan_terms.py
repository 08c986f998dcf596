"""Plans without episodes, to be filled by the functions under test."""

from owa_bench.records.plan import Budget, Plan


def terms(**changes):
    """Return the terms of a plan: everything but suites, arms and entries."""
    fields = {
        "name": "t",
        "battery": None,
        "suites": (),
        "arms": (),
        "entries": (),
        "budget": Budget(),
        "commitment": "",
        "protocol_digest": "p" * 64,
        "price_digest": "c" * 64,
        "calendar": "nested",
    }
    return Plan(**fields | changes)
