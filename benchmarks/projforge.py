"""Speed of ProjForge: CPU time of a real project of thirty days, steps of the twin.

`python benchmarks/projforge.py` plays the oracle and prints seconds of CPU time of this
process, of git and of the sandbox with the load beside. What the job server says of its
own jobs when it is closed is added: nobody waits for it otherwise.
"""

import os
import resource
import statistics
import time

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


def main():
    """Print the figures."""
    backends.SandboxProcess = CountedProcess
    for suite, tier, delta in (("projforge", 1, 0.0), ("projforge", 2, 1.0)):
        played = timeline(suite, tier, delta)
        begun = cpu()
        found = solve(get("suites", suite), played)
        used = cpu() - begun + sum(IN_SANDBOXES)
        IN_SANDBOXES.clear()
        line = f"{suite} tier {tier} delta {delta}: q {found.q_state:.2f}"
        print(f"{line}, {used:.1f} s CPU, {len(found.actions)} actions, load {load()}")
    ci_runs()
    for tier in (1, 2, 4):
        played = timeline("projforge_fast", tier, 0.5)
        rate, loop = fast_rate(played), reference_s()
        line = f"projforge_fast tier {tier}: {rate:.0f} steps a second of CPU time"
        print(f"{line}, {rate * loop:.0f} in the time of the reference, load {load()}")


def reference_s():
    """Return seconds of CPU time of a million additions in plain Python."""
    begun, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - begun


def fast_rate(played):
    """Return steps a second of the fast twin, episode after episode.

    The answer key's actions are played again: an agent's own time is no part of it.
    """
    suite = get("suites", "projforge_fast")
    actions = solve(suite, played).actions
    parser = CallParser(tools_of(graph_session.TOOLS))
    begun, steps = time.process_time(), 0
    while time.process_time() - begun < 2:
        episode = Episode(suite, played, sink=NullSink(), terms=EpisodeTerms(), parser=parser)
        episode.begin()
        for action in actions:
            episode.step(action)
        steps += len(actions)
    return steps / (time.process_time() - begun)


def ci_runs(count=20):
    """Print the time of warm runs of integration on day 15 of a project of tier 2."""
    (plain, _), (more, walls) = (_with_runs(number) for number in (1, 1 + count))
    wall = statistics.median(walls[1:]) * 1000
    each = (more - plain) / count * 1000
    line = f"a run of integration: {each:.0f} ms of CPU time, mean of {count}"
    print(f"{line}; {wall:.0f} ms of wall time, median; load {load()}")


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


def load():
    """Return the load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
