"""Stay, a guest house: find a price, book a room, change a booking."""

from owa_bench.envs.changesurf import plots
from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.formats import shift
from owa_bench.envs.changesurf.plots import Plot, Rows, Site, Task
from owa_bench.worlds.site import (
    Collection,
    Effect,
    SiteTable,
    SiteValue,
    Slot,
    Workflow,
)

WORDS = {
    "menu:rooms": "Rooms|Our rooms|Where to sleep || Chambers|Lodgings",
    "menu:bookings": "Bookings|Reservations|My stays || Planned visits|Booked nights",
    "act:book": "Book|Reserve|Choose this room || Secure it|Claim the room",
    "flow:book": "Your booking|Reservation form|Book a room "
    "|| Stay request|Room request",
    "commit:book": "Book now|Complete reservation|Send booking "
    "|| Seal the booking|Finish request",
    "act:change": "Change|Edit|Amend || Adjust|Rework",
    "flow:change": "Change a booking|Edit a reservation|Amend your stay "
    "|| Adjust the visit|Rework a booking",
    "commit:change": "Save changes|Update booking|Store the change "
    "|| Keep the change|Write it down",
    "slot:checkin": "Check-in date|Arrival date|First night "
    "|| Coming on|Day of arrival",
    "slot:checkout": "Check-out date|Departure date|Leaving on "
    "|| Going on|Day of departure",
    "slot:guests": "Guests|Number of guests|Persons || Travellers|Party size",
    "slot:board": "Meals|Board|Catering || Food plan|Dining",
    "slot:guest": "Name of the guest|Guest name|Booked for "
    "|| Lead traveller|In whose name",
    "slot:insurance": "Cancellation insurance|Insure my stay|Add insurance "
    "|| Cover the trip|Travel cover",
    "slot:pay": "Payment|Pay by|Method of payment || Settle by|How you settle",
    "slot:wish": "Requests|Special wishes|Notes to the house "
    "|| Remarks for us|Anything else",
    "column:id": "No.|Number|Code || Ident|Key",
    "column:name": "Room|Room name|Called || Title|Known as",
    "column:kind": "Type|Kind|Class || Category|Sort",
    "column:sleeps": "Sleeps|Beds for|Up to (persons) || Capacity|Holds",
    "column:view": "View|Outlook|Looks onto || Scenery|Window side",
    "column:price": "Price per night|Nightly rate|Per night || Night costs|Rate",
    "column:deposit": "Deposit|Security deposit|Held back || Bond|Surety",
    "column:room": "Booked room|Room no.|In room || Lodging no.|Chamber no.",
    "column:checkin": "Arrives|From|In || Begins|Starts",
    "column:checkout": "Leaves|Until|Out || Ends|Closes",
    "column:guests": "Party|Pax|Heads || People|Crowd",
    "column:guest": "Guest|Booked by|Name || Visitor|Holder",
    "column:status": "Status|State|Standing || Condition|Phase",
}
NAMES = {
    "checkin": "arriving on",
    "checkout": "leaving on",
    "guests": "how many people",
    "board": "meals",
    "guest": "for",
    "insurance": "with cancellation insurance",
    "pay": "to be paid by",
    "wish": "with the wish",
}
_ADJECTIVES = ("Garden", "Harbour", "Attic", "Orchard", "Tower", "Meadow", "River")
_NOUNS = ("Room", "Suite", "Loft", "Chamber", "Studio")
_KINDS = ("Single", "Double", "Family")
_VIEWS = ("lake", "street", "hills")
_BOARD = plots.options("No meals", "Breakfast", "Half board", "Full board")
_PAY = plots.options("Card", "Bank transfer", "At the desk")
_GUESTS = ("Ada Berg", "Tom Ness", "Ines Duarte", "Paul Okoro", "Mia Lund")
_WISHES = ("A quiet room, please", "Late arrival, after ten", "A cot for the baby")
_ROOM_COLUMNS = ("id", "name", "kind", "sleeps", "view", "price", "deposit")
_BOOKING_COLUMNS = (
    *("id", "room", "checkin", "checkout", "guests", "guest", "status", "board"),
    *("insurance", "pay", "wish"),
)
_COUNTS = {1: (6, 4), 2: (15, 10), 3: (30, 18)}
_CONFIRMED = "confirmed"
_COLLECTIONS = (
    Collection(
        key="rooms",
        columns=plots.columns(
            "id name kind:choice sleeps:number view price:money deposit:money"
        ),
        title="name",
        category="kind",
        secluded=("deposit",),
    ),
    Collection(
        key="bookings",
        columns=plots.columns(
            "id room checkin:date checkout:date guests:number guest status:choice"
        ),
        title="id",
    ),
)


def draw(draws: Draws, tier: int, goal: str) -> Plot:
    """Return the guest house with its rooms and bookings, and the task of `goal`."""
    day = plots.today(draws)
    count, past = _COUNTS[tier]
    rooms = _rooms(draws, count)
    bookings = _bookings(draws, rooms, day, past)
    tasks = {"find": _find, "book": _book, "change": _change, "infeasible": _full}
    task = tasks[goal](draws, tier, rooms, bookings, day)
    asked = draws.pick(rooms)
    other = draws.pick(_VIEWS)
    return Plot(
        today=day,
        user="guest",
        tables=(
            SiteTable(key="rooms", columns=_ROOM_COLUMNS, rows=tuple(rooms)),
            SiteTable(key="bookings", columns=_BOOKING_COLUMNS, rows=tuple(bookings)),
        ),
        collections=_COLLECTIONS,
        workflows=(_booking(tier), _changing(tier)),
        task=task,
        fact=("rooms", asked[0], "view", other),
    )


def _rooms(draws: Draws, count: int) -> Rows:
    names = [f"{a} {n}" for a in _ADJECTIVES for n in _NOUNS]
    return [
        (
            *(f"R{i + 1:02d}", name, draws.pick(_KINDS), draws.between(2, 4)),
            *(draws.pick(_VIEWS), draws.cents(60, 240), draws.cents(20, 90)),
        )
        for i, name in enumerate(draws.sample(names, count))
    ]


def _bookings(draws: Draws, rooms: Rows, day: str, count: int) -> Rows:
    rows: Rows = []
    for i in range(count):
        room, first = draws.pick(rooms), draws.day(day, draws.between(1, 6))
        last = shift(first, draws.between(1, 3))
        rest = (_CONFIRMED, "breakfast", "no", "card", "")
        person = draws.pick(_GUESTS)
        rows.append((f"B-{1040 + i}", room[0], first, last, 2, person, *rest))
    return rows


def _booking(tier: int) -> Workflow:
    slots = [
        Slot(key="checkin", kind="date"),
        Slot(key="checkout", kind="date"),
        Slot(key="guests", kind="number", most=6),
        Slot(key="guest", kind="text"),
    ]
    if tier >= 2:
        slots.append(Slot(key="board", kind="choice", options=_BOARD))
        slots.append(plots.box("insurance"))
    if tier >= 3:
        slots.append(Slot(key="pay", kind="choice", options=_PAY))
        slots.append(Slot(key="wish", kind="text", required=False))
    cells = plots.cells(slots)
    place = ("bookings", "room", "checkin", "checkout", _CONFIRMED)
    return Workflow(
        key="book",
        record="rooms",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="insert",
                table="bookings",
                values=(("room", "record:id"), ("status", f"={_CONFIRMED}"), *cells),
            ),
        ),
        checks=(
            plots.only(
                "before", "checkin", "checkout", "You must leave after you arrive."
            ),
            plots.only(
                "within", "guests", "sleeps", "The room is too small for so many."
            ),
            plots.only(
                *("free", "checkin", "checkout", *place),
                "The room is taken on some of these nights.",
            ),
        ),
        after=(("checkout", "checkin"),),
    )


def _changing(tier: int) -> Workflow:
    slots = [Slot(key="checkout", kind="date")]
    if tier >= 2:
        slots.append(Slot(key="board", kind="choice", options=_BOARD))
    if tier >= 3:
        slots.append(Slot(key="wish", kind="text"))
    cells = plots.cells(slots)
    return Workflow(
        key="change",
        record="bookings",
        slots=tuple(slots),
        effects=(Effect(kind="update", table="bookings", values=cells),),
        checks=(
            plots.only("is", "status", _CONFIRMED, "This booking cannot be changed."),
            plots.only(
                "before", "checkin", "checkout", "You must leave after you arrive."
            ),
        ),
    )


def _find(draws: Draws, tier: int, rooms: Rows, _bookings: Rows, _day: str) -> Task:
    if tier == 1:
        row = draws.pick(rooms)
        text = f"What does a night in `{row[1]}` cost?"
        return plots.finding(text, int(row[5]), [("rooms", row[0], "price")])
    if tier == 2:
        row = draws.pick(rooms)
        text = f"How high is the deposit for `{row[1]}`?"
        return plots.finding(text, int(row[6]), [("rooms", row[0], "deposit")])
    kind, view = draws.pick([(row[2], row[4]) for row in rooms])
    found = [row for row in rooms if (row[2], row[4]) == (kind, view)]
    text = (
        f"What do all rooms of the type {kind} with a view of the {view} cost together "
        "for one night?"
    )
    cells = [("rooms", row[0], "price") for row in found]
    return plots.finding(text, sum(int(row[5]) for row in found), cells)


def _book(draws: Draws, tier: int, rooms: Rows, bookings: Rows, day: str) -> Task:
    room = draws.pick(rooms)
    taken = {str(b[2])[:7] for b in bookings if b[0] and b[1] == room[0]}
    free = [
        first
        for first in (draws.day(day, months) for months in range(1, 9))
        if first[:7] not in taken
    ]
    values = _values(draws, tier, int(room[3]), free[0])
    return Task(f"Book the room `{room[1]}`.", "book", values, room[0])


def _values(draws: Draws, tier: int, sleeps: int, first: str) -> dict[str, SiteValue]:
    values: dict[str, SiteValue] = {
        "checkin": first,
        "checkout": shift(first, draws.between(1, 4)),
        "guests": draws.between(1, sleeps),
        "guest": draws.pick(_GUESTS),
    }
    if tier >= 2:
        values["board"] = draws.pick(_BOARD).value
        values["insurance"] = draws.pick(("yes", "no"))
    if tier >= 3:
        values["pay"] = draws.pick(_PAY).value
        values["wish"] = draws.pick(_WISHES)
    return values


def _change(draws: Draws, tier: int, _rooms: Rows, bookings: Rows, _day: str) -> Task:
    row = draws.pick(bookings)
    values: dict[str, SiteValue] = {"checkout": shift(str(row[3]), draws.between(1, 2))}
    if tier >= 2:
        values["board"] = draws.pick(
            [o for o in _BOARD if o.value != "breakfast"]
        ).value
    if tier >= 3:
        values["wish"] = draws.pick(_WISHES)
    return Task(f"Change the booking {row[0]}.", "change", values, row[0])


def _full(draws: Draws, tier: int, rooms: Rows, bookings: Rows, day: str) -> Task:
    """Return a booking of a room that is taken, or too small."""
    taken = draws.pick(bookings)
    room = next(r for r in rooms if r[0] == taken[1])
    values = _values(draws, tier, int(room[3]), str(taken[2]))
    if draws.coin():
        values["checkin"] = draws.day(day, 8)
        values["checkout"] = shift(str(values["checkin"]), 2)
        values["guests"] = int(room[3]) + 1
    return Task(f"Book the room `{room[1]}`.", "book", values, room[0])


SITE = Site(
    key="stay",
    goals=("find", "book", "change"),
    infeasible="book",
    brands=("Harbour Inn", "Linden House", "Quiet Mill", "Fern Lodge"),
    words=WORDS,
    names=NAMES,
    draw=draw,
)
