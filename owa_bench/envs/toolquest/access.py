"""Access control: API keys, Basic, OAuth2 bearer tokens and the grants for them.

Source: RFC 6749 sections 2.3.1, 4.4, 5.2 and 6; RFC 6750 section 3; RFC 7617.
"""

import base64
import hmac
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.backend import Backend
from owa_bench.envs.toolquest.world import Provider, Secret

TOKEN_KINDS = ("oauth2", "refresh")
GRANTS = {"oauth2": "client_credentials", "refresh": "refresh_token"}


class Denial(NamedTuple):
    """A refusal: status, machine word, sentence, and the challenge header."""

    status: int
    code: str
    message: str
    challenge: str


class TokenAnswer(NamedTuple):
    """The token endpoint's answer: an access token, or why there is none.

    `refresh` is the refresh token that works next, "" where there is none.
    """

    token: str
    scope: str
    refresh: str = ""
    denial: Denial | None = None


def authorize(
    provider: Provider, backend: Backend, headers: Mapping[str, str], query: Mapping[str, str]
) -> Denial | None:
    """Return why a request may not touch the provider's resources, None if it may.

    Args:
        provider: The vendor that is called.
        backend: Its tokens and the clock.
        headers: Headers of the request, names in lower case.
        query: Query parameters of the request.
    Returns: The refusal, None if the request may pass.
    """
    auth = provider.contract.auth
    if auth.kind == "none":
        return None
    if auth.kind in TOKEN_KINDS:
        return _bearer(provider, backend, headers.get("authorization", ""))
    if auth.kind == "basic":
        return _user(provider, headers.get("authorization", ""))
    place = "header" if auth.kind == "key_header" else "query parameter"
    given = headers if auth.kind == "key_header" else query
    name = auth.name.lower() if auth.kind == "key_header" else auth.name
    challenge = f'ApiKey in="{place}", name="{auth.name}"'
    if name not in given:
        words = f"Send your API key in the {place} `{auth.name}`."
        return Denial(401, "missing_key", words, challenge)
    secret = match(provider, given[name])
    if secret is None:
        return Denial(401, "invalid_key", "We do not know this API key.", challenge)
    if secret.revoked:
        words = "This API key was rotated and no longer works."
        return Denial(401, "revoked_key", words, challenge)
    return None


def _user(provider: Provider, header: str) -> Denial | None:
    """Return why a Basic header does not prove a user, None if it does."""
    challenge = f'Basic realm="{provider.host}"'
    name, password = _client(header, {})
    if not password:
        return Denial(401, "missing_user", "Send user and password by Basic.", challenge)
    secret = match(provider, f"{name}:{password}")
    if secret is None:
        return Denial(401, "invalid_user", "Unknown user or password.", challenge)
    if secret.revoked:
        words = "This password was changed and no longer works."
        return Denial(401, "revoked_user", words, challenge)
    return None


def _bearer(provider: Provider, backend: Backend, header: str) -> Denial | None:
    auth = provider.contract.auth
    realm = f'Bearer realm="{provider.host}", token_endpoint="{auth.token_path}"'
    kind, _, token = header.partition(" ")
    if kind.lower() != "bearer" or not token:
        words = f"Get an access token at {auth.token_path} and send it as Bearer."
        return Denial(401, "missing_token", words, realm)
    grant = backend.grant_of(provider.key, token.strip())
    if grant is None or backend.state.now_ms >= grant.expires_ms:
        words = "The access token expired" if grant else "The access token is unknown"
        challenge = f'{realm}, error="invalid_token", error_description="{words}"'
        return Denial(401, "invalid_token", f"{words}.", challenge)
    if auth.scope and auth.scope not in grant.scopes:
        words = f"The request needs the scope `{auth.scope}`."
        challenge = f'{realm}, error="insufficient_scope", scope="{auth.scope}"'
        return Denial(403, "insufficient_scope", words, challenge)
    return None


def match(provider: Provider, value: str) -> Secret | None:
    """Return the provider's credential of that value, compared in constant time.

    Args:
        provider: The vendor.
        value: What the caller sent.
    Returns: The credential of that value, revoked or not; None if there is none.
    """
    found = None
    for secret in provider.secrets:
        if hmac.compare_digest(secret.value.encode(), value.encode()):
            found = secret
    return found


def exchange(
    provider: Provider, backend: Backend, header: str, form: Mapping[str, str]
) -> TokenAnswer:
    """Answer a request for an access token by the vendor's grant.

    Args:
        provider: The vendor.
        backend: Its tokens, which this changes.
        header: The Authorization header, "" without one.
        form: Fields of the body.
    Returns: The access token, or why there is none.
    """
    auth = provider.contract.auth
    grant = GRANTS[auth.kind]
    if form.get("grant_type") != grant:
        words = f"`grant_type` must be `{grant}`."
        return _refused(400, "unsupported_grant_type", words)
    name, password = _client(header, form)
    if not name or not password:
        words = "Send client id and secret, by Basic or in the body."
        return _refused(401, "invalid_client", words)
    secret = _proven(provider, backend, f"{name}:{password}", form)
    if isinstance(secret, TokenAnswer):
        return secret
    offered = provider.contract.auth.scope
    asked = frozenset(form.get("scope", "").split())
    if asked - {offered}:
        words = f"Unknown scope; we offer `{offered}`."
        return _refused(400, "invalid_scope", words)
    token, scope = backend.issue(provider, asked), " ".join(sorted(asked))
    if auth.kind == "refresh":
        return TokenAnswer(token, scope, backend.renew(provider, secret))
    return TokenAnswer(token, scope)


def _proven(
    provider: Provider, backend: Backend, pair: str, form: Mapping[str, str]
) -> Secret | TokenAnswer:
    """Return the credential that a grant rests on, or why it is refused.

    A refresh token works once (RFC 6749 section 6, RFC 9700 section 4.14): the answer holds the
    next one.
    """
    rotated = "These credentials were rotated and no longer work."
    if provider.contract.auth.kind != "refresh":
        client = match(provider, pair)
        if client is None:
            words = "Unknown client, secret or refresh token."
            return _refused(401, "invalid_client", words)
        return _refused(401, "invalid_client", rotated) if client.revoked else client
    given = form.get("refresh_token", "")
    for secret in provider.secrets:
        if not hmac.compare_digest(_owner(secret).encode(), pair.encode()):
            continue
        newest = backend.state.refresh_token(provider.key, secret)
        if secret.revoked and backend.is_used_up(provider, secret, given):
            return _refused(400, "invalid_grant", rotated)
        if hmac.compare_digest(newest.encode(), given.encode()):
            return secret
        if backend.is_used_up(provider, secret, given):
            words = "This refresh token was used already; send the one that came of it."
            return _refused(400, "invalid_grant", words)
    return _refused(400, "invalid_grant", "Unknown client, secret or refresh token.")


def _owner(secret: Secret) -> str:
    """Return client id and secret of a credential that ends in a refresh token."""
    return secret.value.rpartition(":")[0]


def _refused(status: int, code: str, words: str) -> TokenAnswer:
    challenge = 'Basic realm="token"' if status == 401 else ""
    return TokenAnswer("", "", denial=Denial(status, code, words, challenge))


def _client(header: str, form: Mapping[str, str]) -> tuple[str, str]:
    """Return client id and secret from the Basic header, else from the body."""
    kind, _, rest = header.partition(" ")
    if kind.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        pair = base64.b64decode(rest.strip(), validate=True).decode()
    except ValueError:
        return "", ""
    name, _, password = pair.partition(":")
    return name, password


def basic(pair: str) -> str:
    """Return what follows the word Basic for a credential `client_id:client_secret`."""
    return base64.b64encode(pair.encode()).decode()
