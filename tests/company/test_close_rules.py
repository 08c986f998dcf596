"""The rules of the cash application, each at its boundary."""

import pytest

from owa_bench.company.language.close_policy import CHARGE, CREDIT, DISCOUNT, FORM
from owa_bench.company.language.close_records import Receivables, percent_of, sums
from owa_bench.company.language.close_rules import BLINDNESS, apply_month, line_answer, open_items

TERMS = {name: {} for name in FORM.sentences} | {
    "month": {"basis": "booking day"},
    "factor": {"percent": 3},
    "several": {"order": "in the order of their due days"},
    "amount": {"tie": "due last"},
    "sums": {"count": 3},
    "discount": {"day": "value day", "base": "gross amount"},
    "order": {"checks": (DISCOUNT, CHARGE, CREDIT)},
    "charges": {"home": 300, "abroad": 2_000, "area": ("DE", "FR")},
    "surplus": {"limit": 200},
    "open_items": {"credits": "left out"},
}
NO_ROWS = ("credit_notes", "payers", "terms", "notices", "advices", "closed")


def customer(key, name, country="DE", parent="", cash="2% 10 days"):
    account = f"{country}{key}"
    columns = ("id", "name", "country", "parent", "cash_discount", "account")
    return dict(zip(columns, (key, name, country, parent, cash, account), strict=True))


def invoice(key, net, issued="2031-06-02", owner="C1", **rest):
    row = {"id": key, "customer": owner, "issued": issued, "due": issued, "net_cents": net}
    return row | {"vat_cents": 0, "status": "open", "replaced_by": ""} | rest


def line(key, cents, text, booked="2031-06-10", **rest):
    row = {"id": key, "cents": cents, "text": text, "booked": booked, "value": booked}
    return row | {"payer": "ALDER FOODS GMBH", "account": "DEC1", "reference": key} | rest


INVOICES = (
    invoice("RE-318001", 100_000),
    invoice("RE-318002", 50_000, due="2031-06-20"),
    invoice("RE-318003", 70_000, owner="C2"),
    invoice("RE-318004", 80_000, owner="C3"),
    invoice("RE-318005", 33_333, status="paid"),
    invoice("RE-318006", 90_000, status="cancelled", replaced_by="RE-318007"),
    invoice("RE-318007", 81_000, issued="2031-06-04"),
)
CUSTOMERS = (
    customer("C1", "Alder Foods GmbH"),
    customer("C2", "Alder Tools AG", "US", cash=""),
    customer("C3", "Basalt Glass KG", parent="C1"),
)


def month(*lines, blind=(), terms=(), amendments=(), contracts=(), **records):
    rows = {name: [] for name in NO_ROWS} | {"customers": CUSTOMERS, "invoices": INVOICES}
    rows |= {"bank_lines": lines, "terms": contracts} | records
    held = {k: v for k, v in (TERMS | dict(terms)).items() if v is not None}
    return apply_month(
        Receivables({name: list(value) for name, value in rows.items()}),
        "2031-06",
        held,
        list(amendments),
        frozenset(blind),
    )


def answer(*lines, of="B1", **rest):
    rows, codes = line_answer(month(*lines, **rest), of)
    names = ("paid_cents", "discount_cents", "charge_cents", "credit_cents")
    return [(row["invoice"], *(row[name] for name in names)) for row in rows], codes


def test_shares_are_rounded_half_up():
    assert [percent_of(cents, 3) for cents in (16, 17, 50, 150)] == [0, 1, 2, 5]


def test_the_exact_amount_pays():
    assert answer(line("B1", 100_000, "RE 318-001")) == ([("RE-318001", 100_000, 0, 0, 0)], {})


@pytest.mark.parametrize(
    ("value", "code"), [("2031-06-12", ""), ("2031-06-13", "discount_not_due")]
)
def test_a_discount_is_due_up_to_the_last_day(value, code):
    paid = line("B1", 98_000, "RE 318001", "2031-06-16", value=value)
    rows, codes = answer(paid)
    assert rows == [("RE-318001", 98_000, 0 if code else 2_000, 0, 0)]
    assert codes == ({code: 2_000} if code else {})


def test_a_term_ends_on_a_bank_day():
    paid = line("B1", 98_000, "RE 318001", "2031-06-13")
    assert answer(paid, closed=["2031-06-12"])[1] == {}
    assert answer(paid, closed=["2031-06-12"], blind=["bank_days"])[1]
    assert answer(paid, closed=["2031-06-12"], terms={"bank_days": None})[1]


@pytest.mark.parametrize(("gap", "charged"), [(300, True), (301, False)])
def test_charges_at_home_go_up_to_the_limit(gap, charged):
    rows, codes = answer(line("B1", 100_000 - gap, "RE 318001"))
    assert rows == [("RE-318001", 100_000 - gap, 0, gap if charged else 0, 0)]
    assert codes == ({} if charged else {"short_payment": gap})


def test_the_limit_is_that_of_the_invoice_s_country_and_of_the_booking_day():
    abroad = {"payer": "ALDER TOOLS AG", "account": "USC2"}
    paid = line("B1", 68_000, "RE 318003", "2031-06-17", **abroad)
    assert answer(paid) == ([("RE-318003", 68_000, 0, 2_000, 0)], {})
    lower = {**TERMS["charges"], "abroad": 1_900}
    change = [("2031-06-17", "charges", lower)]
    assert answer(paid, amendments=change)[1] == {"short_payment": 2_000}
    assert answer({**paid, "booked": "2031-06-16"}, amendments=change)[1] == {}
    assert answer(paid, amendments=change, blind=["amendments"])[1] == {}


def test_the_order_of_checks_decides_where_two_fit():
    small = (invoice("RE-318009", 10_000),)
    paid = line("B1", 9_800, "RE 318009")
    assert answer(paid, invoices=small)[0] == [("RE-318009", 9_800, 200, 0, 0)]
    checks = {"order": {"checks": (CHARGE, DISCOUNT, CREDIT)}}
    assert answer(paid, invoices=small, terms=checks)[0] == [("RE-318009", 9_800, 0, 200, 0)]


def test_a_credit_note_counts_once_and_not_before_its_day():
    note = {"id": "CN-1", "customer": "C1", "cents": 5_000, "issued": "2031-06-10"}
    note["applied"] = False
    lines = (line("B1", 95_000, "RE 318001"), line("B2", 45_000, "RE 318002"))
    assert answer(*lines, credit_notes=[note])[0] == [("RE-318001", 95_000, 0, 0, 5_000)]
    assert answer(*lines, of="B2", credit_notes=[note])[1] == {"short_payment": 5_000}
    for wrong in ({"applied": True}, {"issued": "2031-06-11"}, {"customer": "C2"}):
        assert answer(*lines, credit_notes=[note | wrong])[1] == {"short_payment": 5_000}


@pytest.mark.parametrize(("more", "codes"), [(200, {}), (201, {"overpayment": 201})])
def test_a_surplus_is_reported_above_the_limit(more, codes):
    assert answer(line("B1", 100_000 + more, "RE 318001"))[1] == codes


def test_instalments_that_complete_an_invoice_are_no_exception():
    lines = (line("B1", 40_000, "RE 318001"), line("B2", 60_000, "RE 318001", "2031-06-20"))
    assert answer(*lines)[1] == {}
    assert answer(*lines, terms={"instalments": None})[1] == {"short_payment": 60_000}
    shorter = (lines[0], {**lines[1], "cents": 50_000})
    assert answer(*shorter)[1] == {}
    assert answer(*shorter, of="B2")[1] == {"short_payment": 10_000}


def test_a_repetition_has_the_reference_of_an_earlier_line():
    lines = (line("B1", 100_000, "RE 318001"), line("B2", 100_000, "RE 318001", reference="B1"))
    assert answer(*lines, of="B2") == ([], {"repeated_line": 100_000})
    assert answer(*lines, of="B2", terms={"repeats": None})[1] == {"double_payment": 100_000}


def test_a_negative_line_takes_back_the_nearest_equal_line():
    lines = [line(f"B{n}", 100_000, "RE 318001") for n in (1, 2)]
    back = line("B3", -100_000, "STORNO RE 318001")
    assert answer(*lines, back, of="B3") == ([], {"bank_reversal": 100_000})
    assert answer(*lines, back, of="B3", terms={"storno": None})[1] == {"returned": 100_000}
    assert answer(*lines, back)[0]  # the first stays
    assert answer(*lines, back, of="B2") == ([], {})
    other = {**back, "account": "DE other"}
    assert answer(*lines, other, of="B2")[1] == {"double_payment": 100_000}


def test_names_that_are_cut_off_must_fit_one_customer():
    for name, code in (("ALDER F", ""), ("ALDER ", "unknown_payer"), ("ALDER FX", "unknown_payer")):
        paid = line("B1", 100_000, "RE 318001", payer=name, account="")
        assert answer(paid)[1] == ({code: 100_000} if code else {})


def test_a_parent_pays_for_its_child_and_not_the_other_way_round():
    assert answer(line("B1", 80_000, "RE 318004"))[0] == [("RE-318004", 80_000, 0, 0, 0)]
    child = line("B1", 100_000, "RE 318001", account="DEC3", payer="BASALT GLASS KG")
    assert answer(child) == ([], {"unmatched": 100_000})


def test_other_payers_count_on_their_days_and_by_active_contacts():
    paid = line("B1", 100_000, "RE 318001", payer="KONTOR CASH AG", account="X")
    entry = {"id": "P1", "customer": "C1", "payer": "Kontor Cash AG", "kind": "treasury"}
    entry |= {"valid_from": "2031-06-10", "valid_to": "2031-06-10"}
    assert answer(paid, payers=[entry])[1] == {}
    assert answer(paid, payers=[entry | {"valid_to": "2031-06-09"}])[1]
    notice = {"payer": "Kontor Cash AG", "customer": "C1", "first": "2031-06-10", "active": True}
    assert answer(paid, notices=[notice])[1] == {}
    assert answer(paid, notices=[notice | {"active": False}])[1]
    assert answer(paid, notices=[notice | {"first": "2031-06-11"}])[1]
    kept = {**paid, "cents": 97_000}
    assert answer(kept, payers=[entry | {"kind": "factor"}])[0][0][3] == 3_000
    assert answer(kept, payers=[entry])[1] == {"short_payment": 3_000}


def test_numbers_that_help_nothing_lead_to_the_amount():
    for text in ("", "RE 999999", "RE 318003", "RE 318005", "RE 318006 RE 999999"):
        terms = {"replaced": None}
        rows, _ = answer(line("B1", 50_000, text), terms=terms)
        assert rows == [("RE-318002", 50_000, 0, 0, 0)]
    assert answer(line("B1", 1_234, "RE 318005"))[1] == {"double_payment": 1_234}
    assert answer(line("B1", 1_234, "RE 999999"))[1] == {"unmatched": 1_234}


def test_a_replacement_is_followed():
    rows, codes = answer(line("B1", 90_000, "RE 318006"))
    assert (rows, codes) == ([("RE-318007", 81_000, 0, 0, 0)], {"overpayment": 9_000})


def test_of_equal_invoices_the_policy_s_one_is_paid():
    twins = [
        invoice(f"RE-31801{n}", 40_000, due=f"2031-07-0{d}") for n, d in ((1, 5), (2, 9), (3, 7))
    ]
    paid = line("B1", 40_000, "")
    for tie, key in (
        ("due last", "RE-318012"),
        ("due first", "RE-318011"),
        ("with the highest number", "RE-318013"),
        ("with the lowest number", "RE-318011"),
        ("issued last", "RE-318011"),
    ):
        rows, _ = answer(paid, invoices=twins, terms={"amount": {"tie": tie}})
        assert rows[0][0] == key


def test_lines_that_name_an_invoice_come_before_lines_of_its_amount():
    lines = (line("B1", 100_000, "payment"), line("B2", 100_000, "RE 318001"))
    assert answer(*lines)[1] == {"unmatched": 100_000}
    assert answer(*lines, of="B2")[1] == {}


def test_several_invoices_share_what_comes():
    text = "RE 318002/318001"
    assert len(answer(line("B1", 150_000, text))[0]) == 2
    less = answer(line("B1", 147_000, text))
    assert less == ([("RE-318001", 98_000, 2_000, 0, 0), ("RE-318002", 49_000, 1_000, 0, 0)], {})
    rows, codes = answer(line("B1", 120_000, text))
    assert rows == [("RE-318001", 100_000, 0, 0, 0), ("RE-318002", 20_000, 0, 0, 0)]
    assert codes == {"short_payment": 30_000}
    assert answer(line("B1", 150_500, text))[1] == {"overpayment": 500}


def test_one_set_of_invoices_is_found_by_its_sum():
    paid = line("B1", 231_000, "")  # 100,000 + 50,000 + 81,000
    assert len(answer(paid)[0]) == 3
    assert answer(paid, terms={"sums": {"count": 2}})[1] == {"unmatched": 231_000}
    assert list(sums([("a", 1), ("b", 2), ("c", 3)], 3, 3)) == [("a", "b")]
    assert len(list(sums([("a", 1), ("b", 1), ("c", 2)], 3, 3))) == 2


def test_the_newest_advice_counts_if_its_sum_is_the_line_s():
    paid = line("B1", 145_000, "AVIS AV-12345")
    first = {"advice": "AV-12345", "at": "2031-06-10T08:00"}
    first |= {"parts": [("RE-318001", 95_000), ("RE-318002", 50_000)]}
    second = first | {"at": "2031-06-11T08:00"}
    second |= {"parts": [("RE-318001", 100_000), ("RE-318002", 45_000)]}
    assert answer(paid, advices=[second, first])[0][0] == ("RE-318001", 100_000, 0, 0, 0)
    assert answer(paid, advices=[first], blind=["advice"])[1] == {"unmatched": 145_000}
    wrong = second | {"parts": [("RE-318001", 100_000)]}
    assert answer(paid, advices=[first, wrong])[1] == {"unmatched": 145_000}


def test_a_contract_counts_if_it_is_signed_and_in_force_on_the_day_of_issue():
    clause = {"customer": "C1", "percent": 5, "days": 30, "signed": True}
    clause |= {"valid_from": "2031-06-02", "valid_to": "2031-06-02"}
    paid = line("B1", 95_000, "RE 318001")
    assert answer(paid)[1] == {"short_payment": 5_000}
    assert answer(paid, contracts=[clause])[1] == {}
    for wrong in ({"signed": False}, {"valid_to": "2031-06-01"}, {"valid_from": "2031-06-03"}):
        assert answer(paid, contracts=[clause | wrong])[1] == {"short_payment": 5_000}


def test_lines_of_other_months_are_ignored():
    paid = line("B1", 100_000, "RE 318001", "2031-07-01", value="2031-06-30")
    assert answer(paid) == ([], {})
    assert answer(paid, terms={"month": {"basis": "value day"}})[0]


def test_open_items_leave_out_what_is_paid_or_deduct_credits():
    note = {
        "id": "CN-1",
        "customer": "C1",
        "cents": 5_000,
        "issued": "2031-06-01",
        "applied": False,
    }
    rows = {name: [] for name in NO_ROWS} | {"customers": list(CUSTOMERS), "credit_notes": [note]}
    later = invoice("RE-318020", 11_111, issued="2031-07-01")
    rows |= {"invoices": [*INVOICES, later], "bank_lines": [line("B1", 60_000, "RE 318001")]}
    held = Receivables(rows)
    result = apply_month(held, "2031-06", TERMS, [])
    assert open_items(held, "2031-06", TERMS, result, "C1") == 40_000 + 50_000 + 81_000
    deducted = TERMS | {"open_items": {"credits": "deducted"}}
    assert open_items(held, "2031-06", deducted, result, "C1") == 166_000


def test_every_kind_of_blindness_is_said_in_words():
    assert all(about and about[0].islower() for about in BLINDNESS.values())
