"""The backends by name."""

from collections.abc import Callable, Mapping

from owa_bench.errors import UnknownNameError
from owa_bench.sandbox.bubblewrap import BubblewrapSandbox
from owa_bench.sandbox.job import Sandbox
from owa_bench.sandbox.process import ProcessSandbox

BACKENDS: Mapping[str, Callable[[], Sandbox]] = {
    ProcessSandbox.name: ProcessSandbox,
    BubblewrapSandbox.name: BubblewrapSandbox,
}


def get(name: str) -> Sandbox:
    """Return the backend `name`; MissingPartError when the machine lacks it."""
    if name not in BACKENDS:
        raise UnknownNameError("sandbox", name, BACKENDS)
    return BACKENDS[name]()
