"""Permit, a town office: look a fee up, apply with branches and papers, withdraw."""

from owa_bench.envs.changesurf import site_schema as schema
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteRows, SiteTask
from owa_bench.envs.changesurf.site_spec import SiteTable, SiteValue, Workflow

_LABELS = """
menu:permits      Permits|Kinds of permit|What you can apply for \
                  || Licences|Consents on offer
menu:cases        My applications|Submitted forms|Applications \
                  || Pending matters|Files of mine
act:apply         Apply|Start application|Request || File for it|Petition
flow:apply        Application|Application form|Apply for a permit \
                  || Petition form|Request for consent
commit:apply      Submit application|Send the form|File now \
                  || Lodge it|Hand the petition in
act:withdraw      Withdraw|Take back|Retract || Call off|Drop
flow:withdraw     Withdraw an application|Retraction|Take a form back \
                  || Calling a matter off|Dropping a request
commit:withdraw   Withdraw now|Send retraction|Confirm withdrawal \
                  || Call it off|Drop it for good
slot:applicant    (on behalf of) Applicant|Name of applicant|Applying person \
                  || Petitioner|Who asks
slot:place        (at) Site address|Place|Where it applies || Location|Plot
slot:start        (beginning) Start date|Valid from|Begins on \
                  || First day wanted|Commencing
slot:kind         (which is) Type of application|New or renewal|Application type \
                  || Sort of request|First time or again
slot:former       (old permit) Former permit number|Number of the old permit \
                  |Previous number || Earlier licence code|Old consent code
slot:months       (months) Duration in months|Months|For how many months \
                  || Term (months)|Length in months
slot:paper        (enclosing) Attachment|Document|Enclosed paper \
                  || Evidence file|Proof to enclose
slot:agree        (declared true) I declare this is true|Declaration \
                  |True to my knowledge || Sworn statement|Assurance of truth
slot:reply        (answer by) Reply by|Contact me by|How we answer \
                  || Answer channel|Reach me by
slot:reason       (because) Reason|Why|Grounds || Cause|Motive
slot:until        (as of) Withdrawn as of|Effective date|From which day \
                  || Taking effect|As from
slot:remark       (remarking) Remark|Note to the office|Comment \
                  || Side note|Further words
column:id         No.|Number|File no. || Ident|Key
column:name       Permit|Name|Called || Title|Licence name
column:area       Office|Department|Handled by || Bureau|Desk in charge
column:fee        Fee|Charge|Costs || Due amount|Tariff
column:days       Days to decide|Processing days|Takes (days) \
                  || Handling days|Wait in days
column:status     Status|State|Stage || Phase|Standing
column:penalty    Late charge|Surcharge|Extra for lateness || Fine|Overdue sum
column:permit     Permit asked for|Subject|For || Matter|Licence asked
column:applicant  Filed by|On behalf of|By || Party|Person
column:filed      Filed on|Received|Came in || Lodged|Registered
column:paid       Paid so far|Amount paid|Payments || Settled sum|Money in
"""

_PERMITS = (
    *("Street stall", "Scaffold", "Busking", "Skip on road", "Tree felling"),
    *("Garden wall", "Shop sign", "Street party", "Film shoot", "Food van"),
    *("Night works", "Moving van", "Bee hives", "Public notice", "Kiosk"),
    *("Boat mooring", "Fence", "Dog walk group", "Open air stage", "Market day"),
)
_AREAS = ("Roads", "Parks", "Trade")
_PEOPLE = ("Noor Haas", "Eli Stone", "Vera Lind", "Omar Reyes")
_PLACES = ("3 Well Street", "North Quay 8", "Abbey Square 1")
_KINDS = schema.options("New", "Renewal")
_PAPERS = schema.options("Site plan", "Insurance proof", "Identity card")
_REPLIES = schema.options("Letter", "E-mail")
_REASONS = schema.options("No longer needed", "Wrong permit", "Moved away")
_REMARKS = ("Sorry for the trouble", "A new form will follow")
_COUNTS = {1: (6, 4), 2: (12, 10), 3: (20, 22)}


def _tables(draw: SiteDraw) -> tuple[SiteTable, ...]:
    count, past = _COUNTS[draw.tier]
    permits: SiteRows = []
    for i, name in enumerate(draw.sample(_PERMITS, count)):
        fee, days = draw.cents(10, 300), draw.between(3, 40)
        penalty, status = draw.cents(5, 60), "issued" if i else "ended"
        area = draw.pick(_AREAS)
        permits.append((f"K{11 + i}", name, area, fee, days, status, penalty))
    permits = draw.sample(permits, count)
    cases: SiteRows = [
        (
            *(f"F-{720 + i}", draw.pick(permits)[1], draw.pick(_PEOPLE)),
            *(draw.day(-draw.between(1, 8)), draw.cents(0, 200), "pending"),
            *("", "", "", "", 0, "", "", "", "", "", ""),
        )
        for i in range(past)
    ]
    return (
        schema.table("permits", "id name area fee days status penalty", permits),
        schema.table(
            "cases",
            "id permit applicant filed paid status place start kind former months "
            "paper agree reply reason until remark",
            cases,
        ),
    )


def _workflows(draw: SiteDraw) -> tuple[Workflow, ...]:
    application = schema.slots(
        draw,
        "applicant place kind:choice former@kind=renewal",
        "start:date paper:choice",
        "months:number<8 reply:choice agree:check",
        kind=_KINDS,
        paper=_PAPERS,
        reply=_REPLIES,
    )
    withdrawal = schema.slots(draw, "reason:choice", "until:date", "remark", reason=_REASONS)
    file = schema.effect("insert", "cases", application, permit="record:name", status="=pending")
    withdraw = schema.effect("update", "cases", withdrawal, status="=withdrawn")
    return (
        schema.workflow(
            "apply",
            application,
            file,
            record="permits",
            refusals={"is status issued": "This permit is no longer issued."},
        ),
        schema.workflow(
            "withdraw",
            withdrawal,
            withdraw,
            record="cases",
            refusals={"is status pending": "Only pending forms can go back."},
        ),
    )


def _lookup(draw: SiteDraw) -> SiteTask:
    if draw.tier == 3:
        cases = draw.rows["cases"]
        person = draw.pick(cases)[2]
        found = [case for case in cases if case[2] == person]
        text = f"What has been paid on the applications filed by {person} in all?"
        cells = [("cases", case[0], "paid") for case in found]
        return schema.question(text, sum(int(case[4]) for case in found), cells)
    row = draw.pick(draw.rows["permits"])
    column, name, value = "fee", "fee", row[3]
    if draw.tier == 2:
        column, name, value = "penalty", "charge for lateness", row[6]
    text = f"What is the {name} for the permit `{row[1]}`?"
    return schema.question(text, value, [("permits", row[0], column)])


def _application(draw: SiteDraw) -> dict[str, SiteValue]:
    return draw.values(
        "apply",
        applicant=lambda: draw.pick(_PEOPLE),
        place=lambda: draw.pick(_PLACES),
        former=lambda: f"OLD-{draw.between(100, 999)}",
        start=lambda: draw.day(draw.between(1, 6)),
        months=lambda: draw.between(2, 8),
        agree=lambda: "yes",
    )


def _apply(draw: SiteDraw) -> SiteTask:
    row = draw.pick([p for p in draw.rows["permits"] if p[5] == "issued"])
    text = f"Apply for the permit `{row[1]}`."
    return SiteTask(text, "apply", _application(draw), row[0])


def _withdraw(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["cases"])
    values = draw.values(
        "withdraw", until=lambda: draw.day(draw.between(1, 3)), remark=lambda: draw.pick(_REMARKS)
    )
    return SiteTask(f"Withdraw the application {row[0]}.", "withdraw", values, row[0])


def _ended(draw: SiteDraw) -> SiteTask:
    """Return an application for the permit that is no longer issued."""
    row = next(p for p in draw.rows["permits"] if p[5] != "issued")
    text = f"Apply for the permit `{row[1]}`."
    return SiteTask(text, "apply", _application(draw), row[0])


SITE = Site(
    key="permit",
    user="citizen",
    brands=("Town Hall Online", "Civic Point", "Borough Office", "Permit House"),
    labels=_LABELS,
    collections=(
        schema.collection(
            "permits",
            "id name area:choice fee:money days:number status penalty:money",
            title="name",
            category="area",
            secluded="penalty",
        ),
        schema.collection("cases", "id permit applicant filed:date paid:money status", title="id"),
    ),
    tables=_tables,
    workflows=_workflows,
    tasks={"lookup": _lookup, "apply": _apply, "withdraw": _withdraw, "infeasible": _ended},
    infeasible="apply",
    fact=schema.SiteFact("permits", "area"),
)
