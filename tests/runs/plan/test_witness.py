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

from owa_bench.errors import CheckFailure, FieldError, RunDirectoryError
from owa_bench.records.layout import RunLayout
from owa_bench.records.registry import Registry, TimeService
from owa_bench.records.witness import REPLY_TYPE, Witness, fault, read_time_stamp, time_stamp_query
from owa_bench.runs.plan import witness
from owa_bench.runs.store.files import plan_digest
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder

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


def openssl(folder: Path, words: str) -> str:
    """Run openssl in a folder and return all that it printed."""
    done = subprocess.run(
        ["openssl", *words.split()], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout + done.stderr


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
            openssl(folder, "ts -reply -config tsa.cnf -queryfile query.tsq -out reply.tsr")
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


def test_a_token_counts_where_its_root_stands_in_the_registry(layout, stamping) -> None:
    url, folder = stamping
    made = witness.by_rfc3161(layout, url)
    token, digest = base64.b64decode(made.evidence), plan_digest(layout)

    def named(pem: str) -> Registry:
        return Registry(name="r", time_service=(TimeService(name="here", root=pem),))

    ours = named((folder / "cert.pem").read_text())
    assert ours.service_of(token, digest) == "here"
    assert ours.service_of(token, "0" * 64) == ""
    openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=t -keyout k2.pem -out c2.pem "
        "-addext extendedKeyUsage=critical,timeStamping",
    )
    assert named((folder / "c2.pem").read_text()).service_of(token, digest) == ""
    assert Registry(name="none").service_of(token, digest) == ""


def test_a_token_without_a_signature_counts_for_nobody(layout, stamping) -> None:
    """The attack: the stamp's content rewritten, so that no signature fits it."""
    url, folder = stamping
    made = witness.by_rfc3161(layout, url)
    token = base64.b64decode(made.evidence)
    digest = bytes.fromhex(plan_digest(layout))
    forged = token.replace(digest, bytes(32))
    assert forged != token
    assert read_time_stamp(forged).digest == "00" * 32
    ours = Registry(
        name="r", time_service=(TimeService(name="here", root=(folder / "cert.pem").read_text()),)
    )
    assert ours.service_of(forged, "00" * 32) == ""


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
    earlier = msgspec.structs.replace(made, claimed="2020-01-01T00:00:00+00:00")
    assert "not this nonce, time and submitter" in fault(earlier, digest)
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
