"""The rules of each family, worked by hand."""

from owa_bench.skills.clerk import families

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
    assert families.compute("reconcile", tables, rule) == expected


def test_reconcile_through_links() -> None:
    tables = {
        "periods": [PERIOD | {"last_day_included": True}],
        "accounts": [{"id": "a1", "code": "GL1", "status": "open"}],
        "links": [{"code": "GL1", "bank_account": "B9"}],
        "entries": [entry("a1", "R1", "2030-03-31", 500)],
        "transfers": [{"bank_account": "B9", "reference": "R1", "amount": 800}],
    }
    rule = {"period": "Q1", "account_status": "open"}
    assert families.compute("reconcile", tables, rule) == [["GL1", "R1", -300]]


def test_sla_report() -> None:
    tables = {
        "customers": [
            {"id": "c1", "code": "K1", "contract": "T1"},
            {"id": "c2", "code": "K2", "contract": "T1"},
        ],
        "agreements": [{"contract": "T1", "plan": "gold"}],
        "targets": [
            target("high", 60, 500, at_limit=True),
            target("low", 90, 100, at_limit=False),
        ],
        "tickets": [
            ticket("c1", "high", "2030-01-01", 60),  # at the limit, a breach
            ticket("c1", "low", "2030-01-31", 100),  # 10 over
            ticket("c1", "low", "2030-01-15", 90),  # at the limit, no breach
            ticket("c2", "high", "2030-02-01", 999),  # after the period
        ],
    }
    rule = {"first_day": "2030-01-01", "last_day": "2030-01-31"}
    assert families.compute("sla_report", tables, rule) == [["K1", 2, 10, 600]]


def target(priority: str, minutes: int, credit: int, *, at_limit: bool) -> dict:
    return {
        "plan": "gold",
        "priority": priority,
        "minutes": minutes,
        "limit_is_breach": at_limit,
        "credit": credit,
    }


def ticket(customer: str, priority: str, opened: str, minutes: int) -> dict:
    return {
        "customer": customer,
        "priority": priority,
        "opened": opened,
        "minutes": minutes,
    }


def item(sku: str, on_hand: int, part: str, status: str = "active") -> dict:
    return {
        "sku": sku,
        "class": "A",
        "status": status,
        "on_hand": on_hand,
        "part": part,
    }


def offer(
    ident: str, part: str, price: int, pack: int = 6, *, available: bool = True
) -> dict:
    return {
        "id": ident,
        "part": part,
        "pack_size": pack,
        "price": price,
        "available": available,
    }


def test_restock() -> None:
    tables = {
        "classes": [
            {"class": "A", "reorder_level": 5, "target_level": 20, "at_level": True}
        ],
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
        "orders": [
            {"offer": "o3", "status": "open"},
            {"offer": "o1", "status": "received"},
        ],
    }
    rule = {"item_status": "active", "open_status": "open"}
    assert families.compute("restock", tables, rule) == [["o1", 18, 5400]]


def test_an_unknown_family_has_no_answer() -> None:
    assert families.compute("webhook_replay", {}, {}) is None


def test_a_honeypot_is_computed_like_its_family() -> None:
    tables = {"periods": [PERIOD], "accounts": [], "entries": [], "transfers": []}
    rule = {"period": "Q1", "account_status": "open"}
    assert families.compute("reconcile-honeypot", tables, rule) == []
