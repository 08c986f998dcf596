"""The API solver's rule of deduplicate, worked by hand."""

from owa_bench.agents.solvers.api_solver import family_rules

RULE = {"customer_status": "active", "invoice_status": "open"}
POLICIES = [
    {"segment": "retail", "days": 10, "limit_included": True},
    {"segment": "trade", "days": 10, "limit_included": False},
]


def record(number: int, created: str, **changes: str) -> dict:
    return {
        "id": f"r{number}",
        "code": f"C{number}",
        "email": "ann@post.example",
        "tax_number": "T1",
        "segment": "retail",
        "status": "active",
        "created": created,
        "account": f"A{number}",
        **changes,
    }


def invoice(account: str, amount: int, status: str = "open") -> dict:
    return {"account": account, "amount": amount, "status": status}


def computed(customers: list[dict], **more: list[dict]) -> object:
    tables = {"policies": POLICIES, "customers": customers, "invoices": [], **more}
    return family_rules.compute("deduplicate", tables, RULE)


def test_a_later_record_within_the_limit_is_a_duplicate() -> None:
    records = [
        record(2, "2031-01-11", email="ANN@post.example"),  # exactly at the limit
        record(1, "2031-01-01"),
        record(3, "2031-01-12"),  # a day beyond it
        record(4, "2031-01-02", status="archived"),
        record(5, "2031-01-02", tax_number="T2"),
        record(6, "2031-01-02", email="ann@mail.example"),
    ]
    owed = [invoice("A2", 300), invoice("A2", 50), invoice("A2", 9, "paid")]
    assert computed(records, invoices=owed) == [["C1", "C2", 350]]


def test_the_limit_itself_counts_only_where_the_policy_says_so() -> None:
    pair = [
        record(1, "2031-01-01", segment="trade"),
        record(2, "2031-01-11", segment="retail"),  # the survivor's segment decides
    ]
    assert computed(pair) == []
    pair[0]["segment"] = "retail"
    assert computed(pair) == [["C1", "C2", 0]]


def test_the_lowest_id_stands_in_a_tie_and_accounts_may_be_linked() -> None:
    pair = [record(2, "2031-01-01"), record(1, "2031-01-01")]
    links = [{"code": "C1", "account": "A1"}, {"code": "C2", "account": "A9"}]
    found = computed(pair, links=links, invoices=[invoice("A9", 70)])
    assert found == [["C1", "C2", 70]]
