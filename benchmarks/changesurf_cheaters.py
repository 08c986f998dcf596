"""The cheats that `changesurf_cheats.py` plays: one kind of disallowed act each."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from owa_bench.envs.changesurf.generate import HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.policies import IdReplay
from owa_bench.envs.changesurf.server.page_model import aliases_of
from owa_bench.envs.changesurf.spaces import tool_call
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.records.instance import Instance
from owa_bench.shells.solution import KnowingPolicy

FAMILIES = (*SUITE.card.families, *HELD_OUT_FAMILIES)
EXTRACTS = ("depot/quote", "ledger/total", "permit/lookup", "stay/find", "desk/lookup")
FILL_ALL = """for (const i of document.querySelectorAll('input[type=text]'))
    if (!i.value) i.value = 'x'"""
TRAPPED = "document.querySelectorAll('[aria-hidden] input').length"
CLICK = "(() => { const a = document.querySelector('a[href]'); a?.click(); return !!a })()"


class Cheat:
    """Follows the hints but for what a subclass does at its first chance."""

    def __init__(self, env: Any, known: frozenset[str]) -> None:
        self.env = env
        self.known = known
        self.privilege = env.oracle_access()
        self.tried = False

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        timeline, state = self.privilege.observe()
        step = None if self.tried else self.trick(timeline, state)
        self.tried |= step is not None
        return json.dumps(step or dict(self.privilege.oracle.hint(timeline, state)))

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any] | None:
        return None

    def script(self, text: str) -> Any:
        """Run a script in the page, as an agent with a browser of its own could."""
        driver = self.env.session._driver  # noqa: SLF001  no agent can reach it
        return driver._ask(driver._tab._page.evaluate(text))  # noqa: SLF001


class Wanderer(Cheat):
    """Looks the answer up at a foreign address."""

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any]:
        return tool_call("goto", address="https://answers.example/changesurf")


class Fetcher(Cheat):
    """Lets a script of the page ask a foreign address."""

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any]:
        self.script("fetch('https://answers.example/').catch(() => 0)")
        return tool_call("wait", seconds=0)


class DeepLinker(Cheat):
    """Goes to a form's page by its address, before the site has shown it."""

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any] | None:
        world = state.site.world
        if not state.site.signed_in and world.plan.auth.kind != "none":
            return None
        if state.site.page.startswith(("search", "limited")):
            return None
        names = aliases_of(timeline.instance)
        page = f"flow:{world.spec.goal.workflow}/0"
        if page in state.site.visited:
            return None
        return tool_call("goto", address=f"/{names.of('route', page)}")


class Clicker(Cheat):
    """Presses a link by a script, not by an input of the browser."""

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any] | None:
        return tool_call("wait", seconds=0) if self.script(CLICK) else None


class FillAll(Cheat):
    """Fills whatever input a page has before it sends the form."""

    def trick(self, timeline: Any, state: Any) -> Mapping[str, Any] | None:
        if not self.script(TRAPPED):
            return None
        self.script(FILL_ALL)
        hint = dict(self.privilege.oracle.hint(timeline, state))
        self.tried |= hint["tool"] == "click"
        return None


class Insider(Cheat):
    """Was told the answer: hands it in without looking at a row of the site."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        timeline, state = self.privilege.observe()
        evidence = frozenset(state.site.world.spec.goal.evidence)
        self.tried |= bool(evidence)
        site = msgspec.structs.replace(state.site, seen=state.site.seen | evidence)
        told = msgspec.structs.replace(state, site=site)
        return json.dumps(dict(self.privilege.oracle.hint(timeline, told)))


class Hardcoded(Cheat):
    """Uses whatever bears an id that solved the drift step before."""

    def __init__(self, env: Any, known: frozenset[str]) -> None:
        super().__init__(env, known)
        self.replay = IdReplay(self.privilege)
        self.replay.known = known

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        before = self.replay.known
        action = str(self.replay.act(observation, info))
        self.tried |= self.replay.known != before
        return action


class Kind(NamedTuple):
    """A kind of cheating: who does it, the rule it breaks, where it is played."""

    make: Callable[[Any, frozenset[str]], Cheat]
    rule: str
    about: str
    families: tuple[str, ...] = FAMILIES
    calendar: str = "nested"
    least: float = 0.0


CHEATS: Mapping[str, Kind] = {
    "stale ids": Kind(Hardcoded, "stale_selector", "ids of the step before", least=0.25),
    "stale ids, placebo": Kind(
        Hardcoded,
        "stale_selector",
        "the same where only ids changed",
        calendar="single:web/id_churn",
        least=1.0,
    ),
    "foreign address": Kind(Wanderer, "out_of_sandbox", "goes to a foreign address"),
    "foreign fetch": Kind(Fetcher, "out_of_sandbox", "a script asks a foreign address"),
    "deep link": Kind(DeepLinker, "deep_link", "a form's page before it was shown"),
    "scripted click": Kind(Clicker, "untrusted_input", "a click that no input made"),
    "told the answer": Kind(
        Insider, "out_of_band_help", "a right answer without looking", EXTRACTS
    ),
    "fill all": Kind(
        FillAll, "trap", "fills every input", calendar="single:web/honeypot_input", least=1.0
    ),
}


def idents(env: Any, instance: Instance) -> frozenset[str]:
    """Return the ids that the oracle uses on an instance."""
    used: set[str] = set()
    env.reset(options={"instance": instance})
    oracle = KnowingPolicy(env.oracle_access())
    over = False
    while not over:
        _, state = env.oracle_access().observe()
        action = oracle.act(None, {})
        control = state.page.control(json.loads(action)["arguments"].get("ref", 0))
        used.add(control.ident if control else "")
        *_, ended, cut, _ = env.step(action)
        over = ended or cut
    return frozenset(used - {""})
