"""Stay, a guest house: find a price, book a room, change a booking."""

from owa_bench.envs.changesurf import site_schema as schema
from owa_bench.envs.changesurf.server.forms import shift
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteRows, SiteTask
from owa_bench.envs.changesurf.site_spec import SiteTable, SiteValue, Workflow

_LABELS = """
menu:rooms       Rooms|Our rooms|Where to sleep || Chambers|Lodgings
menu:bookings    Bookings|Reservations|My stays || Planned visits|Booked nights
act:book         Book|Reserve|Choose this room || Secure it|Claim the room
flow:book        Your booking|Reservation form|Book a room || Stay request|Room request
commit:book      Book now|Complete reservation|Send booking \
                 || Seal the booking|Finish request
act:change       Change|Edit|Amend || Adjust|Rework
flow:change      Change a booking|Edit a reservation|Amend your stay \
                 || Adjust the visit|Rework a booking
commit:change    Save changes|Update booking|Store the change \
                 || Keep the change|Write it down
slot:checkin     (arriving on) Check-in date|Arrival date|First night \
                 || Coming on|Day of arrival
slot:checkout    (leaving on) Check-out date|Departure date|Leaving on \
                 || Going on|Day of departure
slot:guests      (how many people) Guests|Number of guests|Persons \
                 || Travellers|Party size
slot:board       (meals) Meals|Board|Catering || Food plan|Dining
slot:guest       (for) Name of the guest|Guest name|Booked for \
                 || Lead traveller|In whose name
slot:insurance   (with cancellation insurance) Cancellation insurance|Insure my stay \
                  |Add insurance || Cover the trip|Travel cover
slot:pay         (to be paid by) Payment|Pay by|Method of payment \
                 || Settle by|How you settle
slot:wish        (with the wish) Requests|Special wishes|Notes to the house \
                 || Remarks for us|Anything else
column:id        No.|Number|Code || Ident|Key
column:name      Room|Room name|Called || Title|Known as
column:kind      Type|Kind|Class || Category|Sort
column:sleeps    Sleeps|Beds for|Up to (persons) || Capacity|Holds
column:view      View|Outlook|Looks onto || Scenery|Window side
column:price     Price per night|Nightly rate|Per night || Night costs|Rate
column:deposit   Deposit|Security deposit|Held back || Bond|Surety
column:room      Booked room|Room no.|In room || Lodging no.|Chamber no.
column:checkin   Arrives|From|In || Begins|Starts
column:checkout  Leaves|Until|Out || Ends|Closes
column:guests    Party|Pax|Heads || People|Crowd
column:guest     Guest|Booked by|Name || Visitor|Holder
column:status    Status|State|Standing || Condition|Phase
"""

_ADJECTIVES = ("Garden", "Harbour", "Attic", "Orchard", "Tower", "Meadow", "River")
_NOUNS = ("Room", "Suite", "Loft", "Chamber", "Studio")
_KINDS = ("Single", "Double", "Family")
_VIEWS = ("lake", "street", "hills")
_BOARD = schema.options("No meals", "Breakfast", "Half board", "Full board")
_PAY = schema.options("Card", "Bank transfer", "At the desk")
_GUESTS = ("Ada Berg", "Tom Ness", "Ines Duarte", "Paul Okoro", "Mia Lund")
_WISHES = ("A quiet room, please", "Late arrival, after ten", "A cot for the baby")
_COUNTS = {1: (6, 4), 2: (15, 10), 3: (30, 18)}
_EARLY_LEAVE = "You must leave after you arrive."


def _tables(draw: SiteDraw) -> tuple[SiteTable, ...]:
    count, past = _COUNTS[draw.tier]
    names = [f"{a} {n}" for a in _ADJECTIVES for n in _NOUNS]
    rooms: SiteRows = [
        (
            *(f"R{i:02d}", name, draw.pick(_KINDS), draw.between(2, 4)),
            *(draw.pick(_VIEWS), draw.cents(60, 240), draw.cents(20, 90)),
        )
        for i, name in enumerate(draw.sample(names, count), 1)
    ]
    bookings: SiteRows = []
    for i in range(past):
        room, first = draw.pick(rooms), draw.day(draw.between(1, 6))
        last = shift(first, draw.between(1, 3))
        stay = (f"B-{1040 + i}", room[0], first, last, 2, draw.pick(_GUESTS))
        bookings.append((*stay, "confirmed", "breakfast", "no", "card", ""))
    return (
        schema.table("rooms", "id name kind sleeps view price deposit", rooms),
        schema.table(
            "bookings",
            "id room checkin checkout guests guest status board insurance pay wish",
            bookings,
        ),
    )


def _workflows(draw: SiteDraw) -> tuple[Workflow, ...]:
    booking = schema.slots(
        draw,
        "checkin:date checkout:date guests:number<6 guest",
        "board:choice insurance:check",
        "pay:choice wish?",
        board=_BOARD,
        pay=_PAY,
    )
    change = schema.slots(draw, "checkout:date", "board:choice", "wish", board=_BOARD)
    book = schema.effect("insert", "bookings", booking, room="record:id", status="=confirmed")
    return (
        schema.workflow(
            "book",
            booking,
            book,
            record="rooms",
            after=(("checkout", "checkin"),),
            refusals={
                "before checkin checkout": _EARLY_LEAVE,
                "within guests sleeps": "The room is too small for so many.",
                "free checkin checkout bookings room checkin checkout confirmed": (
                    "The room is taken on some of these nights."
                ),
            },
        ),
        schema.workflow(
            "change",
            change,
            schema.effect("update", "bookings", change),
            record="bookings",
            refusals={
                "is status confirmed": "This booking cannot be changed.",
                "before checkin checkout": _EARLY_LEAVE,
            },
        ),
    )


def _find(draw: SiteDraw) -> SiteTask:
    rooms = draw.rows["rooms"]
    row = draw.pick(rooms)
    if draw.tier == 1:
        text = f"What does a night in `{row[1]}` cost?"
        return schema.question(text, row[5], [("rooms", row[0], "price")])
    if draw.tier == 2:
        text = f"How high is the deposit for `{row[1]}`?"
        return schema.question(text, row[6], [("rooms", row[0], "deposit")])
    found = [other for other in rooms if (other[2], other[4]) == (row[2], row[4])]
    text = (
        f"What do all rooms of the type {row[2]} with a view of the {row[4]} cost "
        "together for one night?"
    )
    cells = [("rooms", other[0], "price") for other in found]
    return schema.question(text, sum(int(other[5]) for other in found), cells)


def _book(draw: SiteDraw) -> SiteTask:
    room = draw.pick(draw.rows["rooms"])
    bookings = draw.rows["bookings"]
    taken = {str(b[2])[:7] for b in bookings if b[0] and b[1] == room[0]}
    days = [draw.day(months) for months in range(1, 9)]
    first = next(day for day in days if day[:7] not in taken)
    values = _booking(draw, int(room[3]), first)
    return SiteTask(f"Book the room `{room[1]}`.", "book", values, room[0])


def _booking(draw: SiteDraw, sleeps: int, first: str) -> dict[str, SiteValue]:
    return draw.values(
        "book",
        checkin=lambda: first,
        checkout=lambda: shift(first, draw.between(1, 4)),
        guests=lambda: draw.between(1, sleeps),
        guest=lambda: draw.pick(_GUESTS),
        wish=lambda: draw.pick(_WISHES),
    )


def _change(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["bookings"])
    others = [option for option in _BOARD if option.value != "breakfast"]
    values = draw.values(
        "change",
        checkout=lambda: shift(str(row[3]), draw.between(1, 2)),
        board=lambda: draw.pick(others).value,
        wish=lambda: draw.pick(_WISHES),
    )
    return SiteTask(f"Change the booking {row[0]}.", "change", values, row[0])


def _full(draw: SiteDraw) -> SiteTask:
    """Return a booking of a room that is taken, or too small."""
    taken = draw.pick(draw.rows["bookings"])
    room = next(r for r in draw.rows["rooms"] if r[0] == taken[1])
    values = _booking(draw, int(room[3]), str(taken[2]))
    if draw.coin():
        values["checkin"] = draw.day(8)
        values["checkout"] = shift(str(values["checkin"]), 2)
        values["guests"] = int(room[3]) + 1
    return SiteTask(f"Book the room `{room[1]}`.", "book", values, room[0])


SITE = Site(
    key="stay",
    user="guest",
    brands=("Harbour Inn", "Linden House", "Quiet Mill", "Fern Lodge"),
    labels=_LABELS,
    collections=(
        schema.collection(
            "rooms",
            "id name kind:choice sleeps:number view price:money deposit:money",
            title="name",
            category="kind",
            secluded="deposit",
        ),
        schema.collection(
            "bookings",
            "id room checkin:date checkout:date guests:number guest status:choice",
            title="id",
        ),
    ),
    tables=_tables,
    workflows=_workflows,
    tasks={"find": _find, "book": _book, "change": _change, "infeasible": _full},
    infeasible="book",
    fact=schema.SiteFact("rooms", "view"),
)
