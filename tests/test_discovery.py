"""Discovery: what other packages bring must load, or be named."""

import dataclasses
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from owa_bench import discovery
from owa_bench.errors import UnknownNameError, UsageError


@pytest.fixture
def entry(monkeypatch):
    """Return a function that adds one third-party plug-in."""

    def add(value, kind="agents"):
        point = EntryPoint("stranger", value, f"owa_bench.{kind}")
        monkeypatch.setattr(discovery, "entry_points", lambda group: [point])

    discovery.find.cache_clear()
    yield add
    discovery.find.cache_clear()


BROKEN = {
    "syntax_fault": "def f(:",
    "name_fault": "AGENT = no_such_name",
    "type_fault": "from owa_bench.interfaces import AgentCard\nAGENT = AgentCard()",
}


@pytest.mark.parametrize("module", BROKEN)
def test_a_plug_in_that_raises_is_named_with_file_and_line(entry, module, tmp_path, monkeypatch):
    (tmp_path / f"{module}.py").write_text(BROKEN[module])
    monkeypatch.syspath_prepend(tmp_path)
    entry(f"{module}:AGENT")
    with pytest.raises(UsageError, match=r"plug-in `stranger`.* \(\w+\.py[:,]"):
        discovery.find("agents")


def test_a_field_that_breaks_its_rule_is_shown_with_the_plug_ins_own_line(
    entry, tmp_path, monkeypatch
):
    """The rule stands in a file of ours, and what is to be mended in the plug-in."""
    text = (
        "from owa_bench.interfaces import AgentCard\n\n"
        'AGENT = AgentCard(name="x", about="", make=None, needs="x")\n'
    )
    (tmp_path / "field_fault.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    entry("field_fault:AGENT")
    with pytest.raises(UsageError, match="FieldError: ") as failure:
        discovery.find("agents")
    line = r"\(field_fault\.py:3, raised in \w+\.py:\d+\)"
    assert re.search(line, str(failure.value))


def test_a_plug_in_whose_entry_point_has_another_name_is_named(entry):
    entry("owa_bench.agents.agentic:AGENT")
    with pytest.raises(UsageError, match="calls itself `agentic`"):
        discovery.find("agents")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("suites", "is no Suite, got AgentCard: subclass `owa_bench.Suite`"),
        ("operators", "is no Operator, got AgentCard: decorate its function"),
    ],
)
def test_a_plug_in_without_the_base_class_of_its_kind_is_named(entry, kind, message):
    entry("owa_bench.agents.agentic:AGENT", kind)
    with pytest.raises(UsageError, match=message):
        discovery.find(kind)


@pytest.mark.parametrize("value", ["no_such_module:AGENT", "owa_bench:NO_SUCH_NAME"])
def test_a_broken_plug_in_is_named_with_its_package(entry, value):
    entry(value)
    with pytest.raises(UsageError, match="plug-in `stranger` of the package"):
        discovery.find("agents")


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `oracle`"):
        discovery.get("agents", "oracel")


def test_of_many_names_the_nearest_are_listed_and_the_command_that_lists_all():
    with pytest.raises(UnknownNameError) as failure:
        discovery.get("operators", "api/pager_swop")
    words = str(failure.value)
    assert "Did you mean `api/pager_swap`? Nearest of " in words
    assert "`owa-bench list operators` lists them all." in words
    assert len(words) < 300


IMPORTED = """
import sys
from owa_bench import discovery
plugin = discovery.get({kind!r}, {name!r})
if {whole}:
    assert plugin is discovery.find({kind!r})[{name!r}].plugin
print(*sys.modules)
"""


def _imported(kind, name, *, whole=False):
    code = IMPORTED.format(kind=kind, name=name, whole=whole)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("kind", "name", "own", "others"),
    [
        ("agents", "agentic", "owa_bench.agents.agentic", {"owa_bench.agents.floors", "httpx"}),
        ("agents", "fixed", "owa_bench.agents.script_replays", {"httpx", "gymnasium"}),
        ("suites", "toolquest", "owa_bench.envs.toolquest", {"owa_bench.envs.changesurf"}),
        ("suites", "projforge_fast", "owa_bench.envs.projforge", {"owa_bench.envs.changesurf"}),
    ],
)
def test_a_plug_in_is_got_without_those_that_weigh_more(kind, name, own, others):
    """A process of an agent, or of one suite, pays for no other."""
    alone = _imported(kind, name)
    assert own in alone
    assert not alone & others
    assert others <= _imported(kind, name, whole=True)


def test_what_another_package_brings_is_got_after_ours(entry, monkeypatch):
    card = discovery.get("agents", "agentic")
    stranger = dataclasses.replace(card, name="stranger")
    monkeypatch.setitem(sys.modules, "strange_module", SimpleNamespace(AGENT=stranger))
    entry("strange_module:AGENT")
    assert discovery.get("agents", "stranger") is stranger
    assert discovery.get("agents", "agentic") is card


# --- cards of suites ------------------------------------------------------------------


def test_the_written_cards_are_those_of_the_suites():
    """`make golden` writes them anew; who changes a suite and forgets it is told here."""
    suites = discovery.find("suites")
    assert {name: entry.card for name, entry in discovery.cards().items()} == {
        name: entry.plugin.card for name, entry in suites.items()
    }


def test_cards_are_read_without_a_suite():
    code = "import sys; from owa_bench import discovery; discovery.cards(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert not modules & {"gymnasium", "starlette", "owa_bench.envs.toolquest.generate"}


def test_a_suite_without_written_cards_is_imported(monkeypatch):
    monkeypatch.setattr(discovery, "CARDS_FILE", "no_such_file.json")
    discovery.cards.cache_clear()
    try:
        assert discovery.cards().keys() == discovery.find("suites").keys()
    finally:
        discovery.cards.cache_clear()


def test_the_card_of_another_package_names_it(entry):
    discovery.cards.cache_clear()
    entry("owa_bench.envs.toolquest.suite:SUITE", "suites")
    try:
        with pytest.raises(UsageError, match="calls itself `toolquest`"):
            discovery.cards()
    finally:
        discovery.cards.cache_clear()
