"""Options on the command line, and the key beside them."""

import pytest

from owa_bench.agents.language_model import options
from owa_bench.errors import AgentRaised

PLAIN = {"model": "m", "base_url": "http://x/v1"}


def test_defaults_and_none():
    given = options.read(PLAIN)
    assert (given.temperature, given.seed, given.context) == (0.0, -1, 32_768)
    bare = options.read({**PLAIN, "temperature": "none", "seed": "none"})
    assert (bare.temperature, bare.seed) == (None, None)
    assert options.read({**PLAIN, "seed": "7", "offline": "true"}).seed == 7


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", "hot"), ("context", "12"), ("retries", "-1")]
)
def test_a_bad_value_names_its_option(name, value):
    with pytest.raises(AgentRaised, match=rf"\$\.{name}"):
        options.read({**PLAIN, name: value})


def test_every_option_is_listed():
    assert set(options.KNOWN) == set(options.Options.__struct_fields__)


def test_the_key_comes_from_the_named_variable(monkeypatch):
    given = options.read({**PLAIN, "key_env": "OWA_TEST_KEY"})
    monkeypatch.setenv("OWA_TEST_KEY", "abc")
    assert options.key_of(given) == "abc"
    monkeypatch.delenv("OWA_TEST_KEY")
    with pytest.raises(AgentRaised, match=r"OWA_TEST_KEY.*is not set; export it"):
        options.key_of(given)
    assert options.key_of(options.read(PLAIN)) == ""
