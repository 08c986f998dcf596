"""Run whose agent is a client outside: the loop in a thread, the results at its end."""

import threading
from dataclasses import replace
from pathlib import Path

from owa_bench.bridges.client_calls import ALL_PLAYED, ClientCalls
from owa_bench.records.layout import RunLayout
from owa_bench.run.plan.request import Progress, Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.play.batch import RunSummary
from owa_bench.run.play.loop import RunStopped

POLL_S = 0.1
_STOPPED = "The run has stopped before every episode was played."


class ClientRun(threading.Thread):
    """The thread in which the loop plays what clients call.

    Results are told when every episode has been played: before, a client could try an
    answer in one episode and correct it in the next.
    """

    def __init__(
        self,
        calls: ClientCalls,
        request: Request | None,
        out: Path,
        options: RunOptions,
    ) -> None:
        super().__init__(name="owa-bench-play", daemon=True)
        self._calls = calls
        self._request = request
        self._out = out
        self._options = replace(options, client=calls.transport, progress=self._take)
        self._error: BaseException | None = None
        self.done: list[Progress] = []

    def run(self) -> None:
        """Play to the end of the run, or until the client has left."""
        last = _STOPPED
        try:
            if self._request is None:
                batch.resume(self._out, self._options)
            else:
                batch.play(self._request, self._out, self._options)
            last = self._results()
        except RunStopped:
            return
        except BaseException as error:  # noqa: BLE001  raised again where it is seen
            self._error = error
        finally:
            self._calls.close(last)

    def opened(self) -> bool:
        """Return whether there is an episode to serve; waits until that is known."""
        while not self._calls.wait_open(POLL_S):
            if not self.is_alive():
                return False
        return bool(self._calls.tools)

    def summary(self) -> RunSummary:
        """Return what the run directory holds; raises what playing raised."""
        if self._error is not None:
            raise self._error
        return batch.summary(RunLayout(self._out))

    def _take(self, progress: Progress) -> None:
        """Keep an episode that was played to its end."""
        if progress.leaf.status == "complete":
            self.done.append(progress)

    def _results(self) -> str:
        """Return how the episodes of this process ended, once all are played."""
        if not self.done or self.done[-1].done < self.done[-1].total:
            return _STOPPED
        lines = [
            f"{one.entry.family}: {one.end.outcome}, "
            f"{'success' if one.end.success else 'no success'}, "
            f"q_state {one.end.q_state:.3f} ({one.end.reason})"
            for one in self.done
        ]
        return "\n".join([ALL_PLAYED, *lines])
