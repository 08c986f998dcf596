"""`owa-bench doctor`."""

import ast
import importlib.metadata
import json
import tomllib
from pathlib import Path

import owa_bench
from owa_bench.cli.listing import EXTRA_USES
from tests.builders.chat_server import MODEL, Habits, listening

KEY = "sk-a-key-that-nobody-sees"


def test_what_is_there_and_what_is_not(owa):
    said = owa("doctor")
    assert said.code == 0
    assert "[rl]" in said.out
    parts = {part["name"]: part for part in json.loads(owa("doctor --json").out)}
    assert parts["owa_bench"]["present"]
    missing = [p for p in parts.values() if not p["present"]]
    fixes = ("install", "Allow")
    assert all(any(fix in part["detail"] for fix in fixes) for part in missing)


def _extras() -> dict[str, list[str]]:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    return project["project"]["optional-dependencies"]


def test_every_extra_has_a_use():
    assert EXTRA_USES.keys() == _extras().keys()


def test_every_hint_names_an_extra_that_exists():
    named, by_hand = set(), []
    for path in Path(owa_bench.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="extra"), args=[ast.Constant(value=name)]):
                    named.add(name)
                case ast.Constant(value=str(text)) if "pip install 'owa_bench[" in text:
                    by_hand.append(path.name)
    assert by_hand == ["errors.py"]
    assert len(named) > 8
    assert named <= _extras().keys()


def test_a_missing_package_is_named_with_its_extra_and_use(owa, monkeypatch):
    monkeypatch.setattr(
        importlib.metadata,
        "requires",
        lambda _: ["nobody-has-this>=1; extra == 'rl'", "owa_bench[rl]; extra == 'all'", "numpy"],
    )
    lines = [line for line in owa("doctor").out.splitlines() if "[" in line]
    assert [line.split()[:2] for line in lines if line.split()[1].startswith("[")] == [
        ["--", "[rl]"]
    ]
    (line,) = [line for line in lines if "[rl] " in line]
    assert "for `owa-bench train`; lacks nobody-has-this; pip install 'owa_bench[rl]'" in line


def test_a_data_folder_that_cannot_be_written_is_a_lack(owa, monkeypatch):
    monkeypatch.setenv("OWA_BENCH_HOME", "/dev/null/x")
    said = owa("doctor")
    assert said.code == 3
    assert "FAIL data folder" in said.out


def test_a_server_is_asked_and_the_command_stands_last(owa, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # not for loopback
    monkeypatch.setenv("MY_KEY", f"{KEY}\n")
    habits = Habits(key=KEY, told=8192)
    with listening(habits) as url:
        ask = f"doctor --model-url {url}/chat/completions --model {MODEL}"
        said = owa(f"{ask} --model-key-env MY_KEY --seconds 60")
        record = json.loads(owa(f"{ask} --model-key-env MY_KEY --json").out)
        refused = owa(ask)
    assert said.code == 0
    last = said.out.strip().splitlines()[-1]
    assert last.startswith("owa-bench run --suite toolquest --tier 1 --out runs/first")
    assert f"--model-url {url} " in last
    assert "--model-key-env MY_KEY" in last
    assert f"model={MODEL},context=8192" in last
    assert record["command"] == last
    assert record["context_told"] == 8192
    assert refused.code == 1
    assert "--model-key-env names" in refused.out
    assert KEY not in f"{said}{record}{refused}"


def test_a_server_without_calls_exits_1_and_gives_no_command(owa):
    with listening(Habits(tools="text", required="ignored")) as url:
        said = owa(f"doctor --model-url {url} --model {MODEL}")
    assert said.code == 1
    assert "llama.cpp: --jinja" in said.out
    assert "owa-bench run" not in said.out


def test_what_is_left_out_is_named(owa):
    for arguments, words in (
        (f"--model {MODEL}", "--model-url is missing"),
        ("--model-url http://127.0.0.1:9/v1", "--model is missing"),
        (f"--model-url x --model {MODEL}", "must begin with http://"),
        (
            f"--model-url http://h/v1 --model {MODEL} --model-key-env {KEY}",
            "must name a variable that is set and not empty",
        ),
        (
            f"--model-url http://h/v1 --model {MODEL} --model-header api-key",
            "must read HEADER=VARIABLE",
        ),
    ):
        said = owa(f"doctor {arguments}")
        assert said.code == 2
        assert words in said.err
        assert KEY not in said.err
