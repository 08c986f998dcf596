"""The rules of each family, worked by hand."""

from owa_bench.agents.solvers.api_solver import family_rules

PERIOD = {
    "name": "Q1",
    "first_day": "2030-01-01",
    "last_day": "2030-03-31",
    "last_day_included": False,
}


def entry(account: str, reference: str, date: str, amount: int) -> dict:
    return {"account": account, "reference": reference, "date": date, "amount": amount}


def test_reconcile() -> None:
    tables = {
        "periods": [PERIOD],
        "accounts": [
            {"id": "a1", "code": "GL1", "status": "open", "bank_account": "B1"},
            {"id": "a2", "code": "GL2", "status": "closed", "bank_account": "B2"},
        ],
        "entries": [
            entry("a1", "R1", "2030-01-01", 500),  # agrees with the bank
            entry("a1", "R2", "2030-02-01", 700),  # bank has 600
            entry("a1", "R3", "2030-03-30", 100),  # not at the bank
            entry("a1", "R4", "2030-03-31", 900),  # the last day is out
            entry("a2", "R5", "2030-02-01", 900),  # closed
        ],
        "transfers": [
            {"bank_account": "B1", "reference": "R1", "amount": 500},
            {"bank_account": "B1", "reference": "R2", "amount": 600},
            {"bank_account": "B2", "reference": "R3", "amount": 100},
        ],
    }
    rule = {"period": "Q1", "account_status": "open"}
    expected = [["GL1", "R2", 100], ["GL1", "R3", 100]]
    assert family_rules.compute("reconcile", tables, rule) == expected


def test_reconcile_through_links() -> None:
    tables = {
        "periods": [PERIOD | {"last_day_included": True}],
        "accounts": [{"id": "a1", "code": "GL1", "status": "open"}],
        "links": [{"code": "GL1", "bank_account": "B9"}],
        "entries": [entry("a1", "R1", "2030-03-31", 500)],
        "transfers": [{"bank_account": "B9", "reference": "R1", "amount": 800}],
    }
    rule = {"period": "Q1", "account_status": "open"}
    assert family_rules.compute("reconcile", tables, rule) == [["GL1", "R1", -300]]


def test_sla_report() -> None:
    tables = {
        "customers": [
            {"id": "c1", "code": "K1", "contract": "T1"},
            {"id": "c2", "code": "K2", "contract": "T1"},
        ],
        "agreements": [{"contract": "T1", "plan": "gold"}],
        "targets": [target("high", 60, 500, at_limit=True), target("low", 90, 100, at_limit=False)],
        "tickets": [
            ticket("c1", "high", "2030-01-01", 60),  # at the limit, a breach
            ticket("c1", "low", "2030-01-31", 100),  # 10 over
            ticket("c1", "low", "2030-01-15", 90),  # at the limit, no breach
            ticket("c2", "high", "2030-02-01", 999),  # after the period
        ],
    }
    rule = {"first_day": "2030-01-01", "last_day": "2030-01-31"}
    assert family_rules.compute("sla_report", tables, rule) == [["K1", 2, 10, 600]]


def target(priority: str, minutes: int, credit: int, *, at_limit: bool) -> dict:
    return {
        "plan": "gold",
        "priority": priority,
        "minutes": minutes,
        "limit_is_breach": at_limit,
        "credit": credit,
    }


def ticket(customer: str, priority: str, opened: str, minutes: int) -> dict:
    return {"customer": customer, "priority": priority, "opened": opened, "minutes": minutes}


def item(sku: str, on_hand: int, part: str, status: str = "active") -> dict:
    return {"sku": sku, "class": "A", "status": status, "on_hand": on_hand, "part": part}


def offer(ident: str, part: str, price: int, pack: int = 6, *, available: bool = True) -> dict:
    return {"id": ident, "part": part, "pack_size": pack, "price": price, "available": available}


def test_restock() -> None:
    tables = {
        "classes": [{"class": "A", "reorder_level": 5, "target_level": 20, "at_level": True}],
        "items": [
            item("s1", 5, "p1"),  # at the level: due
            item("s2", 6, "p2"),  # above it
            item("s3", 0, "p3"),  # an order is open
            item("s4", 0, "p1", status="retired"),
            item("s5", 0, "p5"),  # nobody has it
        ],
        "offers": [
            offer("o2", "p1", 300),
            offer("o1", "p1", 300),
            offer("o0", "p1", 100, available=False),
            offer("o3", "p3", 100),
            offer("o5", "p5", 100, available=False),
        ],
        "orders": [{"offer": "o3", "status": "open"}, {"offer": "o1", "status": "received"}],
    }
    rule = {"item_status": "active", "open_status": "open"}
    assert family_rules.compute("restock", tables, rule) == [["o1", 18, 5400]]


def delivery(ident: str, event: str, outcome: str, attempts: int, endpoint: str = "E1") -> dict:
    return {
        "id": ident,
        "endpoint": endpoint,
        "event": event,
        "outcome": outcome,
        "attempts": attempts,
    }


def test_webhook_replay() -> None:
    tables = {
        "endpoints": [
            {"endpoint": "E1", "status": "on", "most_attempts": 4, "at_limit": True},
            {"endpoint": "E2", "status": "off", "most_attempts": 4, "at_limit": True},
            {"endpoint": "E3", "status": "on", "most_attempts": 4, "at_limit": False},
        ],
        "deliveries": [
            delivery("d2", "v1", "failed", 4),  # at the limit; d1 is the lower id
            delivery("d1", "v1", "failed", 4),
            delivery("d0", "v1", "failed", 3),
            delivery("d3", "v1", "failed", 4, "E3"),  # at the limit, which is out
            delivery("d4", "v1", "failed", 1, "E2"),  # switched off
            delivery("d5", "v2", "failed", 1),  # arrived later
            delivery("d6", "v2", "delivered", 2),
            delivery("d7", "v3", "failed", 1),  # waits already
            delivery("d8", "v4", "failed", 2),  # was dropped: due
            delivery("d9", "v5", "failed", 2),  # no longer kept
        ],
        "replays": [
            {"delivery": "d7", "status": "queued"},
            {"delivery": "d8", "status": "dropped"},
        ],
        "links": [{"event": f"v{i}", "message": f"m{i}"} for i in range(1, 6)],
        "messages": [
            {"message": f"m{i}", "kept_until": f"2031-05-0{9 - i}", "value": 100 * i}
            for i in range(1, 6)
        ],
    }
    rule = {
        "outcome": "failed",
        "done_outcome": "delivered",
        "endpoint_status": "on",
        "open_status": "queued",
        "today": "2031-05-05",
    }
    expected = [["d1", 5, 100], ["d8", 3, 400]]
    assert family_rules.compute("webhook_replay", tables, rule) == expected


def test_incident_timeline() -> None:
    def alert(reference: str, day: str, minute: int, service: str = "S1") -> dict:
        return {
            "service": service,
            "reference": reference,
            "day": day,
            "minute": minute,
            "loss": 100,
        }

    tables = {
        "windows": [PERIOD],  # 1 January 2030 up to, but without, 31 March
        "services": [
            {"service": "S1", "status": "bad", "minutes_ahead": 90, "component": "C1"},
            {"service": "S2", "status": "fine", "minutes_ahead": 0, "component": "C2"},
        ],
        "alerts": [
            alert("A1", "2030-01-01", 89),  # still the year before in UTC
            alert("A2", "2030-01-01", 90),
            alert("A3", "2030-03-31", 60),  # the day before in UTC
            alert("A4", "2030-02-01", 5, "S2"),
        ],
        "changes": [],
    }
    rule = {"window": "Q1", "service_status": "bad"}
    assert family_rules.compute("incident_timeline", tables, rule) == [
        ["A2", 1, "2030-01-01T00:00Z", 100],
        ["A3", 2, "2030-03-30T23:30Z", 100],
    ]


def test_incident_timeline_merges_seconds_of_utc() -> None:
    service = {"service": "S1", "status": "bad", "minutes_ahead": -60}
    month = {"name": "W", "first_day": "2031-01-01", "last_day": "2031-01-02"}
    tables = {
        "windows": [month | {"last_day_included": True}],
        "services": [service],
        "links": [{"service": "S1", "component": "C1"}],
        "alerts": [
            {"service": "S1", "reference": "A1", "day": "2031-01-01", "minute": 1380, "loss": 7}
        ],
        "changes": [
            change("B2", 86_459),  # the minute of A1, after it by its reference
            change("B1", 59),
            change("B3", 172_800),  # the third day
            change("B4", 0) | {"component": "C9"},
        ],
    }
    rule = {"window": "W", "service_status": "bad"}
    assert family_rules.compute("incident_timeline", tables, rule) == [
        ["B1", 1, "2031-01-01T00:00Z", 5],
        ["A1", 2, "2031-01-02T00:00Z", 7],
        ["B2", 3, "2031-01-02T00:00Z", 5],
    ]


def change(reference: str, second: int) -> dict:
    return {"component": "C1", "reference": reference, "second": second, "cost": 5}


def test_an_unknown_family_has_no_answer() -> None:
    assert family_rules.compute("unheard_of", {}, {}) is None


def test_a_honeypot_is_computed_like_its_family() -> None:
    tables = {"periods": [PERIOD], "accounts": [], "entries": [], "transfers": []}
    rule = {"period": "Q1", "account_status": "open"}
    assert family_rules.compute("reconcile-honeypot", tables, rule) == []
