"""The answer key of a case: it knows what is right, and reads and writes by the tools alone."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from typing_extensions import override

from owa_bench.company.kinds.contract import CaseState, CaseWorld
from owa_bench.company.systems import ServedTable, SystemHost
from owa_bench.envs.casework.judge import case_quality, case_truth, needed_texts, right_items
from owa_bench.envs.casework.kinds import KINDS
from owa_bench.envs.casework.tools import MOST_IDS, WAIT_MINUTES
from owa_bench.envs.casework.world_edits import shown_in
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline

_POLICY, _MAILS, _ROWS, _REASON, _DELIVERED = "policy", "mails", "rows", "reason", "delivered"
_KEYS_A_REQUEST = 250
CaseAction = Mapping[str, Any]


def _call(tool: str, **arguments: Any) -> CaseAction:
    return {"tool": tool, "arguments": arguments}


@lru_cache(maxsize=32)
def _grouped(names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return needed names by their table."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        table, _, key = name.partition("/")
        found.setdefault(table, []).append(key)
    return {table: tuple(keys) for table, keys in found.items()}


class CaseOracle(Oracle):
    """Fetches every text and row that the case needs, then writes what is right."""

    @override
    def quality(self, timeline: Timeline, state: CaseState) -> float:
        return case_quality(timeline.worlds[0], state)

    @override
    def subgoals(self, world: CaseWorld) -> tuple[SubgoalNode, ...]:
        """Return texts, then rows that the texts name, then reasons, then deliverables.

        A reason needs the policy, the mails and the rows of its items: with one of them missing its
        items cannot be settled but by a guess.
        """
        kind, truth = KINDS[world.kind], _final_truth(world)
        nodes = [SubgoalNode(_POLICY, 1)]
        tables = _tables(needed_texts(world).names)
        first: tuple[str, ...] = ()
        if "mail" in _grouped(needed_texts(world).names):
            nodes.append(SubgoalNode(_MAILS, 1))
            first = (_MAILS,)
        nodes += [SubgoalNode(f"{_ROWS} {table}", 2, first) for table in tables]
        reasons: dict[str, set[str]] = {}
        for item in truth.items:
            for reason in item.reasons:
                reasons.setdefault(reason, set()).update(_tables(item.rows))
        for reason in kind.sources:
            if reason in reasons:
                rows = tuple(f"{_ROWS} {t}" for t in tables if t in reasons[reason])
                nodes.append(SubgoalNode(f"{_REASON} {reason}", 3, (_POLICY, *first, *rows)))
        before = tuple(node.name for node in nodes if node.depth == 3)
        before = before or tuple(node.name for node in nodes)
        nodes += [SubgoalNode(f"{_DELIVERED} {name}", 4, before) for name in truth.deliverables]
        return tuple(nodes)

    @override
    def solved(self, world: CaseWorld, state: CaseState) -> frozenset[str]:
        """Return texts and rows that were served whole, reasons and deliverables that are right."""
        kind, truth = KINDS[world.kind], case_truth(world, state)
        needed = needed_texts(world).names
        found = set()
        if f"page/{kind.policy_slug}" in state.served:
            found.add(_POLICY)
        groups = _grouped(needed)
        for table, keys in groups.items():
            if all(f"{table}/{key}" in state.served for key in keys):
                found.add(_MAILS if table == "mail" else f"{_ROWS} {table}")
        if not state.settled and not state.handed_in:
            return frozenset(found)
        right = right_items(world, state)
        wrong = {r for item in truth.items if item.id not in right for r in item.reasons}
        reasons = {r for item in truth.items for r in item.reasons}
        found |= {f"{_REASON} {reason}" for reason in reasons - wrong}
        parts = {part.name: part.value for part in kind.parts(world, truth, state)}
        for name in truth.deliverables:
            if name in state.handed_in and parts.get(name) == 1.0:
                found.add(f"{_DELIVERED} {name}")
        return frozenset(found)

    @override
    def gained(self, before: CaseState, action: CaseAction, after: CaseState) -> frozenset[str]:
        """Return the texts and groups of rows that were served anew, and what was settled."""
        served = after.served - before.served
        names = {f"served {name}" for name in served}
        changed = {k for k, v in after.settled.items() if before.settled.get(k) != v}
        names |= {f"settled {key}" for key in changed}
        names |= {
            f"handed in {name}"
            for name, rows in after.handed_in.items()
            if before.handed_in.get(name) != rows
        }
        return frozenset(names)

    @override
    def hint(self, timeline: Timeline, state: CaseState) -> CaseAction:
        """Return the next right call."""
        world: CaseWorld = timeline.worlds[0]
        kind = KINDS[world.kind]
        if reading := self._reading(world, state):
            return reading
        left = [event for event in world.events if event.name not in state.happened]
        left = [event for event in left if event.unless_settled not in state.settled]
        late = max((event.minute for event in left), default=0)
        if late > state.minute:
            return _call("wait", seconds=60 * min(WAIT_MINUTES, late - state.minute))
        truth = case_truth(world, state)
        calls, deliverables = kind.solution(world, truth)
        for name, body in calls:
            effect = kind.post(world, state, name, body).settled
            if all(state.settled.get(key) == answer for key, answer in effect.items()):
                continue
            pairs = [(host.host, call) for host in world.hosts for call in host.calls]
            host, call = next(pair for pair in pairs if pair[1].call == name)
            if state.receipts:  # of this very call
                url, receipt = f"https://{host}{call.confirm}", state.receipts[0]
                return _call("http", method="POST", url=url, body={"receipt": receipt})
            return _call("http", method=call.method, url=f"https://{host}{call.path}", body=body)
        for name, rows in deliverables.items():
            columns = kind.deliverables[name]
            wanted = tuple({column: row[column] for column in columns} for row in rows)
            if state.handed_in.get(name) != wanted:
                return _call("submit", name=name, rows=list(wanted))
        return _call("finish", p=float(case_quality(world, state) >= 0.95))

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the statements on the case with their truths."""
        world: CaseWorld = timeline.worlds[0]
        return tuple(
            PropositionTruth(p.name, p.kind, p.truth) for p in KINDS[world.kind].propositions(world)
        )

    @override
    def categories(self, world: CaseWorld) -> tuple[str, ...]:
        """Return the kinds of tool that this way takes: systems, and mail where there is any."""
        return ("http_api", "messages") if world.mails else ("http_api",)

    def _reading(self, world: CaseWorld, state: CaseState) -> CaseAction | None:
        """Return the next call that fetches what was not served yet, None if all was."""
        kind = KINDS[world.kind]
        if f"page/{kind.policy_slug}" not in state.served:
            return _call("http", url=f"https://wiki.corp/pages/{kind.policy_slug}")
        arrived = {mail.id for mail in world.mails}
        for event in world.events:
            if event.name in state.happened:
                arrived |= {mail.id for mail in event.mails}
        for table, keys in _grouped(needed_texts(world).names).items():
            if table == "page":
                continue
            left = [key for key in keys if f"{table}/{key}" not in state.served]
            if table == "mail":
                left = [key for key in left if key in arrived]
                if left:
                    return _call("mail", op="read", ids=left[:MOST_IDS])
            elif left:
                return _fetch(world, table, left)
        return None


def _final_truth(world: CaseWorld) -> Any:
    return KINDS[world.kind].truth(world, frozenset(event.name for event in world.events))


def _tables(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tables of needed rows, in order of name."""
    tables = {name.partition("/")[0] for name in names}
    return tuple(sorted(tables - {"mail", "page"}))


def _fetch(world: CaseWorld, table: str, keys: list[str]) -> CaseAction:
    """Return the request of some rows of a table, from the first list that holds any of them."""
    lists = [(h, s) for h in world.hosts for s in h.tables if s.table == table]
    if not lists:
        return _fetch_joined(world, table, keys)
    rows = {row.id: row for row in world.tables[table]}
    for host, served in lists:
        only = served.only
        held = [k for k in keys if only is None or str(getattr(rows[k], only[0])) == only[1]]
        if held:
            return _rows(host, served, held)
    return _rows(*lists[0], keys)


def _fetch_joined(world: CaseWorld, table: str, keys: list[str]) -> CaseAction:
    """Return the request of the rows of another table that show those of this one."""
    host, served = shown_in(world, table)
    owner = served.table.removesuffix("s")
    wanted = set(keys)
    return _rows(
        host, served, [getattr(row, owner) for row in world.tables[table] if row.id in wanted]
    )


def _rows(host: SystemHost, served: ServedTable, keys: list[str]) -> CaseAction:
    name = next(c.name for c in served.columns if c.column == "id" and not c.table)
    return _call(
        "http",
        url=f"https://{host.host}{served.path}",
        query={name: keys[:_KEYS_A_REQUEST]},
        follow=True,
    )
