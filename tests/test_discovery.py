"""Discovery: what other packages bring must load, or be named."""

from importlib.metadata import EntryPoint

import pytest

from owa_bench import discovery
from owa_bench.errors import UnknownNameError, UsageError


@pytest.fixture
def entry(monkeypatch):
    """Return a function that adds one third-party agent."""

    def add(value):
        point = EntryPoint("stranger", value, "owa_bench.agents")
        monkeypatch.setattr(discovery, "entry_points", lambda group: [point])

    discovery.find.cache_clear()
    yield add
    discovery.find.cache_clear()


@pytest.mark.parametrize("value", ["no_such_module:AGENT", "owa_bench:NO_SUCH_NAME"])
def test_a_broken_plug_in_is_named_with_its_package(entry, value):
    entry(value)
    with pytest.raises(UsageError, match="plug-in `stranger` of the package"):
        discovery.find("agents")


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `oracle`"):
        discovery.get("agents", "oracel")
