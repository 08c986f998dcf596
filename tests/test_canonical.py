import base64
import contextlib
import hashlib
import json
import shutil
import subprocess

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from owa_bench import canonical
from owa_bench.canonical import (
    canonical_json,
    chain_start,
    chain_step,
    document_digest,
    key_id,
    keyed_digest,
    peek,
    pre_authentication,
    public_bytes,
    record_digest,
    seal,
    sha256,
    text_digest,
    tree_root,
    unseal,
)
from owa_bench.errors import CheckFailure
from owa_bench.records.instance import Instance

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = public_bytes(KEY.public_key())


def rfc6962(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, as it is written there: split below the length."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = rfc6962(leaves[:split]), rfc6962(leaves[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()


# --- the tree -------------------------------------------------------------------------

# Roots over the first n of eight leaves, as certificate-transparency's own tests
# (google/certificate-transparency, merkle_tree_test.cc) have them.
LEAVES = [
    bytes.fromhex(leaf)
    for leaf in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.mark.parametrize("count", range(9))
def test_tree_has_the_published_roots(count: int) -> None:
    assert tree_root(LEAVES[:count]) == ROOTS[count]


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_tree_is_that_of_rfc_6962(leaves: list[bytes]) -> None:
    assert tree_root(leaves) == rfc6962(leaves).hex()


@given(st.lists(st.binary(max_size=8), min_size=2, max_size=40), st.data())
def test_tree_sees_a_changed_swapped_dropped_or_copied_leaf(leaves, data) -> None:
    root = tree_root(leaves)
    i = data.draw(st.integers(0, len(leaves) - 1))
    assert tree_root([*leaves[:i], leaves[i] + b"x", *leaves[i + 1 :]]) != root
    assert tree_root([*leaves[:i], *leaves[i + 1 :]]) != root
    assert tree_root([*leaves[: i + 1], *leaves[i:]]) != root
    j = data.draw(st.integers(0, len(leaves) - 1))
    swapped = list(leaves)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    assert (tree_root(swapped) == root) == (leaves[i] == leaves[j])


def test_inner_node_is_no_leaf() -> None:
    one, two = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in (b"a", b"b"))
    assert tree_root([b"a", b"b"]) != tree_root([one + two])


# --- the chain ------------------------------------------------------------------------


def test_chain_is_what_the_specification_says() -> None:
    start = chain_start("ab" * 32, "000001.0")
    text = "owa/ep/v1|" + "ab" * 32 + "|000001.0"
    assert start == hashlib.sha256(text.encode()).digest()
    assert chain_step(start, b"{}") == hashlib.sha256(b"\x02" + start + b"{}").digest()


@given(st.lists(st.binary(max_size=20), min_size=2, max_size=20), st.data())
def test_chain_sees_every_edit(lines: list[bytes], data) -> None:
    def head(rows: list[bytes]) -> bytes:
        value = chain_start("0" * 64, "000000.0")
        for row in rows:
            value = chain_step(value, row)
        return value

    i = data.draw(st.integers(0, len(lines) - 1))
    for other in (
        lines[:i] + lines[i + 1 :],
        lines[: i + 1] + lines[i:],
        [*lines[:i], lines[i] + b" ", *lines[i + 1 :]],
        lines[:-1],
    ):
        assert head(other) != head(lines)
    if i and lines[i] != lines[i - 1]:
        swapped = [*lines[: i - 1], lines[i], lines[i - 1], *lines[i + 1 :]]
        assert head(swapped) != head(lines)


def test_chain_belongs_to_one_attempt_of_one_plan() -> None:
    heads = {chain_start(plan, name) for plan in ("a", "b") for name in ("0.0", "0.1")}
    assert len(heads) == 4


# --- documents ------------------------------------------------------------------------


def test_canonical_json_is_rfc_8785() -> None:
    # The example of RFC 8785 section 3.2.2, numbers and strings.
    document = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 1e-27],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert (
        canonical_json(document)
        == (
            '{"literals":[null,true,false],'
            '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )


@given(st.dictionaries(st.text(max_size=5), st.integers(-(2**53) + 1, 2**53 - 1)))
def test_digest_does_not_depend_on_the_order_of_keys(document) -> None:
    turned = dict(reversed(document.items()))
    assert document_digest(turned) == document_digest(document)
    assert json.loads(canonical_json(document)) == document


NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.sampled_from('ab"\\\n\x7f\u00e9:,[1.e'), max_size=20)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


@given(DOCUMENTS, st.booleans())
def test_a_texts_digest_is_that_of_what_it_says(document, spaced) -> None:
    text = json.dumps(document, indent=1 if spaced else None, ensure_ascii=spaced).encode()
    assert text_digest(text) == document_digest(json.loads(text))


@pytest.mark.parametrize(
    "text",
    ["1e3", "-0.0", "1E-7", "1e21", "[123456789012345]", '{"b":1.0,"a":{"z":2,"y":[]}}', '":1.5"'],
)
def test_a_plain_texts_digest_needs_no_second_way(text) -> None:
    assert canonical._plain_form(text.encode()) == canonical_json(json.loads(text))


@pytest.mark.parametrize("text", ["9007199254740993", "[1,-9007199254740993]", "1e999"])
def test_a_number_without_canonical_form_has_no_digest(text) -> None:
    with pytest.raises((CheckFailure, ValueError)):
        text_digest(text.encode())


def test_record_digest_is_over_its_own_encoding() -> None:
    instance = Instance(suite="s", version=1, family="f", tier=1, seed=2**63 - 1)
    line = (
        b'{"suite":"s","version":1,"family":"f","tier":1,'
        b'"seed":9223372036854775807,"repeat":0,"drift_step":0}'
    )
    assert record_digest(instance) == sha256(line)


def test_keyed_digest_is_hmac_sha_256() -> None:
    # RFC 4231, test case 2.
    want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert keyed_digest(b"Jefe", "what do ya want for nothing?").hex() == want
    assert keyed_digest(b"k", "a", "b") == keyed_digest(b"k", "a|b")


# --- the envelope ---------------------------------------------------------------------


def test_pre_authentication_is_that_of_the_dsse_specification() -> None:
    # The example of the DSSE protocol document.
    got = pre_authentication("http://example.com/HelloWorld", b"hello world")
    assert got == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_public_key_and_its_name() -> None:
    assert PUBLIC.hex() == ("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8")
    assert key_id(PUBLIC) == sha256(PUBLIC)[:16]


@given(st.binary(max_size=100))
def test_envelope_gives_back_what_was_signed(payload: bytes) -> None:
    envelope = seal("application/test", payload, KEY)
    assert unseal(envelope, PUBLIC, "application/test") == payload == peek(envelope)


def test_envelope_without_a_key_is_unsigned() -> None:
    envelope = seal("application/test", b"draft", None)
    assert peek(envelope) == b"draft"
    with pytest.raises(CheckFailure, match="No signature"):
        unseal(envelope, PUBLIC, "application/test")


@pytest.mark.parametrize("field", ["payload", "payloadType", "signatures"])
def test_every_changed_field_is_found_out(field: str) -> None:
    document = json.loads(seal("application/test", b"words", KEY))
    other = json.loads(seal("application/other", b"works", KEY))
    document[field] = other[field]
    with pytest.raises(CheckFailure, match="No signature"):
        unseal(json.dumps(document).encode(), PUBLIC, "application/test")


def test_other_key_is_found_out() -> None:
    other = public_bytes(Ed25519PrivateKey.generate().public_key())
    with pytest.raises(CheckFailure, match=f"by key {key_id(other)}"):
        unseal(seal("application/test", b"words", KEY), other, "application/test")


@pytest.mark.parametrize(
    "envelope", [b"", b"[]", b"{}", b'{"payload":"!","payloadType":"t","signatures":[]}']
)
def test_what_is_no_envelope_is_said_to_be_none(envelope: bytes) -> None:
    with pytest.raises(CheckFailure, match="not DSSE JSON"):
        unseal(envelope, PUBLIC, "application/test")


def test_second_signature_counts_too() -> None:
    document = json.loads(seal("application/test", b"words", KEY))
    stranger = json.loads(seal("application/test", b"words", Ed25519PrivateKey.generate()))
    document["signatures"] = stranger["signatures"] + document["signatures"]
    assert unseal(json.dumps(document).encode(), PUBLIC, "application/test") == b"words"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_key_under_which_anybody_can_sign_is_refused() -> None:
    """Signatures of nobody, R the neutral point and S zero, hold under points of small order.

    Of an order n they hold for one message in n, so some of 200 messages show it.
    """
    neutral = bytes([1]) + bytes(63)
    holding = set()
    for listed in sorted(canonical._SMALL_ORDER):
        for key in (listed, listed[:-1] + bytes([listed[-1] | 0x80])):
            with pytest.raises(CheckFailure, match="of small order"):
                unseal(_with_signature(b"", neutral), key, "t")
            for number in range(200):
                with contextlib.suppress(InvalidSignature, ValueError):
                    signed = pre_authentication("t", b"%d" % number)
                    Ed25519PublicKey.from_public_bytes(key).verify(neutral, signed)
                    holding.add(key)
                    break
    assert len(holding) >= 8  # all eight points, and whatever second encodings the library takes
    assert not canonical.is_small_order(public_bytes(KEY.public_key()))
    assert not canonical.is_small_order(b"")


def _with_signature(payload: bytes, signature: bytes) -> bytes:
    document = json.loads(seal("t", payload, None))
    document["signatures"] = [{"keyid": "", "sig": base64.b64encode(signature).decode()}]
    return json.dumps(document).encode()


def test_openssl_checks_the_signature(tmp_path) -> None:
    document = json.loads(seal("application/test", b"words", KEY))
    signature = base64.b64decode(document["signatures"][0]["sig"])
    (tmp_path / "sig").write_bytes(signature)
    (tmp_path / "signed").write_bytes(pre_authentication("application/test", b"words"))
    (tmp_path / "key.pub").write_bytes(
        KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    command = "openssl pkeyutl -verify -pubin -inkey key.pub -rawin -in signed "
    done = subprocess.run(
        [*command.split(), "-sigfile", "sig"], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"Verified Successfully" in done.stdout


def test_a_numpy_number_is_the_number():
    numbers = {"a": np.int64(3), "b": np.bool_(True), "c": np.float64(0.5)}
    plain = {"a": 3, "b": True, "c": 0.5}
    assert canonical_json(numbers) == canonical_json(plain)
    with pytest.raises(TypeError, match="holds records and numbers"):
        canonical_json({"a": object()})
