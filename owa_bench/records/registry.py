"""Registry of verifiers: whose signatures a reader takes as those of a second party.

A signature proves who signed, not that the signer is somebody else than the submitter: anybody can
make a second key. So a witness or a replay counts (V3, V4) only if its key, or the root of its
time-stamping service, stands in a registry that the reader names.

    name = "lab registry"

    [[verifier]]
    name = "a lab"
    key = "HEX"                    # Ed25519, 64 hex digits

    [[evaluator]]                  # plays submitted agents itself: its runs are V5
    name = "another lab"
    key = "HEX"

    [[watcher]]                    # sat beside the persons whose runs make norms
    name = "an invigilator"
    key = "HEX"

    [[time_service]]
    name = "a service"
    root = "-----BEGIN CERTIFICATE-----..."
"""

from typing import Annotated

import msgspec
from cryptography import x509

from owa_bench.errors import CheckFailure, FieldError
from owa_bench.records.toml import TomlRecord, decode


class VerifierKey(TomlRecord, frozen=True):
    """A verifier and its public key, 64 hex digits."""

    name: str
    key: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class TimeService(TomlRecord, frozen=True):
    """A time-stamping service and the root certificate that it answers to, PEM."""

    name: str
    root: str

    def certificate(self) -> x509.Certificate:
        """Return the root certificate.

        Raises: FieldError: it does not read.
        """
        try:
            return x509.load_pem_x509_certificate(self.root.encode())
        except ValueError as error:
            raise FieldError(
                f"time_service {self.name}: root",
                self.root[:40],
                f"must be a certificate in PEM ({error})",
            ) from error


class Registry(TomlRecord, frozen=True):
    """The verifiers, evaluators, watchers and services that a reader trusts."""

    name: str
    verifier: tuple[VerifierKey, ...] = ()
    evaluator: tuple[VerifierKey, ...] = ()
    watcher: tuple[VerifierKey, ...] = ()
    time_service: tuple[TimeService, ...] = ()

    def verifier_of(self, key: str) -> str:
        """Return the name of the verifier with this key in hex, "" for none."""
        return next((one.name for one in self.verifier if one.key == key), "")

    def evaluator_of(self, key: str) -> str:
        """Return the name of the evaluator with this key in hex, "" for none."""
        return next((one.name for one in self.evaluator if one.key == key), "")

    def watcher_of(self, key: str) -> str:
        """Return the name of the watcher with this key in hex, "" for none."""
        return next((one.name for one in self.watcher if one.key == key), "")

    def service_of(self, reply: bytes, digest: str) -> str:
        """Return the name of the service whose root a time stamp's signature leads to.

        Args:
            reply: An RFC 3161 reply, DER.
            digest: SHA-256 that it must stamp, in hex.
        Returns: The name, "" for none of these services.
        """
        for service in self.time_service:
            if _leads_to(service.certificate(), reply, digest):
                return service.name
        return ""


def read_registry(data: bytes, name: str = "registry.toml") -> Registry:
    """Return the registry that a file holds.

    Args:
        data: TOML in UTF-8.
        name: Of the file, for messages.
    Returns: The registry; each of its certificates reads.
    Raises: FieldError: A field breaks a rule.
    """
    try:
        registry = decode(data, Registry, FieldError)
        for service in registry.time_service:
            service.certificate()
    except FieldError as fault:
        raise FieldError(f"{name}: {fault.field}", fault.value, fault.rule) from fault
    return registry


def _leads_to(root: x509.Certificate, reply: bytes, digest: str) -> bool:
    """Return whether a reply stamps a digest under a certificate of this root."""
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        response = decode_timestamp_response(reply)
        verifier = VerifierBuilder().add_root_certificate(root).build()
        return bool(verifier.verify(response, bytes.fromhex(digest)))
    except (VerificationError, CheckFailure, ValueError):
        return False
