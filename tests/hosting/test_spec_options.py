"""Options written behind an agent's name."""

import pytest

from owa_bench.errors import AgentSpecError
from owa_bench.hosting.spec import load_agent


def test_the_spec_carries_options_and_an_arm_name():
    spec = "language-model:model=a,b/c:7b,seed=3,name=mine"
    agent = load_agent(spec)
    assert agent.options == {"model": "a,b/c:7b", "seed": "3"}
    assert (agent.name, agent.origin.target) == ("mine", "language-model")
    assert agent.spec == spec


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("language-model", "missing: model"),
        ("language-model:model=m,api_key=sk-1", "no option `api_key`"),
        ("language-model:model=http://u:pw@h/v1", "no user or password"),
        ("noop:colour=red", "takes no options"),
    ],
)
def test_a_bad_spec_is_refused_before_a_plan_is_written(spec, says):
    with pytest.raises(AgentSpecError, match=says) as failure:
        load_agent(spec)
    assert "sk-1" not in str(failure.value)
    assert "pw" not in str(failure.value).replace("password", "")


def test_a_client_is_named_and_nothing_else():
    agent = load_agent("client:my-agent.2")
    assert (agent.name, agent.origin.kind) == ("my-agent.2", "client")
    with pytest.raises(AgentSpecError, match="letters, digits"):
        load_agent("client:a b/c")
