"""What an `--agent` value may be, and what is said of one that is nothing."""

import shlex
import sys
from pathlib import Path

import pytest

from owa_bench import discovery
from owa_bench.errors import AgentSpecError, UnknownNameError
from owa_bench.hosting import isolation as hosting
from owa_bench.hosting import spec
from owa_bench.hosting.spec import load_agent

HERE = Path(__file__).parents[1] / "builders"


def load(text):
    return load_agent(text, folder=HERE)


def test_registered():
    agent = load("fixed")
    assert (agent.name, agent.origin.kind, agent.needs) == ("fixed", "registry", "script")


def test_a_folder_agent_is_all_its_files_and_the_solvers():
    card = discovery.get("agents", "language-model")
    folder, solvers = spec._sources_of(card)
    assert (folder.name, solvers.name) == ("language_model", "solvers")
    assert len(list(spec._files(folder))) > 1


def test_privileged_card_is_played_by_the_suites_policy():
    assert load("oracle").origin == spec.Origin(kind="policy", target="oracle")
    assert load("policy:over_doer").origin.target == "over_doer"


def test_object_in_a_module_of_the_folder(tmp_path):
    (tmp_path / "never_imported.py").write_text("raise SystemExit\n")
    agent = load_agent("never_imported:Quiet", folder=tmp_path)
    assert (agent.name, agent.origin.kind) == ("Quiet", "object")
    assert "never_imported" not in sys.modules


def test_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def act(observation, info):\n    return '{}'\n")
    before = load_agent("mine.py", folder=tmp_path)
    assert (before.name, before.origin.kind) == ("mine", "file")
    path.write_text("def act(observation, info):\n    return '{} '\n")
    after = load_agent("mine.py", folder=tmp_path)
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('AGENT = AgentCard(name="ada", about="x", make=None)', "ada"),
        ('AGENT: AgentCard = AgentCard(about="x", name="ada-2.b", make=None)', "ada-2.b"),
        ('AGENT = AgentCard(name="a name", about="x", make=None)', "mine"),
        ("AGENT = AgentCard(name=NAME, about='x', make=None)", "mine"),
        ("AGENT = (", "mine"),
        ("(" * 10_000, "mine"),
    ],
)
def test_a_file_is_called_as_its_card_says_and_never_run_for_it(line, name, tmp_path):
    (tmp_path / "mine.py").write_text(f"raise SystemExit\n{line}\n")
    assert load_agent("mine.py", folder=tmp_path).name == name
    assert load_agent("own=mine.py", folder=tmp_path).name == "own"


def test_an_image_is_called_as_its_repository():
    digest = "ab" * 32
    assert load(f"sha256:{digest}").name == f"image-{digest[:12]}"
    assert load(f"host:5000/team/solver:v2@sha256:{digest}").name == f"solver-{digest[:12]}"


def test_fingerprint_does_not_know_the_folder(tmp_path):
    prints = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text("class Mine:\n    act = None\n")
        prints.add(load_agent("mine.py", folder=tmp_path / name).fingerprint)
    assert len(prints) == 1


def test_command():
    agent = load(f"{sys.executable} command_agent.py --fast")
    assert agent.origin.kind == "command"
    assert agent.origin.folders == (str(HERE),)


def test_address():
    agent = load("http://localhost:8000/play")
    assert (agent.name, agent.origin.kind) == ("localhost-8000", "http")


def test_unknown_name_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `agentic`"):
        load("agentik")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no_such_module:Agent", "no module `no_such_module`"),
        ("gone.py", "no such file"),
        ("no-such-program --flag", "no program or file `no-such-program`"),
        ("python 'unclosed", "quoted"),
        ("", "no such file"),
        ("http://me:secret@host/", "no user or password"),
    ],
)
def test_nothing_playable(text, words):
    with pytest.raises(AgentSpecError, match=words):
        load(text)


def test_a_password_is_not_repeated():
    with pytest.raises(AgentSpecError) as caught:
        load("http://me:secret@host/")
    assert "secret" not in str(caught.value)


def test_unknown_policy():
    with pytest.raises(UnknownNameError, match="control policy"):
        load("policy:nobody")


def test_a_command_in_a_clone_is_driven_and_its_program_seen(tmp_path):
    program = tmp_path / "tools" / "bin" / "coder"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = load_agent(f"clone:{program} --quick", folder=tmp_path / "work")
    assert (found.name, found.suites) == ("coder", ("projforge",))
    words = shlex.split(found.origin.target)
    assert words[0] == sys.executable
    assert words[1].endswith("bridges/project_clone.py")
    assert words[2:] == [str(program), "--quick"]
    memory = str(tmp_path / "memory")
    view = hosting.agent_view(found.origin, "bubblewrap", memory, ())
    assert str(tmp_path / "tools") in {inside for _, inside in view.read_only}
    assert view.writable == ((memory, hosting.MEMORY),)
    before = found.fingerprint
    program.write_text("#!/bin/sh\nexit 1\n")
    assert load_agent(found.spec, folder=tmp_path / "work").fingerprint != before


def test_a_file_takes_no_options(tmp_path):
    (tmp_path / "mine.py").write_text("def act(observation, info): ...\n")
    with pytest.raises(AgentSpecError, match="Only a registered agent takes options"):
        load_agent("mine.py:seed=3", folder=tmp_path)


@pytest.mark.parametrize(
    "spec", ["agentic", "mine.py", "./agent --seed=3", "http://127.0.0.1:9/x?a=b"]
)
def test_a_name_before_a_spec_is_the_arms_and_no_part_of_the_agent(spec, tmp_path):
    (tmp_path / "mine.py").write_text("class Mine: ...")
    (tmp_path / "agent").write_text("#!/bin/sh")
    (tmp_path / "agent").chmod(0o755)
    own, named = (load_agent(text, folder=tmp_path) for text in (spec, f"our-model={spec}"))
    assert named.name == "our-model"
    assert named.name != own.name
    assert (named.spec, named.fingerprint, named.origin) == (own.spec, own.fingerprint, own.origin)


def test_an_option_or_a_flag_with_a_sign_of_equality_is_no_name(tmp_path):
    (tmp_path / "agent").write_text("#!/bin/sh")
    (tmp_path / "agent").chmod(0o755)
    assert load_agent("./agent --seed=3", folder=tmp_path).spec == "./agent --seed=3"
    with pytest.raises(UnknownNameError, match="agentik"):
        load_agent("mine=agentik", folder=tmp_path)
