import shutil
import stat
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from owa_bench.canonical import key_id, seal, unseal
from owa_bench.errors import FieldError, UnknownNameError, UsageError
from owa_bench.runs.store import keys


def test_key_is_made_and_loaded_again(tmp_path) -> None:
    made = keys.keygen(tmp_path / "home")
    key = keys.load(tmp_path / "home")
    assert keys.public_hex(key) == made.public_hex
    assert len(bytes.fromhex(made.public_hex)) == 32
    assert keys.key_names(tmp_path / "home") == ("default",)
    assert keys.short_name(key) == key_id(bytes.fromhex(made.public_hex))
    envelope = seal("application/test", b"words", key)
    assert unseal(envelope, bytes.fromhex(made.public_hex), "application/test") == b"words"


def test_only_the_owner_may_read_it(tmp_path) -> None:
    made = keys.keygen(tmp_path / "home")
    assert stat.S_IMODE(made.private.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.private.parent.stat().st_mode) == 0o700
    made.private.chmod(0o644)
    with pytest.raises(UsageError, match=r"0600, got 0644; run: chmod 600"):
        keys.load(tmp_path / "home")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_reads_both_halves(tmp_path) -> None:
    made = keys.keygen(tmp_path)
    shown = subprocess.run(
        ["openssl", "pkey", "-in", made.private, "-pubout"], capture_output=True, check=True
    ).stdout
    assert shown == made.public.read_bytes()


def test_key_is_never_overwritten(tmp_path) -> None:
    first = keys.keygen(tmp_path, "lab")
    with pytest.raises(UsageError, match="`lab` exists"):
        keys.keygen(tmp_path, "lab")
    assert keys.public_hex(keys.load(tmp_path, "lab")) == first.public_hex


def test_ensure_makes_a_key_once(tmp_path) -> None:
    first = keys.ensure(tmp_path)
    assert keys.public_hex(keys.ensure(tmp_path)) == keys.public_hex(first)


def test_ensure_makes_no_key_of_another_name(tmp_path) -> None:
    keys.ensure(tmp_path)
    with pytest.raises(UnknownNameError, match=r"Did you mean `default`.*keygen defualt"):
        keys.ensure(tmp_path, "defualt")
    assert keys.key_names(tmp_path) == ("default",)


def test_unknown_key_names_the_nearest(tmp_path) -> None:
    keys.keygen(tmp_path, "laboratory")
    with pytest.raises(UnknownNameError, match="Did you mean `laboratory`"):
        keys.load(tmp_path, "laboratori")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden"])
def test_name_stays_inside_the_folder(tmp_path, name: str) -> None:
    with pytest.raises(FieldError, match="key name"):
        keys.keygen(tmp_path, name)


def test_other_content_is_refused(tmp_path) -> None:
    keys.write_private(tmp_path / "keys" / "words.pem", b"words")
    with pytest.raises(UsageError, match="not a private key"):
        keys.load(tmp_path, "words")
    rsa = generate_private_key(65537, 2048)
    pem = rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keys.write_private(tmp_path / "keys" / "rsa.pem", pem)
    with pytest.raises(UsageError, match="Ed25519 key, got RSAPrivateKey"):
        keys.load(tmp_path, "rsa")


def test_the_data_folder_is_the_named_one_or_the_users_own(tmp_path, monkeypatch) -> None:
    for name in ("OWA_BENCH_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert keys.data_folder() == tmp_path / ".local" / "share" / "owa-bench"
    monkeypatch.setenv("OWA_BENCH_HOME", str(tmp_path / "named"))
    assert keys.data_folder() == tmp_path / "named"
