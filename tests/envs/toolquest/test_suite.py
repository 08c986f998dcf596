from pathlib import Path

from owa_bench.discovery import get
from owa_bench.envs.toolquest import families
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.tool_calls import TOOLS
from owa_bench.shells.schemas import compile_schema


def test_the_registry_finds_the_suite():
    assert get("suites", "toolquest") is SUITE


def test_the_card_agrees_with_the_parts():
    card = SUITE.card
    folder = Path(families.__file__).parent
    assert set(card.families) == {path.stem for path in folder.glob("[a-z]*.py")}
    assert card.families == tuple(sorted(card.families))
    assert card.tiers == (1, 2, 3, 4)
    assert {rule.name for rule in card.rules} == {
        detector.rule.name for detector in SUITE.detectors
    }
    assert {"noop", "random", "oracle"} <= set(SUITE.policies)
    assert len(set(card.macros)) == len(card.macros)


def test_tool_schemas_compile():
    for tool in TOOLS:
        check = compile_schema(tool.parameters)
        assert check({"surely_not_a_field": 1}, "arguments") is not None
