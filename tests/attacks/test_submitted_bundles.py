"""Attacks through a submitted bundle: something else than its own agent is played."""

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from owa_bench import discovery
from owa_bench.hosting import bundles, spec
from owa_bench.interfaces import AgentCard
from owa_bench.runs.store import keys
from tests.builders.sandboxes import needs_namespaces

pytestmark = pytest.mark.part(3)

AGENT = """
class Quiet:
    def reset(self, brief, tools, memory_dir):
        pass

    def act(self, observation, info):
        return '{"tool": "finish", "arguments": {"p": 0.1}}'

    def close(self):
        pass
"""
BATTERY = """
name = "short"
underpowered = true

[[suite]]
name = "toolquest"
families = ["restock"]
tiers = [1]
interventions = [0, "protocol"]
"""
ELSEWHERE = (
    "oracle",
    " oracle ",
    "oracle:name=our-model-7b",
    "policy:oracle",
    "policy: oracle",
    "seats:*=policy:oracle",
    "seats:lead=fifo;*=fifo",
    "owa_bench.agents.floors:AGENTS",
    "owa_bench.agents.agentic:AGENT",
    "json:JSONDecoder",
    "fixed",
    "chat:model=m,base_url=http://127.0.0.1:1",
    "http://127.0.0.1:9/act",
    "https://example.com/act",
    "client:our-model",
    "person:our-model",
    "scripted-person:our-model",
    "reader:our-model",
    "sha256:" + "0" * 64,
    "bundle:" + "0" * 64,
    "owa-bench serve",
    "python -m owa_bench.bridges.mcp",
    "sh -c 'exit 0'",
    "../outside.py",
    "sb3:../outside.zip",
    "python ../outside.py",
    "python quiet.py ../outside.py",
    "python quiet.py /etc/hosts",
    "../outside.sh quiet.py",
)


def packed(path, files):
    """Write a tar of text files."""
    with tarfile.open(path, "w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def submit(place, owa, agent, files=(), name=""):
    """Evaluate a bundle whose manifest names an agent."""
    manifest = f"agent = {json.dumps(agent)}\n" + (f'name = "{name}"\n' if name else "")
    packed(place / "a.tar", {"agent.toml": manifest, "quiet.py": AGENT, **dict(files)})
    (place / "short.toml").write_text(BATTERY)
    return owa("evaluate a.tar --battery short.toml --out run")


def bundles_of(home):
    """Return the folders of unpacked bundles."""
    return list(home.with_name(f"{home.name}-bundles").glob("*"))


@pytest.fixture
def outside(place):
    """Files of the evaluator beside the folder into which bundles are unpacked."""
    folder = keys.data_folder().with_name(f"{keys.data_folder().name}-bundles")
    folder.mkdir(parents=True)
    for suffix in ("py", "zip", "sh"):
        (folder / f"outside.{suffix}").write_text(AGENT)
        (folder / f"outside.{suffix}").chmod(0o755)
    return folder


@pytest.mark.parametrize("agent", ELSEWHERE)
def test_a_bundle_that_names_something_else_is_refused_and_leaves_nothing(
    place, owa, outside, agent
):
    said = submit(place, owa, agent, name="our-model-7b")
    assert said.code == 2
    assert "agent.toml: agent" in said.err
    assert "bundle" in said.err
    assert not (place / "run").exists()
    assert not [one for one in outside.iterdir() if one.is_dir()]
    assert not keys.data_folder().exists()


def old_rule(monkeypatch):
    """Play whatever the manifest names, as it was once done."""
    monkeypatch.setattr(bundles, "_misfit", lambda agent, folder: "")

    def resolved(text, place):
        bundle = bundles.read_bundle(place, text)
        handle = spec.load_agent(bundle.manifest.agent, folder=place)
        return replace(handle, spec=text, name="our-model-7b")

    monkeypatch.setattr(spec, "_bundled", resolved)


def arms(place):
    return json.loads((place / "run/plan.json").read_text())["arms"]


@needs_namespaces
def test_the_oracle_of_the_suite_is_played_by_the_old_rule_alone(place, owa, monkeypatch):
    """The control: under the old rule the harness plays, and the page calls it V5."""
    assert submit(place, owa, "policy:oracle").code == 2
    with monkeypatch.context() as patch:
        old_rule(patch)
        said = submit(place, owa, "policy:oracle")
        assert said.code == 0, said.err
    (arm,) = arms(place)
    assert (arm["name"], arm["hosting"]) == ("our-model-7b", "harness")


@needs_namespaces
def test_a_plug_in_of_the_same_name_is_not_played(place, owa, monkeypatch):
    """The attack: a plug-in that the evaluator has registers what a bundle names."""
    played = place / "played"

    def make(**options):
        played.write_text("the plug-in")
        raise AssertionError

    card = AgentCard(name="quiet.py", about="a plug-in", make=make)
    entry = discovery.PluginEntry("quiet.py", card, "evil")
    agents = {**discovery.find("agents"), "quiet.py": entry}
    kinds = discovery.find
    monkeypatch.setattr(discovery, "find", lambda kind: agents if kind == "agents" else kinds(kind))
    assert spec.load_agent("quiet.py", folder=place).origin.kind == "registry"
    said = submit(place, owa, "quiet.py", name="ours")
    assert said.code == 0, said.err
    assert not played.exists()
    (arm,) = arms(place)
    (folder,) = bundles_of(keys.data_folder())
    assert arm["name"] == f"ours-{folder.name[:12]}"
    assert arm["agent"] == f"bundle:{folder.name}"
    assert arm["hosting"] == "sandboxed"


@needs_namespaces
def test_an_entry_point_in_a_bundle_registers_nothing(place, owa):
    """The attack: metadata of a package that registers agents, suites and axes."""
    canary = place / "imported"
    evil = f"from pathlib import Path\nPath({str(canary)!r}).write_text('')\n" + AGENT
    points = "\n".join(f"[owa_bench.{kind}]\nquiet = evil:Quiet" for kind in discovery.KINDS)
    files = {
        "evil.py": evil,
        "evil-1.0.dist-info/METADATA": "Name: evil\nVersion: 1.0\n",
        "evil-1.0.dist-info/entry_points.txt": points,
    }
    assert submit(place, owa, "quiet", files).code == 2
    assert submit(place, owa, "quiet.py", files).code == 0
    assert not canary.exists()
    assert "quiet" not in discovery.find("agents")


@pytest.mark.parametrize("name", ["json", "owa_bench", "numpy", "sys"])
def test_a_module_under_the_name_of_an_installed_one_is_refused(place, owa, name):
    """The next attack: the file that is checked is not the module that is imported."""
    said = submit(place, owa, f"{name}:Quiet", {f"{name}.py": AGENT})
    assert said.code == 2
    assert "the name of an installed package" in said.err


@needs_namespaces
@pytest.mark.parametrize("agent", ["quiet:Quiet", "policy:oracle", "client:mine", "python play.py"])
def test_what_lies_in_the_bundle_is_played_whatever_it_is_called(place, owa, agent):
    loop = (
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        '    act = \'{"tool": "finish", "arguments": {"p": 0.1}}\'\n'
        "    print(json.dumps({'action': act}), flush=True)\n"
    )
    own = AGENT.replace("Quiet", "oracle")
    files = {"policy.py": own, "client.py": AGENT.replace("Quiet", "mine")}
    said = submit(place, owa, agent, {**files, "play.py": loop})
    assert said.code == 0, said.err
    (arm,) = arms(place)
    assert arm["hosting"] == "sandboxed"
    assert arm["name"].startswith("bundle-")


def test_a_bundle_is_played_by_evaluate_alone(place, owa):
    """The next attack: `run` in a folder with a manifest."""
    (place / "agent.toml").write_text('agent = "policy:oracle"')
    said = owa(f"run --suite toolquest --agent bundle:{'0' * 64} --out run")
    assert said.code == 2
    assert "owa-bench evaluate" in said.err
    assert not Path(place / "run").exists()


@pytest.mark.parametrize("agent", ["client:me", "person:me", "reader:me"])
def test_a_run_that_is_refused_leaves_no_signed_plan(place, owa, agent):
    (place / "short.toml").write_text(BATTERY)
    said = owa(f"run --battery short.toml --agent {agent} --out run")
    assert said.code == 2
    assert not (place / "run").exists()
