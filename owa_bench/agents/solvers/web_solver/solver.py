"""Web solver: reaches one goal on one site and states how likely it is right."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.agents.solvers import pages
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.api_solver.task_state import DECLARE, HELPED, LOST, MOST_HINTS
from owa_bench.agents.solvers.pages import PageControl, is_open
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan, posterior
from owa_bench.agents.solvers.web_solver import matching, page_view
from owa_bench.agents.solvers.web_solver.browser import Browser
from owa_bench.agents.solvers.web_solver.element_search import ListReader, ListSearch
from owa_bench.agents.solvers.web_solver.matching import assign_arguments, is_optional
from owa_bench.agents.solvers.web_solver.page_view import ViewField, fields
from owa_bench.interfaces import Brief

PAGES = "click"  # the tool that only browser suites have
PRIOR = 0.97  # a goal that was reached without a doubt
GUESSED = 0.6  # odds left by each value whose field was told by its place alone
UNSURE = 0.3  # odds left by an amount whose label is not the question's
SURE_OF_REFUSAL = 0.9
_MOST_FORMS, _MOST_REFUSALS = 24, 8
_ANSWER = "answer result finding report"
_THANKS = re.compile(r"thank|received|recorded", re.IGNORECASE)
_PATTERN = re.compile(r"\b(?:YYYY|MM|DD)[-/.](?:YYYY|MM|DD)[-/.](?:YYYY|MM|DD)\b")
_DECLINES = "no not skip decline without"
_SUBJECT = re.compile(r"`([^`]+)`|\b([A-Z]+-\d+)\b")


class FormOutcome(NamedTuple):
    """The result of a form: accepted, or the text of the site's refusal."""

    accepted: bool
    refusal: str = ""


class WebSolver:
    """Works on one goal with the skills it is given.

    `doubts` are factors on the odds, one for each observation that makes the result less certain;
    `signs` names what went wrong.
    """

    def __init__(self, brief: Brief, config: SkillConfig = ALL_SKILLS) -> None:
        goal = brief.goal
        self._brief = brief
        self._config = config
        self._given = {str(k): str(v) for k, v in dict(goal["arguments"]).items()}
        self._words = brief.text.partition("\n")[0]
        self._pattern = ""
        self.browser = Browser(brief.text, goal.get("credentials", {}), config)
        self.lists = ListReader(self.browser, config)
        self.finder = ListSearch(self.browser, self.lists, config)
        self.doubts: list[float] = []
        self.taken = False

    @property
    def signs(self) -> frozenset[str]:
        """What went wrong, by name."""
        short = {"short"} if self.lists.short else set()
        return frozenset(self.browser.signs | self.finder.signs | short)

    def solve(self) -> ToolPlan[PlanCall]:
        """Do the work and return the call that ends the episode."""
        ended = yield from self.attempt()
        return (yield from self.conclude(ended))

    def attempt(self, *, again: bool = False) -> ToolPlan[FormOutcome]:
        """Go to the form and fill in its pages; return the result.

        `again`: the window is wherever the attempt before left it.
        """
        if again:
            yield from self.browser.do(PlanCall("goto", {"address": "/"}))
        if not self.browser.menu:
            yield from self.browser.enter()
        asks = "?" in self._words
        there = yield from (self._find_out() if asks else self._go())
        if not there:
            self.browser.signs.add("gone")
            return FormOutcome(accepted=False)
        if self._config.carries < 1.0:
            return FormOutcome(accepted=False)  # handicapped: nothing is sent
        ended = yield from self._forms()
        self.taken = ended.accepted
        return ended

    def conclude(self, ended: FormOutcome) -> ToolPlan[PlanCall]:
        """Ask when it did not work out; return the call that ends the episode."""
        if ended.accepted:
            return self._finish(posterior(PRIOR, self.doubts))
        if ended.refusal:
            return self._declare(SURE_OF_REFUSAL)
        helped = yield from self._helped()
        return helped or self._finish(LOST)

    # --- finding the place --------------------------------------------------------

    def _go(self) -> ToolPlan[bool]:
        """Come to the form that the goal is about."""
        subject = _SUBJECT.search(self._words)
        if subject is None:
            task = self._words.partition(". ")[0]  # values come after it
            return (yield from self._open_form(task, len(self._given)))
        title = subject[1] or subject[2]
        verb = self._words.partition(subject[0])[0]
        row = yield from self.finder.row(title, self._words)
        if row is None:
            return False
        return (yield from self._begin(row.items, title, verb))

    def _begin(self, items: tuple[PageControl, ...], title: str, verb: str) -> ToolPlan[bool]:
        """Press what may be done with a row, on its list or on its own page."""
        action = _action(items, title, verb)
        if action is None:
            link = next((i for i in items if i.name == title), None)
            yield from self.browser.press(link)
            action = _action(self.browser.body, title, verb)
        yield from self.browser.press(action)
        return action is not None

    def _open_form(self, words: str, wanted: int) -> ToolPlan[bool]:
        """Come to the entry of the menu that opens a form with so many of the goal."""
        for entry in self.finder.entries(words):
            yield from self.browser.open(entry)
            form = fields(self.browser.body)
            ready = [f for f in form if f.kind != "text" or f.required]
            fits = assign_arguments(ready, self._given, self._config)
            if ready and (len(fits) >= min(wanted, len(ready)) > 0):
                return True
            if not self._config.searches:
                break
        return False

    def _find_out(self) -> ToolPlan[bool]:
        """Find the amount that is asked for, then the form that takes it."""
        question = matching.parse_question(self._words)
        found = yield from self.finder.amount(question)
        if found is None:
            return False
        self.doubts += [UNSURE] * (not found.sure)
        self._given = {_ANSWER: f"EUR {matching.amount(found.cents):s}"}
        for entry in self.finder.entries(_ANSWER):
            yield from self.browser.open(entry)
            form = [f for f in fields(self.browser.body) if f.required]
            if len(form) == 1 and form[0].kind == "text":
                return True
            if not self._config.searches:
                break
        return False

    # --- forms --------------------------------------------------------------------

    def _forms(self) -> ToolPlan[FormOutcome]:
        """Fill in page after page until the site thanks, or refuses for good."""
        refusals, waited = 0, False
        left, tried = dict(self._given), dict[str, set[str]]()
        for _ in range(_MOST_FORMS):
            here = self.browser.page.url
            placed = yield from self._fill(left, tried)
            body = self.browser.body
            buttons = [i for i in body if i.role == "button" and is_open(i)]
            if not buttons:
                return FormOutcome(accepted=self._is_thanked())
            if not waited:
                yield from self.browser.pause()
            yield from self.browser.press(_onward(buttons))
            page = self.browser.page
            if not page.notices:
                waited = False
                if page.url != here:  # else a sign-in led back to the same page
                    _use(placed, left, tried)
                if self._is_thanked():
                    self.doubts += [GUESSED] * len(set(left) - set(tried))
                    return FormOutcome(accepted=True)
                continue
            refusals += 1
            waited = yield from self.browser.too_fast()
            if waited:
                continue
            if refusals > _MOST_REFUSALS or not self._mends(refusals):
                return self._refused()
        return FormOutcome(accepted=False)

    def _fill(
        self, left: Mapping[str, str], tried: Mapping[str, set[str]]
    ) -> ToolPlan[dict[str, ViewField]]:
        """Put what is left of the goal into the fields of the page; say what where."""
        form = fields(self.browser.body)
        self._learn_pattern()
        places = assign_arguments(form, left, self._config, tried)
        if any(f.required and i not in places for i, f in enumerate(form)):
            self.browser.signs.add("renamed")
        for place, name in places.items():
            yield from self.browser.fill(form[place], left[name], self._pattern)
        return {name: form[place] for place, name in places.items()}

    def _learn_pattern(self) -> None:
        """Take over the form of dates that a hint or a refusal names."""
        found = _PATTERN.search("\n".join(self.browser.page.lines))
        if found is not None and self._config.repages:
            self._pattern = found[0]

    def _mends(self, refusals: int) -> bool:
        """Return whether a refusal tells of something that another try may mend."""
        if not self._is_faulty:
            return False
        self.browser.signs.add("bad request")
        return self._config.repages and refusals <= 2

    @property
    def _is_faulty(self) -> bool:
        """Whether the site finds something wrong with a field of the page."""
        return any("invalid" in item.states for item in self.browser.body)

    def _refused(self) -> FormOutcome:
        """Return the refusal of a form whose fields the site finds nothing wrong with.

        Only a rule of the site is evidence that the goal cannot be reached.
        """
        passing = self.browser.is_too_soon or self.browser.wants_sign_in
        found = " ".join(self.browser.page.notices)
        mendable = self._is_faulty or passing
        return FormOutcome(accepted=False, refusal="" if mendable else found)

    def _is_thanked(self) -> bool:
        found = [x for x in self.browser.page.lines if not x.startswith("[")]
        return any(map(_THANKS.search, found))

    # --- ending -------------------------------------------------------------------

    def _helped(self) -> ToolPlan[PlanCall | None]:
        """Do as the supervisor says to the end, as far as there is help."""
        desk = HttpSession(self._brief.interventions_left)
        for _ in range(MOST_HINTS):
            hint = yield from desk.ask("What is the next right step?")
            if hint is None:
                return None
            if hint.tool == "finish":
                return self._finish(HELPED)
            if hint.tool == DECLARE:
                return self._declare(HELPED)
            yield from self.browser.do(hint)
        return None

    def _finish(self, p: float) -> PlanCall:
        return PlanCall("finish", {"answer": "done", "p": p, "beliefs": self._beliefs()})

    def _declare(self, p: float) -> PlanCall:
        return PlanCall(DECLARE, {"p": p, "beliefs": self._beliefs()})

    def _beliefs(self) -> dict[str, float]:
        return {
            name: _belief(text, self.browser, self.finder.units)
            for name, text in self._brief.propositions.items()
        }


def _use(placed: Mapping[str, ViewField], left: dict[str, str], tried: dict[str, set[str]]) -> None:
    """Take what a page took out of what is left.

    What went into a field that may stay empty is kept at hand: it may be the wrong one.
    """
    for name, field in placed.items():
        if is_optional(field):
            tried.setdefault(name, set()).add(field.label)
        else:
            left.pop(name)
            tried.pop(name, None)


def _action(items: tuple[PageControl, ...], title: str, verb: str) -> PageControl | None:
    """Return the control that does what a verb says with the row of this title."""
    names = {
        item.name.removesuffix(f": {title}"): item
        for item in items
        if item.role == "link" and item.name.endswith(f": {title}")
    }
    order = pages.nearest(verb, names)
    return names[order[0]] if order else None


def _onward(buttons: list[PageControl]) -> PageControl:
    """Return the button that leads on: of two, the one that declines an offer."""
    if len(buttons) == 1:
        return buttons[0]
    order = pages.nearest(_DECLINES, (b.name for b in buttons))
    return next(b for b in buttons if b.name == order[0])


UNSEEN, LIKELY, UNLIKELY = 0.5, 0.95, 0.05
RARE = 0.3  # amounts in cents, boxes ticked beforehand: seldom, where nothing was seen
_FACT = re.compile(r"says of `(.+?)`: `(.+?)` is (.+?)\.$")
_FORM = re.compile(r"comes with `(.+?)` already ticked")


def _belief(text: str, browser: Browser, units: Mapping[str, bool]) -> float:
    """Return the probability of a proposition, by the pages visited so far."""
    fact, form = _FACT.search(text), _FORM.search(text)
    if fact is not None:
        return _fact(browser, fact[1], fact[3])
    if form is not None:
        return _ticked(browser, form[1])
    if "cents" in text and units:
        return LIKELY if any(units.values()) else UNLIKELY
    return RARE


def _fact(browser: Browser, title: str, value: str) -> float:
    """Return whether a row that was seen holds a value in any of its cells."""
    for page in browser.seen:
        cells = [r.cells for r in page_view.rows(page, browser.boilerplate) if r.title == title]
        if page.heading == title:
            cells.append(page_view.facts(page))
        if cells:
            return LIKELY if value in cells[0].values() else UNLIKELY
    return UNSEEN


def _ticked(browser: Browser, label: str) -> float:
    """Return whether a box of that name was ticked when its page came."""
    for page in browser.seen:
        for field in fields(page.items):
            if field.kind == "check" and pages.alike(field.label, label) > UNSEEN:
                return LIKELY if "checked" in field.items[0].states else UNLIKELY
    return RARE
