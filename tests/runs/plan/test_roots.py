"""Plans say whose root a sandbox has, by what their suites and entries declare."""

import pytest

from owa_bench import discovery
from owa_bench.errors import UsageError
from owa_bench.hosting import isolation as hosting
from owa_bench.hosting.isolation import require_root, root_of
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.sandbox import root_image

FAULT = "no memory"


@pytest.fixture(params=["", FAULT])
def fault(request, monkeypatch):
    monkeypatch.setattr(root_image, "private_root_fault", lambda: request.param)
    monkeypatch.setattr(hosting, "hosting_fault", lambda *_: "")
    return request.param


@pytest.fixture
def agent(tmp_path):
    """An agent in a file: somebody else's code."""
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    return tmp_path


def roots(suite, family, folder, agent="mine.py"):
    draw = Draw(name=suite, tiers=(1,), families=(family,))
    request = Request(agents=(agent,), draws=(draw,))
    return {arm.root for arm in draft_plan(request, folder).plan.arms}


@pytest.mark.parametrize(
    ("suite", "family", "apart"),
    [
        ("recall", "counterfactual", True),  # sittings
        ("multicrew", "contract", True),  # seats
        ("toolquest", "reconcile", False),
    ],
)
def test_a_plan_says_what_its_suites_need(suite, family, apart, fault, agent):
    expected = f"shared: {fault}" if fault else "private"
    assert roots(suite, family, agent) == {expected if apart else ""}
    own = roots(suite, family, agent, "noop")
    assert own == {"package" if apart else ""}


def test_an_agent_of_another_package_is_not_this_packages(monkeypatch, agent, fault):
    """The attack: a plug-in under any name; the control: the same card as ours."""
    entry = discovery.find("agents")["noop"]
    other = entry._replace(package="evil")
    find = discovery.find
    monkeypatch.setattr(
        discovery, "find", lambda kind: find(kind) | ({"noop": other} if kind == "agents" else {})
    )
    expected = f"shared: {fault}" if fault else "private"
    assert roots("recall", "counterfactual", agent, "noop") == {expected}
    crew = "seats:lead=mine.py;*=fifo"
    assert roots("multicrew", "contract", agent, crew) == {expected}


def test_containers_share_and_what_is_in_no_sandbox_says_nothing(fault):
    assert root_of("docker").startswith("shared: ")
    for name in ("unsandboxed", "in-process", "remote", "client", "harness"):
        assert root_of(name) == ""


def test_a_private_root_that_cannot_be_had_is_refused(fault):
    if fault:
        with pytest.raises(UsageError, match=FAULT):
            require_root("private")
    else:
        require_root("private")
    require_root("shared: anything")
    require_root("")
