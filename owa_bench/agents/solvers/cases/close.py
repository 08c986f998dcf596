"""Parser of the kind `close`: it reads policy and mails, and applies the rules in the sandbox.

The records stay in files of the case's folder: the text of the rules is run beside them, and what
it writes is posted from there. `miss` names what a careless reader leaves out, in the words of the
kind's sources.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from owa_bench.agents.solvers.cases.client import CaseClient, CaseMail, CaseRow
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.company.language import close_records, close_rules
from owa_bench.company.language.close_policy import DISCOUNT_CLAUSE, FORM, POLICY
from owa_bench.company.language.close_texts import (
    BANK_DAYS,
    LINE_EXCEPTIONS,
    LINE_PAYS,
    NOTICE,
    OWES,
    STATEMENTS,
    STILL_OPEN,
    read_advice,
    read_bank_days,
)
from owa_bench.company.language.policy import Policy, with_amendments
from owa_bench.company.language.text import read_all
from owa_bench.interfaces import Brief

CORRECTION = "correction"
_LINES, _TABLES = "bank_lines", ("invoices", "customers", "credit_notes", "payers")
_SavedFile = tuple[str, str, dict[str, str], dict[str, str]]  # name, table, columns, their forms
_MONTH = re.compile(r"bank lines of (\d{4}-\d\d)")
_CUSTOMER = re.compile(r"C-\d{5}")
_PACKAGE, _RESULT = "owa_bench.company.language.", "result.json"
_ROUNDS = 3  # times that it works again after something has arrived
_SURE, _CLAIM = 0.9, 0.97
_PROGRAM = """
import json
from close_records import Receivables
from close_rules import apply_month, open_items
facts = {facts!r}
def plain(value, form):
    if value is None or not form:
        return value
    if form == "dotted":
        return "-".join(reversed(value.split(".")))
    euros, _, cents = value.partition(".")
    return int(euros + cents)
for file, table, names, forms in {files!r}:
    rows = json.load(open(file))
    facts["records"].setdefault(table, []).extend(
        {{c: plain(row[s], forms.get(c)) for c, s in names.items()}} for row in rows
    )
records = Receivables(facts["records"])
month, terms = facts["month"], facts["terms"]
done = apply_month(records, month, terms, facts["amendments"], frozenset(facts["blind"]))
rows = [row for line in sorted(done.rows) for row in done.rows[line]]
told = [
    {{"line": line, "code": code, "amount_cents": cents}}
    for line in sorted(done.exceptions)
    for code, cents in sorted(done.exceptions[line].items())
]
owed = {{c: open_items(records, month, terms, done, c) for c in records.customers}}
json.dump({{"mode": "replace", "rows": rows}}, open("rows.json", "w"))
json.dump(told, open("exceptions.json", "w"))
asked = [{{"customer": c, "open_cents": owed[c]}} for c in facts["asked"]]
json.dump(asked, open("open_items.json", "w"))
pays = {{line: [row["invoice"] for row in rows] for line, rows in done.rows.items()}}
sums = {{line: sum(codes.values()) for line, codes in done.exceptions.items()}}
left = done.open_cents
json.dump({{"pays": pays, "sums": sums, "left": left, "owed": owed}}, open("result.json", "w"))
print(len(rows), len(told))
"""


class _FileClient(CaseClient):
    """A client that posts and hands in files of the case's folder."""

    def post_file(self, name: str, file: str) -> ToolPlan[None]:
        """Make a call that writes, with the body of a file.

        Args:
            name: Of the call in the vocabulary.
            file: Of the folder.
        """
        yield from self._learn()
        method, url, confirm = self._calls[name]
        text = yield from self.call("http", method=method, url=url, body_from=file)
        if confirm:
            receipt = json.loads(text.partition("\n")[2])["receipt"]
            body = {"receipt": receipt}
            yield from self.call("http", method="POST", url=confirm, body=body)

    def submit_file(self, name: str, file: str) -> ToolPlan[None]:
        """Hand in the rows of a file.

        Args:
            name: Of the deliverable.
            file: Of the folder.
        """
        yield from self.call("submit", name=name, file=file)


class CloseParser:
    """Plays one case.

    Args:
        brief: Of the episode.
        miss: Sources that it leaves out.
    """

    def __init__(self, brief: Brief, miss: Iterable[str] = ()) -> None:
        self._brief = brief
        self._miss = frozenset(miss)
        self._client = _FileClient(brief)

    def plan(self) -> ToolPlan[PlanCall]:
        """Return the plan of the case; its last call finishes."""
        client = self._client
        policy = yield from self._policy()
        if policy is None:
            return PlanCall("declare_infeasible", {"p": 0.1})
        closed = read_bank_days((yield from client.page(BANK_DAYS)))
        for name, module in (("close_records", close_records), ("close_rules", close_rules)):
            code = inspect.getsource(module).replace(_PACKAGE, "")
            yield from client.python(f"open('{name}.py', 'w').write({code!r})")
        kept: list[_SavedFile] = []
        for table in _TABLES:
            kept += yield from self._saved(table)
        for _ in range(_ROUNDS):
            files = kept + (yield from self._saved(_LINES))
            mails = yield from client.mails()
            facts = yield from self._facts(policy, closed, mails)
            yield from client.python(_PROGRAM.format(facts=facts, files=files))
            yield from client.post_file("allocate", "rows.json")
            for name in ("exceptions", "open_items"):
                yield from client.submit_file(name, f"{name}.json")
            if not client.unread or CORRECTION in self._miss:
                break
        beliefs = yield from self._beliefs()
        return PlanCall("finish", {"p": _SURE, "beliefs": beliefs})

    def _saved(self, table: str) -> ToolPlan[list[_SavedFile]]:
        """Keep a table in files of the folder; return how they are to be read."""
        places = yield from self._client.save(table, table)
        return [
            (f"{table}.{number}.json", table, dict(place.names), dict(place.forms))
            for number, place in enumerate(places)
        ]

    def _policy(self) -> ToolPlan[Policy | None]:
        """Return the policy with its amendments."""
        client = self._client
        policy = FORM.read((yield from client.page(POLICY)))
        slugs = {page["slug"] for page in (yield from client.pages())}
        if policy is None or f"{POLICY}-changes" not in slugs:
            return policy
        text = yield from client.page(f"{POLICY}-changes")
        return with_amendments(policy, FORM.read_amendments(text, policy.title))

    def _facts(
        self, policy: Policy, closed: list[str], mails: Mapping[str, CaseMail]
    ) -> ToolPlan[dict[str, Any]]:
        """Return what the program needs beside the saved tables."""
        contracts = yield from self._client.rows("contracts")
        notices = yield from self._notices(mails)
        advices = [
            {"advice": advice.advice, "at": mail.at, "parts": advice.parts}
            for mail in mails.values()
            if (advice := read_advice(mail.text))
        ]
        mailed = [
            one for mail in mails.values() for one in FORM.read_amendments(mail.text, policy.title)
        ]
        month = _MONTH.search(self._brief.text)
        return {
            "month": month[1] if month else "",
            "terms": policy.terms,
            "amendments": [
                (one.first.isoformat(), one.sentence, one.values)
                for one in with_amendments(policy, (*policy.amendments, *mailed)).amendments
            ],
            "blind": sorted(self._miss - {CORRECTION}),
            "asked": sorted(set(_CUSTOMER.findall(self._brief.text))),
            "records": {
                "terms": list(_discounts(contracts)),
                "notices": notices,
                "advices": advices,
                "closed": closed,
            },
        }

    def _notices(self, mails: Mapping[str, CaseMail]) -> ToolPlan[list[CaseRow]]:
        """Return the announcements of payers by contacts."""
        found = [
            (mail.sender, one.values) for mail in mails.values() for one in NOTICE.read(mail.text)
        ]
        if not found:
            return []
        rows = yield from self._client.rows("contacts", email=[sender for sender, _ in found])
        contacts = {row["email"]: row for row in rows}
        return [
            {
                "payer": values["payer"],
                "customer": contacts[sender]["customer"],
                "first": values["first"].isoformat(),
                "active": contacts[sender]["status"] == "active",
            }
            for sender, values in found
            if sender in contacts
        ]

    def _beliefs(self) -> ToolPlan[dict[str, float]]:
        """Return the odds of each statement of the brief."""
        asked = {
            name: (reading[0].name, dict(reading[0].values))
            for name, text in self._brief.propositions.items()
            if (reading := read_all(STATEMENTS, text))
        }
        code = (
            f"import json\nr = json.load(open({_RESULT!r}))\n"
            f"for name, (kind, v) in {asked!r}.items():\n"
            f"    if kind == {LINE_PAYS.name!r}:\n"
            "        paid = v['invoice'] in r['pays'].get(v['line'], ())\n"
            "        truth = paid == (v['verb'] == 'pays')\n"
            "    else:\n"
            f"        cents = {{{LINE_EXCEPTIONS.name!r}: lambda: r['sums'].get(v['line'], 0),"
            f" {OWES.name!r}: lambda: r['owed'].get(v['customer'], 0),"
            f" {STILL_OPEN.name!r}: lambda: r['left'].get(v['invoice'], 0)}}[kind]()\n"
            "        truth = (cents > v['cents']) == (v['than'] == 'more than')\n"
            "    print(name, int(truth))\n"
        )
        text = yield from self._client.python(code)
        beliefs = {}
        for line in text.splitlines():
            name, _, truth = line.rpartition(" ")
            if name in asked:
                beliefs[name] = _CLAIM if truth == "1" else 1 - _CLAIM
        return beliefs


def _discounts(contracts: list[CaseRow]) -> Iterator[CaseRow]:
    """Yield the contracts on cash discount with their terms, in order of their first day."""
    for contract in sorted(contracts, key=lambda row: str(row["valid_from"])):
        for reading in DISCOUNT_CLAUSE.read(contract["text"]):
            yield {**contract, **reading.values}
