"""Permit, a town office: look a fee up, apply with branches and papers, withdraw."""

from owa_bench.envs.changesurf import plots
from owa_bench.envs.changesurf.draws import Draws
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
    "menu:permits": "Permits|Kinds of permit|What you can apply for "
    "|| Licences|Consents on offer",
    "menu:cases": "My applications|Submitted forms|Applications "
    "|| Pending matters|Files of mine",
    "act:apply": "Apply|Start application|Request || File for it|Petition",
    "flow:apply": "Application|Application form|Apply for a permit "
    "|| Petition form|Request for consent",
    "commit:apply": "Submit application|Send the form|File now "
    "|| Lodge it|Hand the petition in",
    "act:withdraw": "Withdraw|Take back|Retract || Call off|Drop",
    "flow:withdraw": "Withdraw an application|Retraction|Take a form back "
    "|| Calling a matter off|Dropping a request",
    "commit:withdraw": "Withdraw now|Send retraction|Confirm withdrawal "
    "|| Call it off|Drop it for good",
    "slot:applicant": "Applicant|Name of applicant|Applying person "
    "|| Petitioner|Who asks",
    "slot:place": "Site address|Place|Where it applies || Location|Plot",
    "slot:start": "Start date|Valid from|Begins on || First day wanted|Commencing",
    "slot:kind": "Type of application|New or renewal|Application type "
    "|| Sort of request|First time or again",
    "slot:former": "Former permit number|Number of the old permit|Previous number "
    "|| Earlier licence code|Old consent code",
    "slot:months": "Duration in months|Months|For how many months "
    "|| Term (months)|Length in months",
    "slot:paper": "Attachment|Document|Enclosed paper "
    "|| Evidence file|Proof to enclose",
    "slot:agree": "I declare this is true|Declaration|True to my knowledge "
    "|| Sworn statement|Assurance of truth",
    "slot:reply": "Reply by|Contact me by|How we answer || Answer channel|Reach me by",
    "slot:reason": "Reason|Why|Grounds || Cause|Motive",
    "slot:until": "Withdrawn as of|Effective date|From which day "
    "|| Taking effect|As from",
    "slot:remark": "Remark|Note to the office|Comment || Side note|Further words",
    "column:id": "No.|Number|File no. || Ident|Key",
    "column:name": "Permit|Name|Called || Title|Licence name",
    "column:area": "Office|Department|Handled by || Bureau|Desk in charge",
    "column:fee": "Fee|Charge|Costs || Due amount|Tariff",
    "column:days": "Days to decide|Processing days|Takes (days) "
    "|| Handling days|Wait in days",
    "column:status": "Status|State|Stage || Phase|Standing",
    "column:penalty": "Late charge|Surcharge|Extra for lateness || Fine|Overdue sum",
    "column:permit": "Permit asked for|Subject|For || Matter|Licence asked",
    "column:applicant": "Filed by|On behalf of|By || Party|Person",
    "column:filed": "Filed on|Received|Came in || Lodged|Registered",
    "column:paid": "Paid so far|Amount paid|Payments || Settled sum|Money in",
}
NAMES = {
    "applicant": "on behalf of",
    "place": "at",
    "start": "beginning",
    "kind": "which is",
    "former": "old permit",
    "months": "months",
    "paper": "enclosing",
    "agree": "declared true",
    "reply": "answer by",
    "reason": "because",
    "until": "as of",
    "remark": "remarking",
}
_PERMITS = (
    *("Street stall", "Scaffold", "Busking", "Skip on road", "Tree felling"),
    *("Garden wall", "Shop sign", "Street party", "Film shoot", "Food van"),
    *("Night works", "Moving van", "Bee hives", "Public notice", "Kiosk"),
    *("Boat mooring", "Fence", "Dog walk group", "Open air stage", "Market day"),
)
_AREAS = ("Roads", "Parks", "Trade")
_PEOPLE = ("Noor Haas", "Eli Stone", "Vera Lind", "Omar Reyes")
_PLACES = ("3 Well Street", "North Quay 8", "Abbey Square 1")
_KINDS = plots.options("New", "Renewal")
_PAPERS = plots.options("Site plan", "Insurance proof", "Identity card")
_REPLIES = plots.options("Letter", "E-mail")
_REASONS = plots.options("No longer needed", "Wrong permit", "Moved away")
_REMARKS = ("Sorry for the trouble", "A new form will follow")
_COUNTS = {1: (6, 4), 2: (12, 10), 3: (20, 22)}
_ISSUED, _PENDING = "issued", "pending"
_COLLECTIONS = (
    Collection(
        key="permits",
        columns=plots.columns(
            "id name area:choice fee:money days:number status penalty:money"
        ),
        title="name",
        category="area",
        secluded=("penalty",),
    ),
    Collection(
        key="cases",
        columns=plots.columns("id permit applicant filed:date paid:money status"),
        title="id",
    ),
)


def draw(draws: Draws, tier: int, goal: str) -> Plot:
    """Return the office with its permits and applications, and the task of `goal`."""
    day = plots.today(draws)
    permits = _permits(draws, _COUNTS[tier][0])
    cases = _cases(draws, permits, day, _COUNTS[tier][1])
    tasks = {
        "lookup": _lookup,
        "apply": _apply,
        "withdraw": _withdraw,
        "infeasible": _ended,
    }
    task = tasks[goal](draws, tier, permits, cases, day)
    asked = draws.pick(permits)
    return Plot(
        today=day,
        user="citizen",
        tables=(
            SiteTable(
                key="permits",
                columns=("id", "name", "area", "fee", "days", "status", "penalty"),
                rows=tuple(permits),
            ),
            SiteTable(
                key="cases",
                columns=(
                    *("id", "permit", "applicant", "filed", "paid", "status"),
                    *("place", "start", "kind", "former", "months", "paper"),
                    *("agree", "reply", "reason", "until", "remark"),
                ),
                rows=tuple(cases),
            ),
        ),
        collections=_COLLECTIONS,
        workflows=(_applying(tier), _withdrawing(tier)),
        task=task,
        fact=("permits", asked[0], "area", draws.pick(_AREAS)),
    )


def _permits(draws: Draws, count: int) -> Rows:
    names = draws.sample(_PERMITS, count)
    rows: Rows = []
    for i, name in enumerate(names):
        status = "ended" if i == 0 else _ISSUED
        fees = (draws.cents(10, 300), draws.between(3, 40))
        late = draws.cents(5, 60)
        rows.append((f"K{11 + i}", name, draws.pick(_AREAS), *fees, status, late))
    return draws.shuffled(rows)


def _cases(draws: Draws, permits: Rows, day: str, count: int) -> Rows:
    blank = ("", "", "", "", 0, "", "", "", "", "", "")
    return [
        (
            *(f"F-{720 + i}", draws.pick(permits)[1], draws.pick(_PEOPLE)),
            *(draws.day(day, -draws.between(1, 8)), draws.cents(0, 200), _PENDING),
            *blank,
        )
        for i in range(count)
    ]


def _applying(tier: int) -> Workflow:
    slots = [
        Slot(key="applicant", kind="text"),
        Slot(key="place", kind="text"),
        Slot(key="kind", kind="choice", options=_KINDS),
        Slot(key="former", kind="text", when=("kind", "renewal")),
    ]
    if tier >= 2:
        slots.append(Slot(key="start", kind="date"))
        slots.append(Slot(key="paper", kind="choice", options=_PAPERS))
    if tier >= 3:
        slots.append(Slot(key="months", kind="number", most=8))
        slots.append(Slot(key="reply", kind="choice", options=_REPLIES))
        slots.append(plots.box("agree"))
    cells = plots.cells(slots)
    return Workflow(
        key="apply",
        record="permits",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="insert",
                table="cases",
                values=(("permit", "record:name"), ("status", f"={_PENDING}"), *cells),
            ),
        ),
        checks=(
            plots.only("is", "status", _ISSUED, "This permit is no longer issued."),
        ),
    )


def _withdrawing(tier: int) -> Workflow:
    slots = [Slot(key="reason", kind="choice", options=_REASONS)]
    if tier >= 2:
        slots.append(Slot(key="until", kind="date"))
    if tier >= 3:
        slots.append(Slot(key="remark", kind="text"))
    cells = plots.cells(slots)
    return Workflow(
        key="withdraw",
        record="cases",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="update", table="cases", values=(("status", "=withdrawn"), *cells)
            ),
        ),
        checks=(
            plots.only("is", "status", _PENDING, "Only pending forms can go back."),
        ),
    )


def _lookup(draws: Draws, tier: int, permits: Rows, cases: Rows, _day: str) -> Task:
    if tier < 3:
        row = draws.pick(permits)
        column, name = (
            ("fee", "fee") if tier == 1 else ("penalty", "charge for lateness")
        )
        value = int(row[3] if tier == 1 else row[6])
        text = f"What is the {name} for the permit `{row[1]}`?"
        return plots.finding(text, value, [("permits", row[0], column)])
    person = draws.pick(cases)[2]
    found = [case for case in cases if case[2] == person]
    text = f"What has been paid on the applications filed by {person} in all?"
    cells = [("cases", case[0], "paid") for case in found]
    return plots.finding(text, sum(int(case[4]) for case in found), cells)


def _values(draws: Draws, tier: int, day: str) -> dict[str, SiteValue]:
    values: dict[str, SiteValue] = {
        "applicant": draws.pick(_PEOPLE),
        "place": draws.pick(_PLACES),
        "kind": draws.pick(_KINDS).value,
    }
    if values["kind"] == "renewal":
        values["former"] = f"OLD-{draws.between(100, 999)}"
    if tier >= 2:
        values["start"] = draws.day(day, draws.between(1, 6))
        values["paper"] = draws.pick(_PAPERS).value
    if tier >= 3:
        values["months"] = draws.between(2, 8)
        values["reply"] = draws.pick(_REPLIES).value
        values["agree"] = "yes"
    return values


def _apply(draws: Draws, tier: int, permits: Rows, _cases: Rows, day: str) -> Task:
    row = draws.pick([p for p in permits if p[5] == _ISSUED])
    values = _values(draws, tier, day)
    return Task(f"Apply for the permit `{row[1]}`.", "apply", values, row[0])


def _withdraw(draws: Draws, tier: int, _permits: Rows, cases: Rows, day: str) -> Task:
    row = draws.pick(cases)
    values: dict[str, SiteValue] = {"reason": draws.pick(_REASONS).value}
    if tier >= 2:
        values["until"] = draws.day(day, draws.between(1, 3))
    if tier >= 3:
        values["remark"] = draws.pick(_REMARKS)
    return Task(f"Withdraw the application {row[0]}.", "withdraw", values, row[0])


def _ended(draws: Draws, tier: int, permits: Rows, _cases: Rows, day: str) -> Task:
    """Return an application for the permit that is no longer issued."""
    row = next(p for p in permits if p[5] != _ISSUED)
    values = _values(draws, tier, day)
    return Task(f"Apply for the permit `{row[1]}`.", "apply", values, row[0])


SITE = Site(
    key="permit",
    goals=("lookup", "apply", "withdraw"),
    infeasible="apply",
    brands=("Town Hall Online", "Civic Point", "Borough Office", "Permit House"),
    words=WORDS,
    names=NAMES,
    draw=draw,
)
