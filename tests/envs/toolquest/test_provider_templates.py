import pytest

from owa_bench.envs.toolquest.provider_templates import CONTROL, parse
from owa_bench.errors import UsageError

SHOP = """
shop/retail (Shop|Store) Sells things.
  items unpaged (items|goods) Items on sale.
    id:string! (id|key) Identifier of the item.
    state:enum? (state|status) new=fresh|mint used=worn State of the item:
      new or used.
  orders keyed POST DELETE (orders|buys) Orders.
    item:string!+ (item|article) Identifier of the item.
    ends:date^ (ends|until) Last day.
    price:money (price|cost) Price.
  control
bank/payments (Bank|Clearing) Moves money.
  transfers (transfers|payments) Transfers.
    amount:money (amount|value) Amount.
"""


def test_a_table_of_text_is_vendors_collections_and_fields():
    shop, bank = parse(SHOP)
    assert (shop.key, shop.family, shop.suffixes) == ("shop", "retail", ("Shop", "Store"))
    assert [resource.key for resource in shop.resources] == ["items", "orders", "control"]
    assert shop.resource("control") is CONTROL
    assert bank.resource("transfers").slugs == ("transfers", "payments")


def test_flags_and_marks_say_what_a_collection_and_a_field_may_do():
    items, orders, _ = parse(SHOP)[0].resources
    assert (items.paged, items.keyed, items.methods) == (False, False, ("GET",))
    assert (orders.paged, orders.keyed) == (True, True)
    assert orders.methods == ("GET", "POST", "DELETE")
    ident, state = items.fields
    assert ident.identifier
    assert ident.filterable
    assert not ident.writable
    assert state.filterable
    assert not state.identifier
    item, ends, price = orders.fields
    assert item.writable
    assert ends.bound
    assert not price.filterable
    assert not price.bound


def test_a_deeper_line_continues_the_one_above():
    state = parse(SHOP)[0].resource("items").fields[1]
    assert state.about == "State of the item: new or used."
    assert state.choices == (("new", "fresh", "mint"), ("used", "worn"))


def test_a_field_or_a_collection_can_be_left_out():
    shop = parse(SHOP)[0]
    assert [f.key for f in shop.without_field("items", "state").resource("items").fields] == ["id"]
    assert [r.key for r in shop.without_resource("items").resources] == ["orders", "control"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shop (Shop) Sells things.", "KEY/FAMILY"),
        ("  items (items) Items.", "needs a collection above it, or a vendor"),
        ("shop/retail (Shop) Sells.\n    id:string (id) Id.", "needs a collection"),
        ("shop/retail (Shop) Sells.\n  items PATCH (items) Items.", "got `PATCH`"),
        ("shop/retail (Shop) Sells.\n  items (i) I.\n    id:text (id) Id.", "kind string"),
        ("shop/retail (Shop) Sells.\n  items (i) I.\n    id (id) Id.", "KEY:KIND"),
    ],
)
def test_another_form_is_refused_with_the_line(text, message):
    with pytest.raises(UsageError, match=message):
        parse(text)
