"""What stands before every view: who may ask, by which name, from where, and how much they may send.

A browser that a hostile page controls can send requests to this server, too. Such a page does not know the
secret, cannot read an answer, and cannot forge a form. A name that the hostile page has made an alias of
this machine (DNS rebinding) is refused, because its ``Host`` is none of ours.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 20_000_000
"""Of a request: a pasted page or a file."""

TOKEN = "token"  # noqa: S105  # a name
FORM_TOKEN = "form_token"  # noqa: S105
LOGIN = "/login"

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'none'; object-src 'none'; base-uri 'none'; frame-ancestors 'none';"
        " form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_WAIT_AFTER_WRONG = 1.0
"""Seconds in which no secret is looked at after a wrong one."""


class Secret:
    """What a person must know: a token of the URL, or a password. Who has shown it gets a cookie."""

    def __init__(self, value: str, *, is_password: bool = False) -> None:
        self._value = value.encode()
        self.is_password = is_password
        self._session = secrets.token_urlsafe(32)
        self._key = secrets.token_bytes(32)
        self._closed_until = 0.0

    def shown(self, value: str) -> bool:
        """Whether somebody knows the secret. After a wrong password, none is looked at for a second."""
        now = monotonic()
        if now < self._closed_until:
            return False
        if hmac.compare_digest(value.encode("utf-8", "replace"), self._value):
            return True
        if self.is_password:
            self._closed_until = now + _WAIT_AFTER_WRONG
        return False

    def is_session(self, cookie: str) -> bool:
        return hmac.compare_digest(cookie.encode("utf-8", "replace"), self._session.encode())

    def form_token(self) -> str:
        """What every form carries, and no other site can know."""
        return hmac.new(self._key, b"form", "sha256").hexdigest()

    def cookie(self, name: str) -> str:
        return f"{name}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def is_form_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.form_token().encode())


class Guard:
    """Lets a request pass to the views if it may.

    ``names``: host names by which the server may be asked, beside ``localhost`` and any IP address. A name
    can be made an alias of this machine by whoever owns the name. An address cannot. ``open_paths``: how the
    paths begin that nobody needs the secret for. Without a secret, everybody may ask who reaches the port.
    """

    def __init__(
        self, app: ASGIApp, secret: Secret | None, *, names: frozenset[str], open_paths: tuple[str, ...]
    ) -> None:
        self._app = app
        self._secret = secret
        self._names = names | {"localhost"}
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        app = self._app if refusal is None else refusal
        await app(scope, _Bounded(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        host = headers.get("host", "")
        if not self._is_ours(host):
            return PlainTextResponse("This server is not asked by this name.", 421)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            return PlainTextResponse(f"A request may have {MOST_BODY_BYTES:,} bytes.", 413)
        if scope["method"] not in {"GET", "HEAD"} and not _is_same_origin(headers, host):
            return PlainTextResponse("A form of another site is refused.", 403)
        if self._secret is None or path.startswith(self._open_paths):
            return None
        return _unknown(self._secret, scope, headers)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _unknown(secret: Secret, scope: Scope, headers: Headers) -> Response | None:
    """What somebody gets who has not shown the secret; with the token in the URL, the cookie."""
    cookie_name = f"neardup-{scope['server'][1] if scope.get('server') else 0}"
    scope["neardup.cookie"] = cookie_name
    if secret.is_session(_cookie(headers, cookie_name)):
        return None
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret.shown(given):
        return None
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    token = dict(query).get(TOKEN)
    if token is not None and not secret.is_password and secret.shown(token):
        rest = urlencode([pair for pair in query if pair[0] != TOKEN])
        path = "/" + scope["path"].lstrip("/")  # never another host's
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.headers["Set-Cookie"] = secret.cookie(cookie_name)
        return response
    if scope["path"] == LOGIN:
        return None
    if "application/json" in headers.get("accept", "") + headers.get("content-type", ""):
        return PlainTextResponse("The token is missing: Authorization: Bearer TOKEN", 401)
    return RedirectResponse(LOGIN, 303)


class TooLarge(Exception):
    """A request without a length sends more than it may."""


class _Bounded:
    """The body of a request, until it is too large."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = MOST_BODY_BYTES

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLarge
        return message


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Whether a form is ours, as far as the browser tells. The token of the form tells, too."""
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
