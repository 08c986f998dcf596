"""One browser for all tests of a process, and the rule for machines without one."""

import pytest

from owa_bench.envs.changesurf.browser.host import Lease
from owa_bench.errors import MissingPartError


@pytest.fixture(scope="session")
def browser():
    """Hold the process' browser, so that it is started once."""
    try:
        lease = Lease()
    except MissingPartError as missing:
        pytest.fail(str(missing))
    yield lease.host
    lease.give_back()
