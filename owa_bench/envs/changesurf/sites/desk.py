"""Desk, a help desk, held out: look tickets up, file one, route one to a queue."""

from owa_bench.envs.changesurf import plots
from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.plots import Plot, Rows, Site, Task
from owa_bench.worlds.site import (
    Collection,
    Effect,
    Option,
    SiteTable,
    SiteValue,
    Slot,
    Workflow,
)

WORDS = {
    "menu:tickets": "Tickets|Open issues|Cases || Incidents|Reported faults",
    "menu:queues": "Queues|Teams|Groups || Work lines|Crews",
    "menu:file": "New ticket|Report a problem|File an issue "
    "|| Raise a fault|Open a case",
    "flow:file": "A new ticket|Problem report|Issue form || Fault form|Case form",
    "commit:file": "Create ticket|Send report|File it || Raise it now|Open the case",
    "act:route": "Route|Assign|Pass on || Hand over|Redirect",
    "flow:route": "Route a ticket|Assign an issue|Pass a case on "
    "|| Handing over|Redirecting a fault",
    "commit:route": "Route now|Save assignment|Pass it on || Hand it over|Redirect now",
    "slot:subject": "Subject|What is wrong|Title || In one line|Short account",
    "slot:queue": "Queue|Responsible team|Group || Crew in charge|Work line",
    "slot:urgency": "Urgency|Priority|How urgent || Severity|Weight of it",
    "slot:due": "Due date|Needed by|Deadline || To be done by|Latest day",
    "slot:watch": "Keep me informed|Send updates|Notify me "
    "|| Copy me in|Tell me of changes",
    "slot:device": "Affected devices|How many devices|Devices "
    "|| Machines hit|Count of machines",
    "slot:note": "Note|Comment|Remark || Annotation|Side note",
    "slot:level": "New priority|Set priority to|Raise to || Weight now|Severity now",
    "slot:from": "Valid from|Starting on|As of || Beginning with|Counting from",
    "column:id": "No.|Number|Reference || Ident|Key",
    "column:subject": "Problem|About|Concerns || Matter|Trouble",
    "column:queue": "With team|Handled in|Belongs to || Sits with|Assigned crew",
    "column:urgency": "Urgent|Rank|Level || Grade|Heat",
    "column:opened": "Opened|Since|Reported on || Raised on|Came in",
    "column:status": "Status|State|Stage || Phase|Standing",
    "column:cost": "Cost so far|Charged|Spent || Run up|Billed",
    "column:name": "Team|Name|Called || Crew|Line",
    "column:hours": "Hours|Staffed|Open hours || Manned|On duty",
    "column:budget": "Budget|Funds|Means || Purse|Allowance",
}
NAMES = {
    "subject": "saying",
    "queue": "for the team",
    "urgency": "urgent as",
    "due": "needed by",
    "watch": "with updates to me",
    "device": "machines concerned",
    "note": "with the note",
    "level": "raised to",
    "from": "as of",
}
_PROBLEMS = (
    *("Printer jams", "No network", "Screen flickers", "Badge refused"),
    *("Mail is late", "Phone is dead", "Disk is full", "Door stays locked"),
)
_TEAMS = ("Network", "Printing", "Access", "Phones", "Storage", "Archive")
_URGENCIES = plots.options("Low", "Normal", "High")
_NOTES = ("Seen on two floors", "Started this morning")
_COUNTS = {1: (6, 4), 2: (14, 5), 3: (32, 6)}
_OPEN = "open"
_NO_TICKETS = "This team takes no tickets."
_COLLECTIONS = (
    Collection(
        key="tickets",
        columns=plots.columns(
            "id subject queue:choice urgency opened:date status cost:money"
        ),
        title="id",
        category="queue",
    ),
    Collection(
        key="queues",
        columns=plots.columns("id name hours status budget:money"),
        title="name",
        secluded=("budget",),
    ),
)


def draw(draws: Draws, tier: int, goal: str) -> Plot:
    """Return the help desk with tickets and queues, and the task of `goal`."""
    day = plots.today(draws)
    queues = _queues(draws, _COUNTS[tier][1])
    tickets = _tickets(draws, queues, day, _COUNTS[tier][0])
    tasks = {"lookup": _lookup, "file": _file, "route": _route, "infeasible": _closed}
    task = tasks[goal](draws, tier, tickets, queues, day)
    asked = draws.pick(tickets)
    return Plot(
        today=day,
        user="agent",
        tables=(
            SiteTable(
                key="tickets",
                columns=(
                    *("id", "subject", "queue", "urgency", "opened", "status"),
                    *("cost", "due", "watch", "device", "note", "level", "from"),
                ),
                rows=tuple(tickets),
            ),
            SiteTable(
                key="queues",
                columns=("id", "name", "hours", "status", "budget"),
                rows=tuple(queues),
            ),
        ),
        collections=_COLLECTIONS,
        workflows=(_filing(tier, queues), _routing(tier, queues)),
        task=task,
        fact=("tickets", asked[0], "queue", draws.pick(queues)[0]),
    )


def _queues(draws: Draws, count: int) -> Rows:
    return [
        (
            *(f"Q{i + 1}", name, f"{draws.between(6, 9)} to 17"),
            *("closed" if i == count - 1 else _OPEN, draws.cents(500, 5000)),
        )
        for i, name in enumerate(draws.sample(_TEAMS, count))
    ]


def _tickets(draws: Draws, queues: Rows, day: str, count: int) -> Rows:
    return [
        (
            *(f"H-{510 + i}", draws.pick(_PROBLEMS), draws.pick(queues)[0], "normal"),
            *(draws.day(day, -draws.between(1, 4)), _OPEN, draws.cents(5, 400)),
            *("", "no", 0, "", "", ""),
        )
        for i in range(count)
    ]


def _teams(queues: Rows) -> tuple[Option, ...]:
    return tuple(Option(value=str(row[0]), text=str(row[1])) for row in queues)


def _filing(tier: int, queues: Rows) -> Workflow:
    slots = [
        Slot(key="subject", kind="text"),
        Slot(key="queue", kind="choice", options=_teams(queues)),
        Slot(key="urgency", kind="choice", options=_URGENCIES),
    ]
    if tier >= 2:
        slots.append(Slot(key="due", kind="date"))
        slots.append(plots.box("watch"))
    if tier >= 3:
        slots.append(Slot(key="device", kind="number"))
        slots.append(Slot(key="note", kind="text"))
    cells = plots.cells(slots)
    return Workflow(
        key="file",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="insert", table="tickets", values=(("status", f"={_OPEN}"), *cells)
            ),
        ),
        checks=(plots.only("known", "queue", "queues", "id", _OPEN, _NO_TICKETS),),
    )


def _routing(tier: int, queues: Rows) -> Workflow:
    slots = [Slot(key="queue", kind="choice", options=_teams(queues))]
    if tier >= 2:
        slots.append(Slot(key="level", kind="choice", options=_URGENCIES))
    if tier >= 3:
        slots.append(Slot(key="from", kind="date"))
    cells = plots.cells(slots)
    return Workflow(
        key="route",
        record="tickets",
        slots=tuple(slots),
        effects=(Effect(kind="update", table="tickets", values=cells),),
        checks=(
            plots.only("is", "status", _OPEN, "Only open tickets can be routed."),
            plots.only("known", "queue", "queues", "id", _OPEN, _NO_TICKETS),
        ),
    )


def _lookup(draws: Draws, tier: int, tickets: Rows, queues: Rows, _day: str) -> Task:
    if tier == 1:
        row = draws.pick(tickets)
        text = f"What has the ticket {row[0]} cost so far?"
        return plots.finding(text, int(row[6]), [("tickets", row[0], "cost")])
    if tier == 2:
        row = draws.pick(queues)
        text = f"What budget does the team {row[1]} have?"
        return plots.finding(text, int(row[4]), [("queues", row[0], "budget")])
    subject = draws.pick(tickets)[1]
    found = [row for row in tickets if row[1] == subject]
    text = f"What have all tickets that say `{subject}` cost so far?"
    cells = [("tickets", row[0], "cost") for row in found]
    return plots.finding(text, sum(int(row[6]) for row in found), cells)


def _values(draws: Draws, tier: int, queues: Rows, day: str) -> dict[str, SiteValue]:
    values: dict[str, SiteValue] = {
        "subject": draws.pick(_PROBLEMS),
        "queue": draws.pick([q for q in queues if q[3] == _OPEN])[0],
        "urgency": draws.pick(_URGENCIES).value,
    }
    if tier >= 2:
        values["due"] = draws.day(day, draws.between(1, 4))
        values["watch"] = draws.pick(("yes", "no"))
    if tier >= 3:
        values["device"] = draws.between(1, 9)
        values["note"] = draws.pick(_NOTES)
    return values


def _file(draws: Draws, tier: int, _tickets: Rows, queues: Rows, day: str) -> Task:
    return Task("File a ticket.", "file", _values(draws, tier, queues, day))


def _route(draws: Draws, tier: int, tickets: Rows, queues: Rows, day: str) -> Task:
    row = draws.pick(tickets)
    others = [q for q in queues if q[3] == _OPEN and q[0] != row[2]]
    values: dict[str, SiteValue] = {"queue": draws.pick(others)[0]}
    if tier >= 2:
        values["level"] = draws.pick(_URGENCIES).value
    if tier >= 3:
        values["from"] = draws.day(day, draws.between(1, 3))
    return Task(f"Route the ticket {row[0]}.", "route", values, row[0])


def _closed(draws: Draws, tier: int, _tickets: Rows, queues: Rows, day: str) -> Task:
    """Return a ticket for the team that takes none."""
    values = _values(draws, tier, queues, day)
    values["queue"] = next(q for q in queues if q[3] != _OPEN)[0]
    return Task("File a ticket.", "file", values)


SITE = Site(
    key="desk",
    goals=("lookup", "file", "route"),
    infeasible="file",
    brands=("Help Point", "Service Corner", "Fix Board", "Care Line"),
    words=WORDS,
    names=NAMES,
    draw=draw,
    held_out=True,
)
