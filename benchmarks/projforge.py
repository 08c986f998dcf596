"""Speed of ProjForge in CPU time: a real project of thirty days, steps of the twin.

The oracle plays; seconds are of this process, of git and of the sandbox. What the job server
says of its own jobs when it is closed is added: nobody waits for it otherwise. The twin's
peer is a loop of plain Python: "x loop" are its steps in the time of a million additions.
`--small` plays the twin alone.
"""

import resource
import statistics
import time
from functools import partial

import speed
from msgspec.structs import replace

from owa_bench.discovery import get
from owa_bench.drift.timeline import drift_step, source
from owa_bench.envs.projforge import graph_session
from owa_bench.records.instance import Instance
from owa_bench.sandbox import backends
from owa_bench.sandbox.long_lived import SandboxProcess
from owa_bench.shells.calls import CallParser, call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve
from owa_bench.shells.standard_tools import tools_of

IN_SANDBOXES = []


class CountedProcess(SandboxProcess):
    """A long-lived job whose CPU time is kept when it is closed."""

    def close(self):
        first = self._result is None
        result = super().close()
        if first:
            IN_SANDBOXES.append(result.cpu_s)
        return result


def cpu():
    """Return seconds of CPU time of this process and of ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(each) for each in who]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timeline(suite, tier, delta):
    """Return an instance's timeline at a magnitude."""
    plain = Instance(suite=suite, version=2, family="billing", tier=tier, seed=3)
    step = drift_step(suite, plain, delta)
    return source(suite)(replace(plain, drift_step=step))


def tables(given):
    """Yield whole projects, a run of integration and the twin."""
    backends.SandboxProcess = CountedProcess
    if not given.small:
        yield speed.Table("ProjForge, a project of the oracle", projects())
        yield speed.Table("ProjForge, a run of integration", [ci_runs()])
    rows = []
    for tier in (1,) if given.small else (1, 2, 4):
        played = timeline("projforge_fast", tier, 0.5)
        rate = partial(fast_rate, played, 0.2 if given.small else 2.0)
        found = speed.in_turns({"rate": rate, "loop": reference_s}, 1 if given.small else 3)
        products = [a * b for a, b in zip(found["rate"], found["loop"], strict=True)]
        figures = {"steps/s": max(found["rate"]), "x loop": statistics.median(products)}
        aims = () if given.small else [speed.Aim("steps/s", ">=", 20_000)]
        rows.append(speed.Row(f"tier {tier}", figures, aims))
    yield speed.Table("`projforge_fast`", rows)


def projects():
    """Return rows of projects that the oracle plays."""
    rows = []
    for suite, tier, delta in (("projforge", 1, 0.0), ("projforge", 2, 1.0)):
        played = timeline(suite, tier, delta)
        begun = cpu()
        found = solve(get("suites", suite), played)
        used = cpu() - begun + sum(IN_SANDBOXES)
        IN_SANDBOXES.clear()
        if found.q_state != 1.0:
            raise SystemExit(f"the oracle of {suite} reached {found.q_state}")
        figures = {"CPU s": used, "actions": len(found.actions)}
        aims = [speed.Aim("CPU s", "<=", 6.0)] if tier == 2 else []
        rows.append(speed.Row(f"tier {tier}, delta {delta:g}", figures, aims))
    return rows


def reference_s():
    """Return seconds of CPU time of a million additions in plain Python."""
    begun, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - begun


def fast_rate(played, seconds):
    """Return steps a second of the fast twin, episode after episode.

    The answer key's actions are played again: an agent's own time is no part of it.
    """
    suite = get("suites", "projforge_fast")
    actions = solve(suite, played).actions
    parser = CallParser(tools_of(graph_session.TOOLS))
    begun, steps = time.process_time(), 0
    while time.process_time() - begun < seconds:
        episode = Episode(suite, played, sink=NullSink(), terms=EpisodeTerms(), parser=parser)
        episode.begin()
        for action in actions:
            episode.step(action)
        steps += len(actions)
    return steps / (time.process_time() - begun)


def ci_runs(count=20):
    """Return the time of warm runs of integration on day 15 of a project of tier 2."""
    (plain, _), (more, walls) = (_with_runs(number) for number in (1, 1 + count))
    wall = statistics.median(walls[1:]) * 1000
    each = (more - plain) / count * 1000
    figures = {"CPU ms": each, "wall ms": wall}
    return speed.Row(f"mean and median of {count}", figures, [speed.Aim("wall ms", "<=", 110)])


def _with_runs(count):
    """Return seconds of CPU time of fifteen days and so many runs, and each's wall."""
    suite, played = get("suites", "projforge"), timeline("projforge", 2, 0.0)
    begun, walls = cpu(), []
    env = suite.env(lambda _: played).unwrapped
    env.reset(options={"instance": played.instance})
    access = env.oracle_access()
    while access.observe()[1].day < 15:
        hint = suite.oracle.hint(*access.observe())
        env.step(call_text(hint["tool"], hint["arguments"]))
    session = env.episode.session
    for _ in range(count):
        start = time.perf_counter()
        session.call("ci", {}, now_ms=0, step=1)
        walls.append(time.perf_counter() - start)
        session.state = replace(session.state, minutes=0, spent=0)
    env.close()
    used = cpu() - begun + sum(IN_SANDBOXES)
    IN_SANDBOXES.clear()
    return used, walls


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
