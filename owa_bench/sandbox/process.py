"""The plain backend: a child process with limits, for code that is trusted.

It bounds time, memory, processes and output and passes on no environment, but the job
sees the machine's files and network. For code nobody has read use bubblewrap.
"""

from owa_bench.sandbox.job import LIMITS_ONLY, Job, Result
from owa_bench.sandbox.supervision import run_limited

PATH = "/usr/local/bin:/usr/bin:/bin"


class ProcessSandbox:
    """Runs jobs as children of this process; binds mean nothing here."""

    name = "subprocess"
    guarantees = LIMITS_ONLY

    def run(self, job: Job) -> Result:
        """Run `job` in its work directory and return how it ended."""
        return run_limited(
            job.argv,
            limits=job.limits,
            env={"PATH": PATH, **job.env},
            cwd=job.work,
            stdin=job.stdin,
        )
