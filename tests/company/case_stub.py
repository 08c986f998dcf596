"""A case's tools for tests, without a session: they serve a world to a parser's plan."""

import contextlib
import datetime as dt
import io
import json
import sys
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace

from owa_bench.company.kinds.contract import CaseState, NoWorldError
from owa_bench.company.kinds.publishing import published_pages
from owa_bench.company.serving import SystemServer, dumped
from owa_bench.interfaces import Brief
from owa_bench.seeding import derive

SHOWN = 10_000
MINUTES = {"python": 2}


def draw(kind, seed, level, practice=False):
    """Return a world; another seed is tried where a company has not what a case needs."""
    from owa_bench.company.kinds.contract import CaseSpec

    for number in range(40):
        spec = CaseSpec(derive(seed, kind.name, level, number), level, practice)
        with contextlib.suppress(NoWorldError):
            return kind.draw(spec)
    raise AssertionError(f"no world of seed {seed}")


def word(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class StubDesk:
    """The tools of one case; programs run in this process, in a folder of the test."""

    def __init__(self, kind, world, folder):
        self.kind, self.world, self.folder = kind, world, folder
        self.server = SystemServer(world.hosts, world.tables, published_pages(kind, world))
        self.mails = {mail.id: mail for mail in world.mails}
        self.unread = dict.fromkeys(self.mails)
        self.pending = list(world.events)
        self.state = CaseState()
        self.acts = []

    def play(self, plan):
        """Play a plan to its end; return its last call."""
        try:
            call = next(plan)
            while True:
                call = plan.send(self.reply(call))
        except StopIteration as end:
            return end.value

    def reply(self, call):
        from owa_bench.agents.solvers.planning import PlanReply

        self.acts.append(call)
        minutes = call.arguments.get("minutes") or MINUTES.get(call.tool, 1)
        text = getattr(self, f"do_{call.tool}")(**call.arguments)
        self.pass_time(self.state.minute + minutes)
        return PlanReply(f"[clock | unread mail {len(self.unread)}]\n{text}", None)

    def pass_time(self, minute):
        self.state = replace(self.state, minute=minute)
        for event in [event for event in self.pending if event.minute <= minute]:
            self.pending.remove(event)
            now = self.world.begins + dt.timedelta(minutes=minute)
            for mail in event.mails:
                self.mails[mail.id] = replace(mail, at=now)
                self.unread[mail.id] = None
            for page in event.pages:
                self.server.pages[page.slug] = page
            self.state = replace(self.state, happened=self.state.happened | {event.name})

    def do_http(self, url, method="GET", query=(), body=None, follow=False, save="r.json"):
        parts = urlsplit(url)
        texts = {
            name: ",".join(map(word, value)) if isinstance(value, list) else word(value)
            for name, value in dict(query).items()
        }
        target = f"{parts.path}?{urlencode(texts, safe=',')}"
        reply = self.server.request(method, parts.hostname, target)
        answer = reply.body
        if reply.call is not None:
            result = self.kind.post(self.world, self.state, reply.call.call, body)
            used = {**self.state.used}
            for name, count in result.used.items():
                used[name] = used.get(name, 0) + count
            self.state = replace(self.state, used=used)
            answer = result.reply
        elif follow and reply.wrapper:
            answer = list(reply.body[reply.wrapper])
            while reply.more is not None:
                target = f"{parts.path}?{urlencode(reply.more, safe=',')}"
                reply = self.server.request(method, parts.hostname, target)
                answer += reply.body[reply.wrapper]
        text = dumped(answer)
        (self.folder / save).write_text(text)
        cut = f"\n[cut: {len(text)} characters, whole in {save}]" if len(text) > SHOWN else ""
        return f"HTTP {reply.status}, kept as {save}\n{text[:SHOWN]}{cut}"

    def do_python(self, code):
        for name in [name for name in sys.modules if name.startswith("tariff_")]:
            del sys.modules[name]
        sys.path_importer_cache.pop(".", None)
        shown, path = io.StringIO(), list(sys.path)
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(shown):
                exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        finally:
            sys.path[:] = path
        assert len(shown.getvalue()) <= 6_000
        assert len(code) <= 60_000
        return shown.getvalue()

    def do_mail(self, op, ids=(), unread=False):
        if op == "list":
            found = [mail for mail in self.mails.values() if not unread or mail.id in self.unread]
            return dumped(
                [
                    {
                        "id": mail.id,
                        "from": mail.sender,
                        "subject": mail.subject,
                        "at": mail.at.isoformat(timespec="minutes"),
                        "unread": mail.id in self.unread,
                    }
                    for mail in found
                ]
            )
        for key in ids:
            self.unread.pop(key, None)
        return "\n\n".join(
            f"{mail.id}\nFrom: {mail.sender}\nDate: {mail.at.isoformat(timespec='minutes')}\n"
            f"Subject: {mail.subject}\n{mail.text}"
            for mail in (self.mails[key] for key in ids)
        )

    def do_wait(self, minutes):
        return "waited"

    def do_submit(self, name, rows):
        kept = {**self.state.handed_in, name: tuple(json.loads(json.dumps(rows)))}
        self.state = replace(self.state, handed_in=kept)
        return f"{name}: {len(rows)} rows taken"

    def brief(self):
        """Return the brief of the case."""
        world = self.world
        goal = {
            "kind": world.kind,
            "hosts": list(self.server.names),
            "begins": world.begins.isoformat(timespec="minutes"),
        }
        statements = {p.name: p.text for p in self.kind.propositions(world)}
        return Brief(text=self.kind.brief(world), goal=goal, propositions=statements)
