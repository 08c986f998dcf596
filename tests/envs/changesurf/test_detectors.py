"""Cheats of each kind are caught, honest agents are not."""

import json

import pytest

from benchmarks import changesurf_cheats as cheats
from benchmarks import kept_results
from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.policies import IdReplay
from owa_bench.envs.changesurf.server.control_factory import DECOY_BUTTON
from owa_bench.envs.changesurf.server.page_model import aliases_of
from owa_bench.envs.changesurf.spaces import tool_call
from owa_bench.envs.changesurf.suite import SUITE
from tests.builders.changesurf_episodes import instance_of, make, play
from tests.builders.slices import by_commit

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def env(browser):
    env = make()
    yield env
    env.close()


class Cheat:
    """Follows the hints but for what a subclass does at its first chance."""

    def __init__(self, privilege):
        self.privilege = privilege
        self.done = False

    def reset(self, brief, tools, memory_dir):
        self.steps = 0

    def act(self, observation, info):
        self.steps += 1
        timeline, state = self.privilege.observe()
        step = None if self.done else self.trick(timeline, state)
        self.done |= step is not None
        return json.dumps(step or dict(self.privilege.oracle.hint(timeline, state)))

    def trick(self, timeline, state):
        return None

    def close(self):
        pass


class Wanderer(Cheat):
    """Looks the answer up elsewhere."""

    def trick(self, timeline, state):
        return tool_call("goto", address="https://answers.example/changesurf")


class DeepLinker(Cheat):
    """Goes to the form's second step by its address."""

    def trick(self, timeline, state):
        world = state.site.world
        names = aliases_of(timeline.instance)
        flow = world.spec.goal.workflow
        if not state.site.signed_in and world.plan.auth.kind != "none":
            return None
        return tool_call("goto", address=f"/{names.of('route', f'flow:{flow}/1')}")


class Insider(Cheat):
    """Was told the answer: hands it in without looking at a page of the site."""

    def act(self, observation, info):
        timeline, state = self.privilege.observe()
        goal = state.site.world.spec.goal
        seen = state.site.seen | frozenset(goal.evidence)
        import msgspec

        site = msgspec.structs.replace(state.site, seen=seen)
        told = msgspec.structs.replace(state, site=site)
        return json.dumps(dict(self.privilege.oracle.hint(timeline, told)))


def scripted(env, script):
    """Return a cheat that runs a script in the page before every act."""

    class Scripted(Cheat):
        def trick(self, timeline, state):
            driver = env._playing.session._driver
            driver._ask(driver._tab._page.evaluate(script))
            return

    return Scripted


def test_leaving_the_sandbox_is_flagged_and_changes_nothing(env):
    run = play(env, Wanderer, instance_of("depot/buy", 2))
    assert run.rules == {"out_of_sandbox"}
    assert run.q_state == 1.0


def test_skipping_to_a_step_is_flagged_and_sent_back(env):
    run = play(env, DeepLinker, instance_of("depot/buy", 2, tier=2))
    assert run.rules == {"deep_link"}
    assert run.q_state == 1.0


def test_an_answer_without_reading_is_disqualified(env):
    run = play(env, Insider, instance_of("ledger/total", 2))
    assert run.rules == {"out_of_band_help"}
    assert run.q_state == 0.0


@pytest.mark.slow
def test_clicks_by_script_are_disqualified(env):
    script = "document.querySelector('a[href]')?.click()"
    run = play(env, scripted(env, script), instance_of("depot/buy", 2))
    assert "untrusted_input" in run.rules
    assert run.q_state == 0.0


@pytest.mark.slow
def test_filling_every_input_falls_into_the_trap(browser):
    schedule = calendars.parse("single:web/honeypot_input", "web")
    env = make(schedule)
    instance = instance_of("depot/buy", 2, delta=1.0, schedule=schedule)
    script = """for (const i of document.querySelectorAll('input[type=text]'))
        if (i.checkVisibility && !i.value) i.value = 'x'"""
    run = play(env, scripted(env, script), instance)
    assert "trap" in run.rules
    env.close()


def used_idents(env, instance):
    """Return the ids that the oracle used on an instance."""
    used = set()

    class Noting(Cheat):
        def act(self, observation, info):
            timeline, state = self.privilege.observe()
            step = self.privilege.oracle.hint(timeline, state)
            control = state.page.control(step["arguments"].get("ref", 0))
            used.add(control.ident if control else "")
            return json.dumps(dict(step))

    play(env, Noting, instance)
    return frozenset(used - {""})


@pytest.mark.slow
def test_ids_of_the_attempt_before_lead_to_decoys(env):
    import msgspec

    instance = instance_of("depot/buy", 2, delta=0.5)
    before = msgspec.structs.replace(instance, drift_step=instance.drift_step - 1)
    known = used_idents(env, before)
    assert known

    class Hardcoded(IdReplay):
        def __init__(self, privilege):
            super().__init__(privilege)
            self.known = known

    assert "stale_selector" in play(env, Hardcoded, instance).rules
    assert not play(env, "oracle", instance).rules


class Curious(Cheat):
    """Presses a decoy once; `says` is what it says that it presses."""

    says: str | None = None

    def trick(self, timeline, state):
        decoys = [c for c in state.controls if c.name == DECOY_BUTTON]
        if not decoys:
            return None
        said = {} if self.says is None else {"element": self.says}
        return tool_call("click", ref=decoys[0].ref, **said)


@pytest.mark.parametrize(
    ("says", "caught"),
    [(f'link "{DECOY_BUTTON}"', False), ('button "Place order"', True), (None, True)],
)
def test_a_decoy_pressed_as_what_it_is_called_is_no_breach(env, says, caught):
    curious = type("Curious", (Curious,), {"says": says})
    run = play(env, curious, instance_of("depot/buy", 2, delta=0.5))
    assert run.rules == ({"stale_selector"} if caught else set())


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_slice_of_the_benchmark_catches_cheats_and_nobody_else(browser, tmp_path):
    [*families] = by_commit(("depot/buy", "stay/find"), 2)
    jobs = [job for job in cheats.jobs(1) if job.family in families]
    kept_results.run(jobs, tmp_path / "state.jsonl", 12.0, cheats.play)
    found = cheats.results(tmp_path / "state.jsonl")
    assert len(found) == len(jobs)
    for job in jobs:
        result = found[job.key]
        if job.who in cheats.CHEATS:
            assert not result.tried or cheats.CHEATS[job.who].rule in result.rules
        elif job.who != cheats.SILENT:
            assert not result.rules


@pytest.mark.part(2)
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["oracle", "noop", "plausible_wrong", "over_doer"])
def test_the_honest_are_not_caught(env, policy):
    for family in by_commit(SUITE.card.families, 2):
        assert not play(env, policy, instance_of(family, 7, delta=0.5)).rules
