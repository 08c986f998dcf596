"""Addresses of servers: how they are joined, shown, and reached past proxies."""

import ipaddress
import os
import re
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import httpx

from owa_bench.errors import InfrastructureFailure, UsageError

_ENDPOINTS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/models",
)
_LONGEST_SOCKET = 100  # of the 107 bytes that a Unix socket's address may have
_KEY_IN_QUERY = re.compile(
    r"key|token|secret|password|signature|credential|^(sig|code|auth|pass|pwd)$", re.IGNORECASE
)
_IN_PATHS = "/:@!$&'()*+,;=~"
_SCHEMES = frozenset({"http", "https", "socks5", "socks5h"})


def endpoint_of(url: str, path: str) -> str:
    """Return the address of an endpoint below a base address.

    A query stays. A base that is the whole address of an endpoint, as people paste it, stands for
    the base before it. A version that both name stands once.

    Args:
        url: The base address.
        path: Of the endpoint, below it.

    >>> endpoint_of("http://h/v1/", "/chat/completions")
    'http://h/v1/chat/completions'
    >>> endpoint_of("https://h/deployments/d/chat/completions?version=1", "/models")
    'https://h/deployments/d/models?version=1'
    >>> endpoint_of("https://h/maker%2Fmodel", "/models")
    'https://h/maker%2Fmodel/models'
    >>> endpoint_of("https://h/v1/messages", "/v1/messages")
    'https://h/v1/messages'
    """
    base = httpx.URL(url)
    coded, sign, query = base.raw_path.decode("ascii").partition("?")
    folder = coded.rstrip("/")
    ending = next((e for e in _ENDPOINTS if folder.endswith(e)), "")
    folder = folder.removesuffix(ending)
    if path.startswith("/v1/"):
        folder = folder.removesuffix("/v1")
    whole = folder + quote(path, safe=_IN_PATHS) + sign + query
    return str(base.copy_with(raw_path=whole.encode("ascii")))


def certificates(environment: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return what certificates of servers are checked by, as the environment says.

    Args:
        environment: Variables.
    Returns: The context of a client; True is the usual one.
    Raises: UsageError: What a variable names cannot be read.
    """
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        place = environment.get(variable, "").strip()
        if not place:
            continue
        try:
            Path(place).stat()  # a missing folder would pass
            if variable == "SSL_CERT_FILE":
                return ssl.create_default_context(cafile=place)
            return ssl.create_default_context(capath=place)
        except OSError as error:
            raise UsageError(
                f"${variable} names {place}, which holds no certificates that can be "
                f"read ({error.strerror}): unset it, or name another."
            ) from error
    return True


def host_and_port(url: str) -> str:
    """Return host and port of an address: user, password and query may be secrets."""
    parts = httpx.URL(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.host}{port}"


def is_loopback(url: str) -> bool:
    """Return whether an address is one of this machine."""
    host = httpx.URL(url).host.rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    # Servers say that they listen at 0.0.0.0, and a client of it meets this machine.
    return address.is_loopback or address.is_unspecified


def uses_proxy(url: str) -> bool:
    """Return whether a client of an address may read the proxy's variables.

    A proxy cannot reach this machine's loopback, and `no_proxy` names other hosts.
    """
    return not (is_loopback(url) or _bypasses(url, os.environ))


def proxy_fault(url: str, environment: Mapping[str, str]) -> str:
    """Return why the proxy that the environment names cannot be used, "" if it can.

    Args:
        url: Where requests go.
        environment: Variables, such as `https_proxy`.
    Returns: The variable and what is wrong with it, without a password in it.
    """
    if not url or is_loopback(url) or _bypasses(url, environment):
        return ""
    for name in ("https_proxy", "http_proxy", "all_proxy"):  # the client reads all
        for variable in (name, name.upper()):
            proxy = environment.get(variable, "").strip()
            if proxy and (fault := _proxy_fault(variable, proxy)):
                return fault
    return ""


def _proxy_fault(variable: str, proxy: str) -> str:
    """Return why one proxy cannot be used; a password in it is not repeated."""
    scheme, sign, _ = proxy.partition("://")
    kind = scheme.lower() if sign else "http"
    if kind not in _SCHEMES:
        return (
            f"the proxy in ${variable} must be one of {', '.join(sorted(_SCHEMES))}, "
            f"got {kind}://..; unset it, or name the host in $no_proxy"
        )
    try:
        host = httpx.URL(proxy if sign else f"http://{proxy}").host
    except httpx.InvalidURL:
        host = ""
    if not host:
        return f"the proxy in ${variable} is no address such as http://proxy:3128"
    if kind.startswith("socks") and find_spec("socksio") is None:
        return (
            f"the proxy in ${variable} is a SOCKS proxy, which needs a package: pip install socksio"
        )
    return ""


def _bypasses(url: str, environment: Mapping[str, str]) -> bool:
    """Return whether `no_proxy` names the host of an address."""
    host = httpx.URL(url).host
    names = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in (part.strip().lstrip(".") for part in names.split(",")):
        if name == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False


def socket_folder(prefix: str) -> str:
    """Return a new folder for a Unix socket, whose address must be short.

    The usual folder of temporary files is taken where it is short enough.

    Raises: InfrastructureFailure: No folder is short enough and can be written.
    """
    for place in (tempfile.gettempdir(), "/tmp", "/dev/shm", "/run"):  # noqa: S108  short by nature
        if len(place) + len(prefix) > _LONGEST_SOCKET - 30:
            continue
        if Path(place).is_dir() and os.access(place, os.W_OK | os.X_OK):
            return tempfile.mkdtemp(prefix=prefix, dir=place)
    raise InfrastructureFailure(
        f"The path of a Unix socket below {tempfile.gettempdir()} is too long, and no "
        "shorter folder can be written: set TMPDIR to a short path, such as /tmp."
    )


def holds_secret(url: str) -> bool:
    """Return whether an address holds a password or key: plans and screens show it."""
    parts = httpx.URL(url)
    return bool(parts.userinfo) or any(map(_KEY_IN_QUERY.search, parts.params))


def why_no_reply(error: BaseException, url: str) -> str:
    """Return why a request got no reply, without a word of the library's own.

    Args:
        error: What the library raised.
        url: Where the request went.
    Returns: One line: what failed, at which host, and the exception's class.
    """
    causes, parts = tuple(_chain(error)), httpx.URL(url)
    place = f"{parts.host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    for kind, words in (
        (socket.gaierror, f"no address is known for the name {parts.host}"),
        (ssl.SSLError, f"TLS failed at {place}: plain http, or a certificate unknown"),
        (ConnectionRefusedError, f"nothing listens at {place}"),
        (httpx.ProxyError, "the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY refused"),
        (httpx.RemoteProtocolError, f"{place} hung up, or speaks no HTTP"),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return f"{words} ({type(error).__name__})"
    return f"no reply from {place} ({type(error).__name__})"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for part in error.exceptions:
                yield from _chain(part)
        error = error.__cause__ or error.__context__
