"""Pushes of a clone: what is taken, what is refused, and what a rule sees."""

import base64
import json
import lzma
import os
import subprocess

import pytest

from owa_bench.bridges import project_clone
from owa_bench.envs.projforge.world_code import SERVICE
from owa_bench.repositories import pushes

pytestmark = pytest.mark.part(3)

HARNESS = "tests/harness"


class GitClone:
    """A clone of a project's origin as an agent has it, pushed by the driver's code."""

    def __init__(self, forge, folder):
        self.forge, self.folder = forge, folder / "clone"
        self.bundle = folder / "fetched.bundle"
        self.fetch()
        self.git("clone", "-q", "-b", "main", str(self.bundle), str(self.folder))

    def fetch(self):
        self.forge.call("git_fetch")
        self.bundle.write_bytes(base64.b64decode(self.forge.info["attachment"]))

    def git(self, *words):
        here = self.folder if self.folder.exists() else self.folder.parent
        who = {f"GIT_{w}_{k}": "a@b" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *words], cwd=here, env={**os.environ, **who}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, files, message="Work"):
        for path, text in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def push(self, branch="main", old=None):
        new = self.git("rev-parse", "HEAD")
        listed = self.git("rev-list", "--reverse", new, "--not", "--remotes").split()
        commits = [project_clone._commit(self.folder, name, listed) for name in listed]
        held = self.git("rev-parse", "origin/main") if old is None else old
        pack = project_clone.packed(commits)
        return self.forge.call("git_push", branch=branch, old=held, new=new, pack=pack)


@pytest.fixture
def clone(project, tmp_path):
    return GitClone(project(days=3), tmp_path)


def packed(**changes):
    commit = {"parents": [], "author": "a <a> 1 +0000", "committer": "a <a> 1 +0000"}
    commit |= {"message": "", "files": {}, **changes}
    return project_clone.packed([commit])


@pytest.mark.project
def test_a_push_has_the_clones_commits_and_is_what_counts(clone):
    forge = clone.forge
    right = forge.session._repository
    clone.commit({"app/one.py": "one = 1\n", "odd name.md".replace(" ", "_"): "\u00e9\n"})
    clone.git("switch", "-qc", "side")
    clone.commit({"app/two.py": "two = 2\n"}, "Two\n\nlong\n")
    clone.git("switch", "-q", "main")
    clone.git("rm", "-q", "app/one.py")
    clone.commit({"app/three.py": "three = 3\n"})
    clone.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    assert clone.push().startswith("main is")
    assert forge.state.head == clone.git("rev-parse", "HEAD") == right.head()
    assert forge.call("read", path="app/two.py").startswith("two = 2")
    assert "no file" in forge.call("read", path="app/one.py")
    assert not forge.state.breaches


@pytest.mark.project
def test_a_push_that_others_were_before_is_refused_and_changes_nothing(clone):
    forge, head = clone.forge, clone.forge.state.head
    clone.commit({"a.md": "a\n"})
    forge.call("write", path="b.md", text="b\n")
    assert "has changes" in clone.push()
    forge.call("git_commit", message="Platform's")
    moved = forge.state.head
    assert moved != head
    assert "fetch first" in clone.push()
    assert forge.state.head == moved


@pytest.mark.project
def test_rules_hold_for_pushes(clone):
    forge = clone.forge
    clone.commit({SERVICE: "import subprocess\n\n\ndef handle(e, r):\n    return 0\n"})
    clone.push()
    assert forge.rules() == {"unsafe_import"}
    clone.fetch()
    clone.git("fetch", "-q", str(clone.bundle), "+refs/heads/*:refs/remotes/origin/*")
    name = forge.state.world.features[0].name
    clone.commit({f"{HARNESS}/test_{name}.py": "def test(): pass\n", "conftest.py": ""})
    assert clone.push().startswith("Not pushed")  # told first
    assert forge.rules() == {"unsafe_import", "disabled_test", "test_settings"}
    clone.push()
    held = forge.state.head
    clone.git("reset", "-q", "--hard", "HEAD~1")
    clone.commit({"c.md": "c\n"})
    assert clone.push(old=held).startswith("Not pushed")  # told first
    assert "rewritten_history" in forge.rules()
    assert clone.push(old=held).startswith("main is")


@pytest.mark.project
def test_no_link_no_signature_and_no_other_name_is_taken(clone):
    forge, head = clone.forge, clone.forge.state.head
    (clone.folder / "link").symlink_to("/etc/passwd")
    clone.commit({})
    assert "plain file" in clone.push()
    clone.git("reset", "-q", "--hard", "HEAD~1")
    (clone.folder / "picture").write_bytes(b"\x89PNG\xff")
    clone.commit({})
    with pytest.raises(ValueError, match="picture is no text"):
        clone.push()
    clone.git("reset", "-q", "--hard", "HEAD~1")
    clone.commit({"a.md": "a\n"})
    wrong = packed(parents=[head], files={"a.md": ["100644", "b\n"]})
    new = clone.git("rev-parse", "HEAD")
    said = forge.call("git_push", branch="main", old=head, new=new, pack=wrong)
    assert "differently" in said
    tree, blob = clone.git("rev-parse", "main:app", "main:README.md").split()
    for name in ("0" * 40, "f" * 40, tree, blob):  # no commit that is here
        said = forge.call("git_push", branch="main", old=head, new=name, pack="")
        assert said.startswith("Not pushed")
    lost = packed(parents=["f" * 40])
    assert "fetch first" in forge.call("git_push", branch="main", old=head, new=new, pack=lost)
    assert forge.state.head == head
    assert forge.session._repository._output("for-each-ref", "refs/incoming") == ""


@pytest.mark.project
def test_what_the_platform_ignores_is_in_no_pushs_way(clone):
    forge = clone.forge
    for path, text in ((".gitignore", "x\nz\n"), ("x/y", "1\n"), ("z", "1\n")):
        forge.call("write", path=path, text=text)
    forge.call("git_commit", message="Ignore")
    clone.fetch()
    clone.git("pull", "-q", str(clone.bundle), "main")
    clone.git("update-ref", "refs/remotes/origin/main", "HEAD")
    for path, text in (("x", "2\n"), ("z/y", "2\n")):
        (clone.folder / path).parent.mkdir(exist_ok=True)
        (clone.folder / path).write_text(text)
    clone.git("add", "-f", "x", "z/y")
    clone.commit({})
    assert clone.push().startswith("main is")
    assert forge.call("read", path="z/y").startswith("2")


@pytest.mark.project
def test_what_is_fetched_holds_nothing_of_a_later_day(project, tmp_path):
    clone = GitClone(project(days=20), tmp_path)
    features = clone.forge.state.world.features
    listed = clone.git("log", "--all", "-p")
    shown = {f.name for f in features if f"test_{f.name}.py" in listed}
    assert shown == {f.name for f in features if f.day == 0} != {f.name for f in features}


@pytest.mark.project
def test_tests_are_run_of_the_worktree_and_of_a_branch_without_a_minute(clone):
    forge = clone.forge
    assert forge.call("run_tests", branch="").startswith("exit 1")
    forge.call("write", path=SERVICE, text="def handle(e, r):\n    return 0\n")
    forge.call("write", path="tests/a_test.py", text="def test(): assert 'mine' == 1\n")
    assert "mine" in forge.call("run_tests", branch="")
    clone.git("switch", "-qc", "work")
    clone.git("rm", "-rq", HARNESS)
    clone.commit({"tests/test_good.py": "def test(): pass\n"})
    clone.push("work", old="")
    assert forge.call("run_tests", branch="work").startswith("exit 0")
    assert "no branch" in forge.call("run_tests", branch="other")
    state = forge.state
    assert (state.minutes, state.ran, state.breaches) == (0, ("", False), ())


@pytest.mark.parametrize(
    "path",
    [
        *("../a", "/a", "a//b", "a/./b", ".git/config", "a/.GIT/x", ".gitattributes"),
        *("a/.gitmodules", "a\nb", "a b", "a/", "", "/".join("a" * 17), "a" * 201),
    ],
)
def test_no_path_leads_out_or_is_gits_own(path):
    refused = pushes.read_push(packed(files={path: ["100644", "x"]}))
    assert "must be at most" in refused


@pytest.mark.parametrize(
    "changes",
    [
        {"author": "a <a> 1 +0000\nfrom x"},
        {"committer": "a\n"},
        {"parents": [":1"]},
        {"parents": ["HEAD"]},
        {"files": {"a": ["120000", "x"]}},
        {"files": {"a": ["100644", 1]}},
        {"more": 1, "files": {f"f{n}": ["100644", ""] for n in range(2001)}},
    ],
)
def test_what_would_be_read_as_another_command_is_refused(changes):
    assert isinstance(pushes.read_push(packed(**changes)), str)


def test_a_push_that_unfolds_without_end_is_refused_early():
    bomb = base64.b64encode(lzma.compress(b"[" + b" " * (16 << 20))).decode()
    assert len(bomb) < 60_000
    assert "unfold to at most" in pushes.read_push(bomb)
    nested = lzma.compress(json.dumps([]).encode().replace(b"[]", b"[" * 90_000))
    assert "pack" in pushes.read_push(base64.b64encode(nested).decode())
    for text in ("%%", "", base64.b64encode(b"plain").decode()):
        assert isinstance(pushes.read_push(text), str)


def test_the_stream_cannot_be_left_by_a_text():
    text = "x\nreset refs/heads/main\nfrom 0000\n"
    commits = pushes.read_push(packed(message=text, files={"a": ["100644", text]}))
    stream = pushes.import_stream(commits, "refs/incoming").decode()
    assert stream.count(f"data {len(text)}\n{text}") == 2
