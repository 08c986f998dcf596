"""Speed of ProjForge: CPU time of a real project of thirty days, steps of the twin.

`python benchmarks/projforge.py` plays the oracle and prints seconds of CPU time of this
process, of git and of the sandbox with the load beside. What the job server says of its
own jobs when it is closed is added: nobody waits for it otherwise.
"""

import os
import resource
import time

from msgspec.structs import replace

from owa_bench.discovery import get
from owa_bench.records.instance import Instance
from owa_bench.run.assembly import drift_step, source
from owa_bench.sandbox import backends
from owa_bench.sandbox.long_lived import SandboxProcess
from owa_bench.shells.solution import solve

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
    plain = Instance(suite=suite, version=1, family="billing", tier=tier, seed=3)
    step = drift_step(suite, plain, delta)
    return source(suite)(replace(plain, drift_step=step))


def main():
    """Print both figures."""
    backends.SandboxProcess = CountedProcess
    for suite, tier, delta in (("projforge", 1, 0.0), ("projforge", 2, 1.0)):
        played = timeline(suite, tier, delta)
        begun = cpu()
        found = solve(get("suites", suite), played)
        used = cpu() - begun + sum(IN_SANDBOXES)
        IN_SANDBOXES.clear()
        line = f"{suite} tier {tier} delta {delta}: q {found.q_state:.2f}"
        print(f"{line}, {used:.1f} s CPU, {len(found.actions)} actions, load {load()}")
    played = timeline("projforge_fast", 2, 0.5)
    begun, steps = time.process_time(), 0
    while time.process_time() - begun < 3:
        steps += len(solve(get("suites", "projforge_fast"), played).actions)
    rate = steps / (time.process_time() - begun)
    print(f"projforge_fast: {rate:.0f} steps a second of CPU time, load {load()}")


def load():
    """Return the load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
