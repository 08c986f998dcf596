"""Desk, a help desk, held out: look tickets up, file one, route one to a queue."""

from owa_bench.envs.changesurf import site_schema as schema
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteFact, SiteRows, SiteTask
from owa_bench.envs.changesurf.site_spec import Option, SiteTable, SiteValue, Workflow

_LABELS = """
menu:tickets    Tickets|Open issues|Cases || Incidents|Reported faults
menu:queues     Queues|Teams|Groups || Work lines|Crews
menu:file       New ticket|Report a problem|File an issue || Raise a fault|Open a case
flow:file       A new ticket|Problem report|Issue form || Fault form|Case form
commit:file     Create ticket|Send report|File it || Raise it now|Open the case
act:route       Route|Assign|Pass on || Hand over|Redirect
flow:route      Route a ticket|Assign an issue|Pass a case on \
                || Handing over|Redirecting a fault
commit:route    Route now|Save assignment|Pass it on || Hand it over|Redirect now
slot:subject    (saying) Subject|What is wrong|Title || In one line|Short account
slot:queue      (for the team) Queue|Responsible team|Group || Crew in charge|Work line
slot:urgency    (urgent as) Urgency|Priority|How urgent || Severity|Weight of it
slot:due        (needed by) Due date|Needed by|Deadline || To be done by|Latest day
slot:watch      (with updates to me) Keep me informed|Send updates|Notify me \
                || Copy me in|Tell me of changes
slot:device     (machines concerned) Affected devices|How many devices|Devices \
                || Machines hit|Count of machines
slot:note       (with the note) Note|Comment|Remark || Annotation|Side note
slot:level      (raised to) New priority|Set priority to|Raise to \
                || Weight now|Severity now
slot:from       (as of) Valid from|Starting on|As of || Beginning with|Counting from
column:id       No.|Number|Reference || Ident|Key
column:subject  Problem|About|Concerns || Matter|Trouble
column:queue    With team|Handled in|Belongs to || Sits with|Assigned crew
column:urgency  Urgent|Rank|Level || Grade|Heat
column:opened   Opened|Since|Reported on || Raised on|Came in
column:status   Status|State|Stage || Phase|Standing
column:cost     Cost so far|Charged|Spent || Run up|Billed
column:name     Team|Name|Called || Crew|Line
column:hours    Hours|Staffed|Open hours || Manned|On duty
column:budget   Budget|Funds|Means || Purse|Allowance
"""

_PROBLEMS = (
    *("Printer jams", "No network", "Screen flickers", "Badge refused"),
    *("Mail is late", "Phone is dead", "Disk is full", "Door stays locked"),
)
_TEAMS = ("Network", "Printing", "Access", "Phones", "Storage", "Archive")
_URGENCIES = schema.options("Low", "Normal", "High")
_NOTES = ("Seen on two floors", "Started this morning")
_COUNTS = {1: (6, 4), 2: (14, 5), 3: (32, 6)}
_TEAM_REFUSALS = {"known queue queues id open": "This team takes no tickets."}


def _tables(draw: SiteDraw) -> tuple[SiteTable, ...]:
    count, teams = _COUNTS[draw.tier]
    queues: SiteRows = [
        (
            *(f"Q{i}", name, f"{draw.between(6, 9)} to 17"),
            *("closed" if i == teams else "open", draw.cents(500, 5000)),
        )
        for i, name in enumerate(draw.sample(_TEAMS, teams), 1)
    ]
    tickets: SiteRows = [
        (
            *(f"H-{510 + i}", draw.pick(_PROBLEMS), draw.pick(queues)[0], "normal"),
            *(draw.day(-draw.between(1, 4)), "open", draw.cents(5, 400)),
            *("", "no", 0, "", "", ""),
        )
        for i in range(count)
    ]
    return (
        schema.table(
            "tickets",
            "id subject queue urgency opened status cost due watch device note level from",
            tickets,
        ),
        schema.table("queues", "id name hours status budget", queues),
    )


def _workflows(draw: SiteDraw) -> tuple[Workflow, ...]:
    queues = draw.rows["queues"]
    teams = tuple(Option(value=str(row[0]), text=str(row[1])) for row in queues)
    filing = schema.slots(
        draw,
        "subject queue:choice urgency:choice",
        "due:date watch:check",
        "device:number note",
        queue=teams,
        urgency=_URGENCIES,
    )
    tiers = ("queue:choice", "level:choice", "from:date")
    routing = schema.slots(draw, *tiers, queue=teams, level=_URGENCIES)
    return (
        schema.workflow(
            "file",
            filing,
            schema.effect("insert", "tickets", filing, status="=open"),
            refusals=_TEAM_REFUSALS,
        ),
        schema.workflow(
            "route",
            routing,
            schema.effect("update", "tickets", routing),
            record="tickets",
            refusals={"is status open": "Only open tickets can be routed.", **_TEAM_REFUSALS},
        ),
    )


def _lookup(draw: SiteDraw) -> SiteTask:
    tickets = draw.rows["tickets"]
    if draw.tier == 1:
        row = draw.pick(tickets)
        text = f"What has the ticket {row[0]} cost so far?"
        return schema.question(text, row[6], [("tickets", row[0], "cost")])
    if draw.tier == 2:
        row = draw.pick(draw.rows["queues"])
        text = f"What budget does the team {row[1]} have?"
        return schema.question(text, row[4], [("queues", row[0], "budget")])
    subject = draw.pick(tickets)[1]
    found = [row for row in tickets if row[1] == subject]
    text = f"What have all tickets that say `{subject}` cost so far?"
    cells = [("tickets", row[0], "cost") for row in found]
    return schema.question(text, sum(int(row[6]) for row in found), cells)


def _ticket(draw: SiteDraw) -> dict[str, SiteValue]:
    queues = [queue for queue in draw.rows["queues"] if queue[3] == "open"]
    return draw.values(
        "file",
        subject=lambda: draw.pick(_PROBLEMS),
        queue=lambda: draw.pick(queues)[0],
        due=lambda: draw.day(draw.between(1, 4)),
        device=lambda: draw.between(1, 9),
        note=lambda: draw.pick(_NOTES),
    )


def _file(draw: SiteDraw) -> SiteTask:
    return SiteTask("File a ticket.", "file", _ticket(draw))


def _route(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["tickets"])
    others = [q for q in draw.rows["queues"] if q[3] == "open" and q[0] != row[2]]
    draws = {"queue": lambda: draw.pick(others)[0], "from": lambda: draw.day(draw.between(1, 3))}
    values = draw.values("route", **draws)
    return SiteTask(f"Route the ticket {row[0]}.", "route", values, row[0])


def _closed_team(draw: SiteDraw) -> SiteTask:
    """Return a ticket for the team that takes none."""
    values = _ticket(draw)
    values["queue"] = next(q for q in draw.rows["queues"] if q[3] != "open")[0]
    return SiteTask("File a ticket.", "file", values)


SITE = Site(
    key="desk",
    user="agent",
    brands=("Help Point", "Service Corner", "Fix Board", "Care Line"),
    labels=_LABELS,
    collections=(
        schema.collection(
            "tickets",
            "id subject queue:choice urgency opened:date status cost:money",
            title="id",
            category="queue",
        ),
        schema.collection("queues", "id name hours status budget:money", "name", secluded="budget"),
    ),
    tables=_tables,
    workflows=_workflows,
    tasks={"lookup": _lookup, "file": _file, "route": _route, "infeasible": _closed_team},
    infeasible="file",
    fact=SiteFact("tickets", "queue"),
    held_out=True,
)
