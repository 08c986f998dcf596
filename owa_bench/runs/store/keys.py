"""Signing keys in the user's data folder: Ed25519, PEM, mode 0600.

Every call takes the folder; `data_folder()` is its default place. A key never lies in a run
directory.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from owa_bench.canonical import key_id, public_bytes
from owa_bench.errors import FieldError, UnknownNameError, UsageError
from owa_bench.runs.store import disk

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class KeyFile(NamedTuple):
    """A key on disk: private file, public file, and the public key in hex."""

    private: Path
    public: Path
    public_hex: str


def data_folder() -> Path:
    """Return the folder of keys and masters: OWA_BENCH_HOME, else the user's own."""
    if named := os.environ.get("OWA_BENCH_HOME"):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "owa-bench"


def keygen(folder: Path, name: str = DEFAULT) -> KeyFile:
    """Make a key and return its files.

    Args:
        folder: The data folder.
        name: Name of the key.
    Returns: Where the key lies.
    Raises: UsageError: The name is taken: a key is never overwritten.
    """
    private, public = _paths(folder, name)
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_private(private, pem)
    except FileExistsError as error:
        raise UsageError(
            f"A key called `{name}` exists at {private}{_public_words(folder, name)}; choose "
            "another name for a new one."
        ) from error
    shown = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    public.write_bytes(shown)
    return KeyFile(private, public, public_hex(key))


def _public_words(folder: Path, name: str) -> str:
    """Return the public key of a key that is there, "" where its file is none."""
    try:
        return f", its public key is {public_hex(load(folder, name))}"
    except UsageError:
        return ""


def load(folder: Path, name: str = DEFAULT) -> Ed25519PrivateKey:
    """Return a key by name.

    Args:
        folder: The data folder.
        name: Name of the key.
    Raises:
        UnknownNameError: There is none.
        UsageError: It is not Ed25519 PEM, or others may read it.
    """
    private, _ = _paths(folder, name)
    if not private.exists():
        fix = f"`owa-bench keygen {name}` makes one."
        raise UnknownNameError("key", name, key_names(folder), fix)
    check_private(private)
    try:
        key = load_pem_private_key(private.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{private} is not a private key in PEM: {error}.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{private} must hold an Ed25519 key, got {type(key).__name__}.")
    return key


def ensure(folder: Path, name: str = DEFAULT) -> Ed25519PrivateKey:
    """Return a key by name; the default one is made if there is none yet.

    Args:
        folder: The data folder.
        name: Name of the key.
    Raises: UnknownNameError: There is no key of another name: it may be mistyped.
    """
    if name == DEFAULT and name not in key_names(folder):
        keygen(folder, name)
    return load(folder, name)


def key_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the keys in the folder."""
    return tuple(sorted(path.stem for path in (folder / "keys").glob("*.pem")))


def public_hex(key: Ed25519PrivateKey) -> str:
    """Return the 32 raw bytes of the public half in hex, as plans hold them."""
    return public_bytes(key.public_key()).hex()


def short_name(key: Ed25519PrivateKey) -> str:
    """Return the key id that envelopes carry."""
    return key_id(public_bytes(key.public_key()))


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that only its owner reads, in a folder only they enter.

    Args:
        path: The file.
        data: Its bytes.
    Raises:
        FileExistsError: There is one.
        UsageError: The folder cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"The data folder {path.parent} cannot be made: {error.strerror}. "
            "OWA_BENCH_HOME names another."
        ) from error
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        disk.sync(file.fileno(), path)


def check_private(path: Path) -> None:
    """Raise UsageError if anybody but its owner may read `path`."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise UsageError(f"{path} must have mode 0600, got {mode:04o}; run: chmod 600 {path}")


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the private and the public file of a key."""
    if not _NAME.fullmatch(name):
        raise FieldError("key name", name, "must be letters, digits, dots and dashes")
    return folder / "keys" / f"{name}.pem", folder / "keys" / f"{name}.pub"
