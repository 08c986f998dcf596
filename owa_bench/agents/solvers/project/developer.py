"""A developer of a real project: writes features, keeps integration green, releases.

Four extents of repair: 0 none, 1 pins and the pipeline, 2 also calls by changelogs, 3 also calls by
what a contract test finds.

Source: docs/projforge.md#agents
"""

import json
import re
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.agents.solvers.project import feature_code, library_contract
from owa_bench.agents.solvers.project.library_contract import CallForm, CallForms
from owa_bench.interfaces import Brief, ToolSpec

DayScript = Generator[str, str, str]  # actions out, observations in
_WEEK, _RUNS = 7, 8
_SERVICE, _PIPELINE = "app/service.py", "ci.toml"
_NOTES = "developer.json"
_INCIDENT = re.compile(r"^(incident_\w+), postmortem by day \d+: (.+)$", re.M)
_CAUSES = {  # words of a log
    "memory": "resident size",
    "disk": "no space",
    "certificate": "not valid",
    "port": "address already",
}
_DAY = re.compile(r"^Day (\d+), (\d+) steps left\.$", re.M)


class DeveloperNotes(msgspec.Struct, kw_only=True):
    """What the developer keeps from week to week.

    `functions` is source by feature, `written` that of files by path, `sections` how much of a
    changelog was read, `first` the values of rules before anything changed, `expected` the
    contract.
    """

    functions: dict[str, str] = {}
    written: dict[str, str] = {}
    released: list[str] = []
    pipeline: dict[str, str] = {}
    pins: dict[str, str] = {}
    forms: dict[str, dict[str, CallForm]] = {}
    sections: dict[str, int] = {}
    first: dict[str, dict[str, list[int]]] = {}
    expected: dict[str, dict[str, list[Any]]] = {}
    wrapped: bool = False
    green: bool = False


class ProjectDeveloper:
    """Plays the days of a project with real code."""

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._day, self._left, self._days = 0, 0, 0
        self._open: tuple[str, ...] = ()
        self._incidents: dict[str, str] = {}
        self._red = False
        self._libraries: tuple[str, ...] = ()
        self._bulletins: set[str] = set()
        self._steps: DayScript | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin a week from the notes of the last.

        Args:
            brief: Its goal names days and libraries.
            tools: Play no part.
            memory_dir: Holds the notes.
        """
        self._days = int(brief.goal["days"])
        self._libraries = tuple(brief.goal["libraries"])
        self._file = memory_dir / _NOTES
        kept = self._file.read_bytes() if self._file.exists() else b"{}"
        self._notes = msgspec.json.decode(kept, type=DeveloperNotes)
        self._steps = None

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Args:
            observation: Its text tells the day and the last result.
            info: Plays no part.
        Returns: JSON text.
        """
        text = observation["text"] if isinstance(observation, Mapping) else observation
        self._look(text)
        if self._steps is None:
            self._steps = self._work()
            return next(self._steps)
        return self._steps.send(text)

    def close(self) -> None:
        """Keep nothing beyond the notes."""

    def _look(self, text: str) -> None:
        day = _DAY.search(text)
        self._day, self._left = (int(day[1]), int(day[2])) if day else (self._days, 0)
        self._bulletins |= set(re.findall(r"^bulletin: (.*)$", text, re.M))

    def _work(self) -> DayScript:
        while self._day < self._days:
            yield from self._one_day()
            self._file.write_bytes(msgspec.json.encode(self._notes))
            yield _call("next_day")
        yield _call("finish", p=0.9 if self._notes.green else 0.1)
        return ""

    def _do(self, tool: str, **arguments: Any) -> DayScript:
        """Return the observation after a call, "" where no step is left."""
        if not self._left:
            return ""
        return (yield _call(tool, **arguments))

    def _one_day(self) -> DayScript:
        if not self._notes.pipeline:
            yield from self._first_look()
        self._heed()
        yield from self._build()
        if self._extent or self._day == self._days - 1:
            yield from self._integrate()
        if not self._red:
            yield from self._do("deploy")
        elif self._incidents:
            yield from self._do("rollback")
        if self._extent:
            yield from self._account()
        if (self._day + 1) % _WEEK == 0:
            yield from self._release()
        return ""

    def _first_look(self) -> DayScript:
        text = yield from self._do("read", path=_PIPELINE)
        notes = self._notes
        notes.pipeline = dict(re.findall(r'^(\w+) = "(.*)"$', text, re.M))
        text = yield from self._do("read", path=notes.pipeline["lock"])
        notes.pins = dict(re.findall(r"^(\w+)==(\S+)$", text, re.M))
        return ""

    def _heed(self) -> None:
        """Follow what bulletins tell of the pipeline."""
        if not self._extent:
            return
        told = " ".join(sorted(self._bulletins))
        lock = re.search(r"The pipeline installs (\S+) from today", told)
        if lock is not None:
            self._notes.pipeline["lock"] = lock[1]
        if "handle() must return {" in told:
            self._notes.wrapped = True

    def _build(self) -> DayScript:
        text = yield from self._do("issue_list")
        issues = feature_code.read_issues(text)
        self._incidents = dict(_INCIDENT.findall(text))
        self._open = tuple(issue.name for issue in issues)
        notes = self._notes
        for issue in issues:
            if issue.name in notes.functions:
                continue
            used = feature_code.libraries_in(issue.prose)
            for library in sorted(used - notes.forms.keys()):
                yield from self._study(library)
            if used <= notes.forms.keys():
                notes.functions[issue.name] = feature_code.function_code(issue, notes.forms)
        yield from self._commit()
        return ""

    def _study(self, library: str) -> DayScript:
        """Read a library's manual and changelog; follow what is new in it."""
        text = yield from self._do("package_search", library=library)
        version = re.search(rf"^{library} (\S+)$", text, re.M)
        if version is None:
            return ""
        notes = self._notes
        notes.pins[library] = version[1]
        sections = library_contract.changelog_sections(text)
        begun = library not in notes.forms
        forms = notes.forms.get(library) or library_contract.manual_forms(text)
        if begun or self._extent >= 2:
            for section in sections[notes.sections.get(library, 1) :]:
                forms = library_contract.told_forms(forms, section)
        self._adopt(library, forms)
        notes.sections[library] = len(sections)
        return text

    def _adopt(self, library: str, forms: CallForms) -> None:
        """Call a library in other forms wherever it is called."""
        notes = self._notes
        before = notes.forms.get(library, {})
        for name, code in notes.functions.items():
            notes.functions[name] = library_contract.rewritten(code, library, before, forms)
        notes.forms[library] = {**before, **forms}

    def _commit(self) -> DayScript:
        """Write what differs and commit it; its text is "" where nothing did."""
        notes, changed = self._notes, False
        for path, text in self._files().items():
            if notes.written.get(path) != text:
                done = yield from self._do("write", path=path, text=text)
                changed = changed or bool(done)
                notes.written[path] = text if done else ""
        if not changed:
            return ""
        notes.green = False
        return (yield from self._do("git_commit", message=f"Day {self._day}"))

    def _files(self) -> dict[str, str]:
        notes = self._notes
        used = tuple(sorted(notes.forms))
        files = {_SERVICE: feature_code.service_code(notes.functions, used, wrapped=notes.wrapped)}
        if self._extent:
            lines = [f"{name}=={number}\n" for name, number in notes.pins.items()]
            pairs = notes.pipeline.items()
            files[_PIPELINE] = "".join(f'{name} = "{word}"\n' for name, word in pairs)
            files[notes.pipeline["lock"]] = "".join(lines)
        if self._extent >= 3:
            files[library_contract.PATH] = library_contract.contract_test(
                self._libraries, notes.expected
            )
        return files

    def _integrate(self) -> DayScript:
        """Run integration and repair what it shows until it is green or not helped."""
        self._red = False
        for _ in range(_RUNS):
            text = yield from self._do("ci")
            self._notes.green = "green" in text.splitlines()[:1]
            self._red = text.startswith("red")
            if self._notes.green or not text or "No minutes" in text:
                break
            if "was lost" in text:
                continue
            yield from self._repair(text)
            if not (yield from self._commit()):
                break
            self._red = False
        return ""

    def _account(self) -> DayScript:
        """File the postmortem of an incident by the words of its log."""
        for name, log in self._incidents.items():
            cause = next((c for c, words in _CAUSES.items() if words in log), "port")
            about = {"incident": name, "cause": cause}
            yield from self._do("postmortem", **about, action="Deployed again.")
        return ""

    def _repair(self, text: str) -> DayScript:
        if not self._extent:
            return ""
        pipeline = self._notes.pipeline
        for name, pattern in (
            ("image", r"is not there; available: (\S+)"),
            ("lock", r"the pipeline installs (\S+); set lock"),
            ("index", r"does not serve; try '(\w+)'"),
            ("secret", r"is revoked; the index takes '([\w-]+)'"),
        ):
            told = re.search(pattern, text)
            if told is not None:
                pipeline[name] = told[1]
        missing = re.findall(r"No matching distribution found for (\w+)", text)
        conflict = re.search(r"Cannot install (.+) because", text)
        missing += re.findall(r"(\w+)==", conflict[1]) if conflict else []
        if missing:
            others = [name for name in self._libraries if name not in missing]
            room = self._left - 6
            for library in (*missing, *others[: max(room, 0)]):
                yield from self._study(library)
        self._learn(library_contract.found_in(text))
        return ""

    def _learn(self, found: library_contract.Measured) -> None:
        """Follow what the contract test found."""
        notes = self._notes
        for library, functions in found.items():
            values = {name: measured[1] for name, measured in functions.items()}
            first = notes.first.setdefault(library, values)
            notes.expected[library] = dict(functions)
            forms = library_contract.measured_forms(tuple(first), first, functions)
            if library in notes.forms:
                self._adopt(library, forms)

    def _release(self) -> DayScript:
        notes = self._notes
        new = [
            name
            for name in notes.functions
            if name not in notes.released and (notes.green or name not in self._open)
        ]
        done = yield from self._do("release", changelog=new)
        notes.released += new if done else []
        return ""


def _call(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})
