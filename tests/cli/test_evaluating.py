"""Evaluation: a submitted bundle under the evaluator's seeds; hostile tars; V5."""

import io
import json
import tarfile

import pytest

from owa_bench.errors import CheckFailure, FieldError
from owa_bench.hosting.bundles import unpack
from owa_bench.runs.store import keys
from tests.builders.sandboxes import needs_namespaces

AGENT = b"""
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


def bundle(path, files, *odd):
    """Write a tar of files, and of odd members."""
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in odd:
            archive.addfile(member)
    return path


def member(name, kind, link=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    "odd",
    [
        member("out", tarfile.SYMTYPE, "/etc/passwd"),
        member("hard", tarfile.LNKTYPE, "/etc/passwd"),
        member("null", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
        member("../outside", tarfile.REGTYPE),
        member("/tmp/outside", tarfile.REGTYPE),
    ],
    ids=lambda odd: odd.name,
)
def test_a_bundle_that_leaves_its_folder_is_refused(tmp_path, odd):
    packed = bundle(tmp_path / "a.tar", {"agent.toml": b'agent = "a.py"'}, odd)
    with pytest.raises(CheckFailure, match="A bundle must"):
        unpack(packed, tmp_path / "home")
    assert not (tmp_path / "outside").exists()


def test_a_bundle_of_terabytes_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("owa_bench.hosting.bundles.MOST_BYTES", 1000)
    packed = bundle(tmp_path / "a.tar", {"agent.toml": b"", "big": b"0" * 2000})
    with pytest.raises(CheckFailure, match="at most"):
        unpack(packed, tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [({"a.py": AGENT}, "must hold agent.toml"), ({"agent.toml": b"x = 1"}, "is not a field")],
)
def test_a_bundle_without_a_manifest_is_named(tmp_path, files, words):
    with pytest.raises(FieldError, match=words):
        unpack(bundle(tmp_path / "a.tar", files), tmp_path / "home")


def test_what_is_no_tar_is_named(tmp_path, owa, place):
    (place / "a.tar").write_bytes(b"nothing of the kind")
    said = owa("evaluate a.tar --out run")
    assert said.code == 1
    assert "a.tar is no bundle" in said.err
    assert owa("evaluate absent.tar --out run").code == 2
    assert owa("evaluate a.tar --out run --sandbox none").code == 2


@needs_namespaces
def test_an_evaluators_run_is_v5_for_who_trusts_the_evaluator(owa, place):
    bundle(place / "a.tar", {"agent.toml": b'agent = "quiet.py"', "quiet.py": AGENT})
    (place / "short.toml").write_text(BATTERY)
    said = owa("evaluate a.tar --battery short.toml --out run --json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["missing"] == 0
    assert [list(row["outcomes"]) for row in told["played"]] == [["finished"]]
    assert "bundle" in json.loads((place / "run/plan.json").read_text())["verifier_nonce"]
    key = keys.public_hex(keys.load(keys.data_folder()))
    table = f'name = "lab"\n[[evaluator]]\nname = "us"\nkey = "{key}"\n'
    (place / "trusted.toml").write_text(table)
    assert owa("report run --registry trusted.toml").code == 0
    checked = owa("verify run --registry trusted.toml").out
    assert "V5 now" in checked
    assert "V5 now" not in owa("verify run").out
    assert owa("evaluate a.tar --battery short.toml --out run").code == 0  # goes on
