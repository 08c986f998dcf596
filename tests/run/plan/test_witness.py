import base64
import http.server
import shutil
import subprocess
import threading
from pathlib import Path

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.errors import (
    CheckFailure,
    FieldError,
    MissingPartError,
    RunDirectoryError,
    UsageError,
)
from owa_bench.records.layout import RunLayout
from owa_bench.records.witness import (
    REPLY_TYPE,
    Witness,
    fault,
    read_time_stamp,
    time_stamp_query,
)
from owa_bench.run.plan import witness
from owa_bench.run.store.files import plan_digest
from owa_bench.run.store.output import ShardFiles
from owa_bench.run.store.recorder import Recorder

TSA = """
[ tsa ]
default_tsa = here
[ here ]
serial = {folder}/serial
signer_cert = {folder}/cert.pem
certs = {folder}/cert.pem
signer_key = {folder}/key.pem
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
"""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def openssl(folder: Path, words: str) -> str:
    """Run openssl in a folder and return all that it printed."""
    done = subprocess.run(
        ["openssl", *words.split()],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "A. Tester")
    git(folder, "config", "user.email", "tester@example.org")
    return folder


@pytest.fixture(scope="module")
def stamping(tmp_path_factory):
    """The address of a time-stamping service on this machine, run by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("tsa")
    (folder / "tsa.cnf").write_text(TSA.format(folder=folder))
    (folder / "serial").write_text("01\n")
    openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=t -keyout key.pem -out cert.pem "
        "-addext extendedKeyUsage=critical,timeStamping",
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = folder / "query.tsq"
            query.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            openssl(
                folder, "ts -reply -config tsa.cnf -queryfile query.tsq -out reply.tsr"
            )
            reply = (folder / "reply.tsr").read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", REPLY_TYPE)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", folder
    server.shutdown()
    thread.join()
    server.server_close()


def read_back(layout: RunLayout, name: str) -> Witness:
    return msgspec.json.decode((layout.witness / name).read_bytes(), type=Witness)


# --- git ------------------------------------------------------------------------------


def test_commit_names_the_plan_and_leaves_files_alone(layout, repository) -> None:
    (repository / "mine.txt").write_text("staged, not committed")
    git(repository, "add", "mine.txt")
    made = witness.by_git(layout, repository)
    digest = plan_digest(layout)
    assert git(repository, "rev-parse", "HEAD") == made.place
    assert git(repository, "log", "-1", "--format=%s") == f"owa-bench plan {digest}"
    assert git(repository, "ls-tree", "-r", "--name-only", "HEAD") == ""
    assert git(repository, "status", "--porcelain") == "A  mine.txt"
    assert read_back(layout, "git.json") == made
    assert made.attempts == 0
    assert fault(made, digest) == ""


def test_commit_follows_what_was_there(layout, repository) -> None:
    (repository / "a").write_text("a")
    git(repository, "add", "a")
    git(repository, "commit", "--quiet", "-m", "first")
    first = git(repository, "rev-parse", "HEAD")
    made = witness.by_git(layout, repository)
    assert git(repository, "rev-parse", "HEAD^") == first
    assert git(repository, "ls-tree", "-r", "--name-only", "HEAD") == "a"
    assert fault(made, plan_digest(layout)) == ""


def test_changed_commit_is_found_out(layout, repository) -> None:
    made = witness.by_git(layout, repository)
    digest = plan_digest(layout)
    moved = made.evidence.replace("tester", "tamper")
    changed = msgspec.structs.replace(made, evidence=moved)
    assert "does not hash" in fault(changed, digest)
    assert "not this one" in fault(made, "0" * 64)
    stolen = msgspec.structs.replace(made, plan_digest="0" * 64)
    assert "does not name the plan" in fault(stolen, "0" * 64)


def test_folder_that_is_no_repository_is_refused(layout, tmp_path) -> None:
    with pytest.raises(UsageError, match="must be a git repository"):
        witness.by_git(layout, tmp_path / "run")


def test_missing_git_is_named_with_its_install_line(
    layout, repository, monkeypatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MissingPartError, match="apt-get install git"):
        witness.by_git(layout, repository)


# --- RFC 3161 -------------------------------------------------------------------------


def test_service_stamps_the_plan(layout, stamping) -> None:
    url, folder = stamping
    made = witness.by_rfc3161(layout, url)
    digest = plan_digest(layout)
    assert fault(made, digest) == ""
    assert made.claimed.startswith("20")
    assert made.claimed.endswith("Z")
    assert read_time_stamp(base64.b64decode(made.evidence)).digest == digest
    token = folder / "token.tsr"
    token.write_bytes(base64.b64decode(made.evidence))
    check = f"ts -verify -in token.tsr -CAfile cert.pem -data {layout.plan}"
    assert "Verification: OK" in openssl(folder, check)


def test_token_of_another_plan_is_found_out(layout, stamping) -> None:
    made = witness.by_rfc3161(layout, stamping[0])
    stolen = msgspec.structs.replace(made, plan_digest="0" * 64)
    assert "not this plan" in fault(stolen, "0" * 64)
    later = msgspec.structs.replace(made, claimed="20990101000000Z")
    assert "the token says" in fault(later, plan_digest(layout))
    cut = base64.b64encode(base64.b64decode(made.evidence)[:80]).decode()
    broken = msgspec.structs.replace(made, evidence=cut)
    assert "not an RFC 3161 reply" in fault(broken, plan_digest(layout))


def test_service_that_stamps_something_else_is_refused(layout, stamping) -> None:
    other = time_stamp_query(b"another plan").der
    reply = httpx.post(stamping[0], content=other).content
    client = httpx.Client(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, content=reply))
    )
    with client, pytest.raises(CheckFailure, match="another request"):
        witness.by_rfc3161(layout, "http://tsa.example/", client=client)
    assert not layout.witness.exists()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(503), "gave no token: .*503"),
        (httpx.Response(200, content=b"<html>"), "not an RFC 3161 reply"),
        (httpx.Response(200, content=b""), "not an RFC 3161 reply"),
        (httpx.Response(200, content=bytes.fromhex("30053003020102")), "PKI status 2"),
    ],
)
def test_service_that_fails_is_named(layout, answer, message: str) -> None:
    client = httpx.Client(transport=httpx.MockTransport(lambda _: answer))
    with client, pytest.raises(CheckFailure, match=message):
        witness.by_rfc3161(layout, "http://tsa.example/", client=client)


def test_service_that_is_not_there_is_named(layout) -> None:
    with pytest.raises(CheckFailure, match="gave no token"):
        witness.by_rfc3161(layout, "http://127.0.0.1:9/")


# --- nonce ----------------------------------------------------------------------------


def test_nonce_is_signed_with_the_plan(layout) -> None:
    key = Ed25519PrivateKey.generate()
    made = witness.by_nonce(layout, "verifier nonce 1", key)
    digest = plan_digest(layout)
    assert fault(made, digest) == ""
    assert read_back(layout, "nonce.json") == made
    other = msgspec.structs.replace(made, nonce="verifier nonce 2")
    assert "not this nonce" in fault(other, digest)
    forged = msgspec.structs.replace(made, place="00" * 32)
    assert fault(forged, digest) != ""
    with pytest.raises(FieldError, match="at least 8"):
        witness.by_nonce(layout, "short", key)


def test_second_witness_does_not_overwrite_the_first(layout) -> None:
    key = Ed25519PrivateKey.generate()
    first = witness.by_nonce(layout, "verifier nonce 1", key)
    witness.by_nonce(layout, "verifier nonce 2", key)
    assert read_back(layout, "nonce.json") == first
    assert read_back(layout, "nonce-2.json").nonce == "verifier nonce 2"


def test_witness_after_the_first_attempt_says_so(layout, start) -> None:
    with Recorder(ShardFiles(layout, 0), plan_digest(layout), b"k", True) as recorder:
        recorder.episode(0, 0).emit(start(0))
        recorder.episode(1, 0).emit(start(1))
    made = witness.by_nonce(layout, "verifier nonce 1", Ed25519PrivateKey.generate())
    assert made.attempts == 2


def test_folder_without_a_plan_cannot_be_witnessed(tmp_path) -> None:
    key = Ed25519PrivateKey.generate()
    with pytest.raises(RunDirectoryError):
        witness.by_nonce(RunLayout(tmp_path), "verifier nonce 1", key)
