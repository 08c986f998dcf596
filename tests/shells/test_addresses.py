"""Addresses as people paste them, proxies, and folders for sockets."""

import os
import socket
import ssl
import tempfile

import httpx
import pytest

from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.shells import addresses


@pytest.mark.parametrize(
    ("base", "whole"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/models/", "http://h/v1/chat/completions"),
        ("http://h:1/d?api-version=2", "http://h:1/d/chat/completions?api-version=2"),
        ("http://h", "http://h/chat/completions"),
        ("http://[::1]:8/v1", "http://[::1]:8/v1/chat/completions"),
    ],
)
def test_an_endpoint_below_a_base(base, whole):
    assert addresses.endpoint_of(base, "/chat/completions") == whole


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://localhost/v1", True),
        ("http://a.localhost/v1", True),
        ("http://[::1]/v1", True),
        ("http://0.0.0.0:8000/v1", True),  # where servers say that they listen
        ("http://[::ffff:127.0.0.1]/v1", True),
        ("http://localhost.:8/v1", True),
        ("http://10.0.0.1/v1", False),
        ("https://models.example/v1", False),
        ("http://127.0.0.1.example/v1", False),
    ],
)
def test_what_is_this_machine(url, here):
    assert addresses.is_loopback(url) is here


FAR = "https://models.example/v1"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ""),
        ({"https_proxy": "http://p:3128"}, ""),
        ({"HTTPS_PROXY": "p:3128"}, ""),
        ({"all_proxy": "socks5h://p:1080"}, "pip install socksio"),
        ({"ALL_PROXY": "socks4://p:1"}, r"\$ALL_PROXY must be one of .* got socks4://"),
        ({"http_proxy": "ftp://p"}, r"\$http_proxy must be one of"),
        ({"https_proxy": "ftp://p", "no_proxy": "x,.models.example"}, ""),
        ({"https_proxy": "ftp://p", "NO_PROXY": "*"}, ""),
        ({"https_proxy": "ftp://p", "no_proxy": "els.example"}, "must be one of"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_said(environment, words, monkeypatch):
    import re

    monkeypatch.setattr(addresses, "find_spec", lambda _: None)
    fault = addresses.proxy_fault(FAR, environment)
    assert re.search(words, fault) if words else fault == ""
    assert addresses.proxy_fault("http://127.0.0.1:1", environment) == ""


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("http://u:p@h/v1", True),
        ("http://u@h/v1", True),
        ("http://h/v1?key=abc", True),
        ("http://h/v1?access_token=abc", True),
        ("http://h/v1?api-version=2", False),
    ],
)
def test_what_an_address_must_not_hold(url, holds):
    assert addresses.holds_secret(url) is holds


def test_why_a_request_got_no_reply():
    refused = httpx.ConnectError("sk-secret in a header")
    refused.__cause__ = ConnectionRefusedError()
    assert addresses.why_no_reply(refused, "http://h:5/v1") == (
        "nothing listens at h:5 (ConnectError)"
    )
    unknown = httpx.ConnectError("x")
    unknown.__cause__ = socket.gaierror()
    assert "no address is known for the name h" in addresses.why_no_reply(unknown, "http://h/v1")
    secure = httpx.ConnectError("x")
    secure.__context__ = ssl.SSLError()
    assert "TLS failed at h:443" in addresses.why_no_reply(secure, "https://h/v1")
    other = httpx.ReadError("sk-secret")
    assert addresses.why_no_reply(other, "http://h/v1") == ("no reply from h:80 (ReadError)")


def test_a_gateway_starts_below_a_long_folder_of_temporary_files(tmp_path, monkeypatch):
    """The path of a Unix socket has at most 107 bytes."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(long)
    with ModelGateway(ModelProvider(), frozenset()) as gateway:
        assert len(gateway.socket_path) < 100
        assert os.path.exists(gateway.socket_path)
    assert not os.path.exists(gateway.socket_path)
