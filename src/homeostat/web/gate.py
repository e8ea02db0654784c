"""Checks every request before it reaches the pages, and adds the security headers to every answer."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from homeostat.web.responses import RefusalError, refusal_response
from homeostat.web.security import HEADERS, LARGEST_BODY, Person, Sessions, Tokens, cookie, own_host, same_origin

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/sign-in", "/static/", "/session")
ANYONE = Person("anyone on this machine", "read")


class Gate:
    """`local`: only this machine is served, and everyone on it may read. Otherwise every request needs a token."""

    def __init__(self, app: ASGIApp, tokens: Tokens, sessions: Sessions, *, local: bool) -> None:
        self._app, self._tokens, self._sessions, self._local = app, tokens, sessions, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
        else:
            await self._app(scope, _bound(receive), send_guarded)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        headers, method = request.headers, request.scope["method"]
        path = request.url.path
        if self._local and not own_host(headers.get("host", "")):
            return refusal_response(
                request,
                RefusalError(
                    403, "the Host header does not name this machine", "open the dashboard as http://127.0.0.1"
                ),
            )
        if method not in ("GET", "HEAD"):
            if not same_origin(headers, request.url.scheme):
                return refusal_response(
                    request,
                    RefusalError(
                        403, "the request comes from another site", "use the dashboard's own pages or send a token"
                    ),
                )
            if _too_large(headers):
                return refusal_response(request, RefusalError(413, f"the request is larger than {LARGEST_BODY} bytes"))
        person = self._person(request)
        request.state.person = person or (ANYONE if self._local else None)
        if person is None and not self._local and not path.startswith(OPEN):
            if method == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse(f"/sign-in?next={quote(path + '?' + request.url.query)}", 303)
            return refusal_response(
                request, RefusalError(401, "a token is required", "send the header Authorization: Bearer TOKEN")
            )
        return None

    def _person(self, request: HTTPConnection) -> Person | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._tokens.person(token.strip())
        return self._sessions.person(request.cookies.get(cookie(request.headers.get("host", "")), ""))


def _too_large(headers: Headers) -> bool:
    length = headers.get("content-length", "0")
    return not length.isdigit() or int(length) > LARGEST_BODY


def _bound(receive: Receive) -> Receive:
    """Limits a body without a Content-Length too."""
    received_bytes = 0

    async def receive_bounded() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes > LARGEST_BODY:
            raise RefusalError(413, f"the request is larger than {LARGEST_BODY} bytes")
        return message

    return receive_bounded
