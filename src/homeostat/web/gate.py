"""Checks every request before it reaches the pages, and adds the security headers to every answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from homeostat.web.access import ANSWERS, Entrance, client_of
from homeostat.web.connections import MOST_PER_CLIENT
from homeostat.web.responses import RefusalError, refusal_response
from homeostat.web.security import HEADERS, LARGEST_BODY, loopback, own_host, same_origin
from homeostat.web.throttle import network
from homeostat.web.token_file import Person

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/sign-in", "/session", "/session/end")
OPEN_FOLDER = "/static/"
ANYONE = Person("anyone on this machine", "read")


class Gate:
    """`local`: the server is reachable only from this machine, and everyone on it may read. Otherwise, every request
    needs a token.
    """

    def __init__(self, app: ASGIApp, entrance: Entrance, *, local: bool) -> None:
        self._app, self._entrance, self._local = app, entrance, local
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        client = network(client_of(request))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                self._note(request, message["status"])
            await send(message)

        self._under_way[client] += 1
        try:
            answer = self._refusal(request, client)
            if answer is not None:
                await answer(scope, receive, send_guarded)
            else:
                await self._app(scope, _bound(receive), send_guarded)
        finally:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]

    def _note(self, request: HTTPConnection, status: int) -> None:
        if status in ANSWERS:
            request_line = f"{request.scope['method']} {request.scope['path']}"
            person = getattr(request.state, "person", None)
            self._entrance.trail.refused(None if person is ANYONE else person, client_of(request), request_line, status)

    def _refusal(self, request: HTTPConnection, client: str) -> Response | None:
        try:
            return self._admit(request, client)
        except RefusalError as error:
            return refusal_response(request, error)

    def _admit(self, request: HTTPConnection, client: str) -> Response | None:
        """Decides by the path that is routed. `request.url` is made from the Host header, which the client chooses."""
        headers, method, path = request.headers, request.scope["method"], request.scope["path"]
        if self._local and not own_host(headers.get("host", "")):
            raise RefusalError(
                403, "the Host header does not name this machine", "open the dashboard as http://127.0.0.1"
            )
        if self._under_way[client] > MOST_PER_CLIENT and not loopback(client):
            raise RefusalError(
                503, f"{MOST_PER_CLIENT} requests from {client} are under way", "close other pages first"
            )
        if method not in ("GET", "HEAD"):
            _require_own_page(headers, request.scope["scheme"])
        person = self._entrance.person(request)
        request.state.person = person or (ANYONE if self._local else None)
        if person is not None or self._local or path in OPEN or path.startswith(OPEN_FOLDER):
            return None
        if method == "GET" and "text/html" in headers.get("accept", ""):
            query = request.scope["query_string"].decode("latin-1")
            return RedirectResponse(f"/sign-in?next={quote(path + '?' + query)}", 303)
        raise RefusalError(401, "a token is required", "send the header Authorization: Bearer TOKEN")


def _require_own_page(headers: Headers, scheme: str) -> None:
    if not same_origin(headers, scheme):
        raise RefusalError(403, "the request comes from another site", "use the dashboard's own pages or send a token")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_BODY:
        raise RefusalError(413, f"the request is larger than {LARGEST_BODY} bytes")


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
