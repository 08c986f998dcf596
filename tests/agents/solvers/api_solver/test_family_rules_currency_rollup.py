"""The API solver's rule of currency_rollup, worked by hand."""

from owa_bench.agents.solvers.api_solver import family_rules

RULE = {"first_day": "2031-02-01", "last_day": "2031-11-30", "base": "LUM", "branch_status": "open"}
BRANCHES = [
    {"id": "b1", "code": "B1", "status": "open", "entity": "E1"},
    {"id": "b2", "code": "B2", "status": "closed", "entity": "E1"},
    {"id": "b3", "code": "B3", "status": "open", "entity": "E3"},
]
ENTITIES = [
    {"entity": "E1", "group": "north", "opening": 1000},
    {"entity": "E2", "group": "north", "opening": 50},  # of the group, without branch
    {"entity": "E3", "group": "coast", "opening": 7},
]


def rate(first: str, last: str, value: int, *, incl: bool) -> dict:
    return {
        "currency": "KOR",
        "first_day": first,
        "last_day": last,
        "last_day_included": incl,
        "rate": value,
    }


RATES = [
    rate("2031-01-01", "2031-03-31", 20000, incl=True),
    rate("2031-04-01", "2031-07-01", 15000, incl=False),
    rate("2031-07-01", "2031-12-31", 12345, incl=True),
]


def receipt(branch: str, day: str, currency: str, amount: int) -> dict:
    return {"branch": branch, "date": day, "currency": currency, "amount": amount}


def computed(*receipts: dict, **more: list[dict]) -> object:
    tables = {"branches": BRANCHES, "entities": ENTITIES, "rates": RATES, **more}
    tables["receipts"] = list(receipts)
    return family_rules.compute("currency_rollup", tables, RULE)


def test_each_receipt_at_the_rate_of_its_day() -> None:
    found = computed(
        receipt("b1", "2031-02-01", "LUM", 100),
        receipt("b1", "2031-03-31", "KOR", 100),  # the last day is in: 200
        receipt("b1", "2031-07-01", "KOR", 100),  # the last day is out: 123.45
        receipt("b1", "2031-01-31", "LUM", 999),  # before the period
        receipt("b2", "2031-05-01", "LUM", 999),  # closed
    )
    assert found == [["north", 3, 1050 + 100 + 200 + 123]]


def test_half_a_cent_goes_up_receipt_by_receipt() -> None:
    found = computed(
        receipt("b3", "2031-05-01", "KOR", 3),  # 4.5
        receipt("b3", "2031-05-01", "KOR", 1),  # 1.5
    )
    assert found == [["coast", 2, 7 + 5 + 2]]


def test_entities_may_be_linked() -> None:
    links = [{"code": f"B{i}", "entity": "E3"} for i in (1, 2, 3)]
    found = computed(receipt("b1", "2031-05-01", "LUM", 10), links=links)
    assert found == [["coast", 1, 17]]
