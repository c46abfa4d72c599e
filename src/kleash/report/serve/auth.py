"""Who may come in: GET from a browser at this machine, or with a token; and what a page may do."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "::1")
COOKIE = "kleash"
# Nothing from elsewhere, no script but ours, in nobody's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Rules:
    """Names this server answers to; with a token, any address of the machine as well."""

    hosts: tuple[str, ...] = LOCAL
    token: str = field(default="", repr=False)

    def knows(self, host: str) -> bool:
        """Whether a Host header means us: a name of another could be made to point here."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in self.hosts or not self.token:
            return name in self.hosts
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Auth:
    """Every request passes here first; every answer gets its headers here."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self.refusal(scope["method"], Headers(scope=scope))
            refused = refused or (self.login(scope) if self.rules.token else None)
            await (refused or self.app)(scope, receive, headed)

    def refusal(self, method: str, headers: Headers) -> Response | None:
        """Why a request is not answered, if so."""
        try:
            known = self.rules.knows(headers.get("host", ""))
            origin = headers.get("origin")
            ours = origin is None or urlsplit(origin).netloc == headers.get("host")
        except ValueError:
            known = ours = False
        if not known:
            return PlainTextResponse("this server has another name", 421)
        if not ours:
            return PlainTextResponse("asked from another site", 403)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {"allow": "GET"})
        return None

    def login(self, scope: Scope) -> Response | None:
        """A token is shown once, in the address; from then on a cookie says it."""
        token = self.rules.token.encode()
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        # Compared so that the time it takes tells nothing.
        if hmac.compare_digest(query.pop("token", [""])[0].encode(), token):
            rest = urlencode(query, doseq=True)
            # Slashes at the start would name another host.
            address = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
            answer = RedirectResponse(address, 303)
            answer.set_cookie(COOKIE, self.rules.token, httponly=True, samesite="strict")
            return answer
        try:
            jar = SimpleCookie(Headers(scope=scope).get("cookie", ""))
        except CookieError:
            jar = SimpleCookie()
        if COOKIE in jar and hmac.compare_digest(jar[COOKIE].value.encode(), token):
            return None
        return PlainTextResponse("a token is needed: open the address that was printed", 401)
