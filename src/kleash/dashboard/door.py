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
        return name in self.hosts or bool(self.token and _address(name))


def _address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Door:
    """Every request passes here first; every answer gets its headers here."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self.refusal(scope)
        await (refused or self.app)(scope, receive, headed)

    def refusal(self, scope: Scope) -> Response | None:
        """Why not, if so; or the way back to the same page once a token has been shown."""
        headers = Headers(scope=scope)
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
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {"allow": "GET"})
        return self.unshown(scope, headers) if self.rules.token else None

    def unshown(self, scope: Scope, headers: Headers) -> Response | None:
        """A token is shown once, in the address; from then on a cookie says it."""
        token = self.rules.token
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if same(query.pop("token", [""])[0], token):
            rest = urlencode(query, doseq=True)
            # Slashes at the start would name another host.
            address = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
            answer = RedirectResponse(address, 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            jar = SimpleCookie()
        if COOKIE in jar and same(jar[COOKIE].value, token):
            return None
        return PlainTextResponse("a token is needed: open the address that was printed", 401)


def same(given: str, token: str) -> bool:
    """Compared so that the time it takes tells nothing."""
    return hmac.compare_digest(given.encode(), token.encode())
