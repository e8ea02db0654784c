"""The dashboard and the API as one ASGI application over a log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from homeostat.core.errors import HomeostatError, NoLogError
from homeostat.runtime.orders import order
from homeostat.store.opening import open_store
from homeostat.web import page_answers
from homeostat.web.access import AccessTrail, Entrance, client_of
from homeostat.web.answer_cache import AnswerCache, Question
from homeostat.web.endpoints import ENDPOINTS, Endpoint, OrderBody, description
from homeostat.web.feed import MOST_VIEWERS, Feed
from homeostat.web.gate import Gate
from homeostat.web.metrics import MEDIA_TYPE, exposition
from homeostat.web.page_contexts import IndexContext, PageFrame, SignInContext
from homeostat.web.pages import STATIC, page
from homeostat.web.parameters import read
from homeostat.web.reader import Reader
from homeostat.web.responses import HTML_TYPE, JSON_TYPE, Body, RefusalError, as_json, refusal_response, with_etag
from homeostat.web.security import SESSION_S, cookie
from homeostat.web.summary import is_simulated
from homeostat.web.token_file import Person, Role, Tokens

# A page sends the last event that it received. Any answer made after that event is new enough for it.
SEEN = "homeostat-seen"
# Predictions computed at once: a client that asks for a thousand of them must not block the other pages.
MOST_COSTLY = 2
BODY_WITHIN_S = 10.0
Show = Callable[[Request], Awaitable[Response]]


class Dashboard:
    """`local`: the server is reachable only from this machine, and everyone on it may read without a token. `secure`:
    people use https, even if this server itself uses http behind a proxy.
    """

    def __init__(
        self,
        reader: Reader,
        tokens: Tokens,
        *,
        local: bool = True,
        secure: bool = False,
        trail: AccessTrail | None = None,
    ) -> None:
        self._reader, self._local, self._secure = reader, local, secure
        self._entrance = Entrance(tokens, trail or AccessTrail(reader.log))
        self._cache = AnswerCache()
        self._costly = asyncio.Semaphore(MOST_COSTLY)
        self.feed: Feed | None = None

    def application(self) -> Gate:
        routes = [Route("/", self._page(ENDPOINTS[0]))]
        for endpoint in ENDPOINTS:
            routes.append(Route(f"{endpoint.path}.json", self._twin(endpoint)))
            handler = self._page(endpoint) if endpoint.template else self._twin(endpoint)
            routes.append(Route(endpoint.path, handler))
        routes += [
            Route("/openapi.json", lambda request: with_etag(request, Body.of(as_json(description())), JSON_TYPE)),
            Route("/metrics", self._metrics),
            Route("/events", self._events),
            Route("/orders", self._order_form, methods=["POST"]),
            Route("/orders.json", self._order, methods=["POST"]),
            Route("/sign-in", self._sign_in_page),
            Route("/session", self._sign_in, methods=["POST"]),
            Route("/session/end", self._sign_out, methods=["POST"]),
        ]
        app = Starlette(
            routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
            lifespan=self._lifespan,
            exception_handlers={HomeostatError: _refusal, HTTPException: _http, Exception: _report_unexpected},
        )
        return Gate(app, self._entrance, local=self._local)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.feed = Feed(self._reader)
        following = asyncio.create_task(self.feed.follow())
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    def _answer(self, endpoint: Endpoint, request: Request) -> Any:
        parameters = read(endpoint.parameters, request.query_params.multi_items())
        try:
            return self._reader.read(lambda store: endpoint.answer(store, parameters))
        except NoLogError:
            if endpoint.empty and self._reader.is_empty:
                return IndexContext()
            raise

    def _twin(self, endpoint: Endpoint) -> Show:
        async def show(request: Request) -> Response:
            _require_role(request, endpoint.role)

            def body() -> bytes:
                return as_json(self._answer(endpoint, request))

            return with_etag(request, await self._from_cache(request, endpoint, (_here(request),), body), JSON_TYPE)

        return show

    def _page(self, endpoint: Endpoint) -> Show:
        async def show(request: Request) -> Response:
            _require_role(request, endpoint.role)
            person, here = _person(request), _here(request)
            twin = f"{endpoint.path}.json{_question(request)}"

            def body() -> bytes:
                return page(endpoint.template, self._answer(endpoint, request), PageFrame(person, here, twin))

            return with_etag(request, await self._from_cache(request, endpoint, (here, person), body), HTML_TYPE)

        return show

    async def _from_cache(self, request: Request, endpoint: Endpoint, key: Hashable, make: Callable[[], bytes]) -> Body:
        """Use the cache as long as the log has no new records, or none that the client knows of."""
        if endpoint.role != "read":  # not from the log alone, and seldom parameters
            return Body.of(await asyncio.to_thread(make))
        client_position = _whole(request.headers.get(SEEN, ""))
        question = Question(key, self._position, make, client_position, endpoint.keep_s)
        if not endpoint.keep_s:
            return await self._cache.get(question)
        async with self._costly:
            return await self._cache.get(question)

    def _position(self) -> int | None:
        try:
            return self._reader.read(lambda store: store.position())
        except NoLogError:
            return None

    def _metrics(self, request: Request) -> Response:
        try:
            text = self._reader.read(exposition)
        except NoLogError:
            text = ""
        return Response(text.encode("utf-8", "backslashreplace"), media_type=MEDIA_TYPE)

    async def _events(self, request: Request) -> Response:
        parameters = read(page_answers.EVENTS, request.query_params.multi_items())
        if self.feed is None or self.feed.viewers >= MOST_VIEWERS:
            raise RefusalError(503, f"{MOST_VIEWERS} viewers are already connected", "close another page first")
        client_position = _whole(request.headers.get("last-event-id", ""))
        after = parameters["after"] or None if client_position is None else client_position
        kind, headers = "text/event-stream", {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":  # there is no body to stream
            return Response(media_type=kind, headers=headers)
        events = self._while_allowed(request, self.feed.stream(parameters["run"], after))
        return StreamingResponse(events, media_type=kind, headers=headers)

    async def _while_allowed(self, request: Request, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        """A stream ends with the token that opened it. While nothing happens, this is checked with every keep-alive."""
        async with aclosing(events):
            async for event in events:
                if not self._local and self._entrance.person(request) is None:
                    return
                yield event

    async def _order(self, request: Request) -> Response:
        person = _operator(request)
        try:
            body = OrderBody.model_validate(json.loads(await _body(request) or b"null"))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise RefusalError(400, first["msg"], "see /openapi.json", where=where[:100]) from None
        except (ValueError, RecursionError):
            raise RefusalError(400, "the body is not valid JSON", "see /openapi.json") from None
        id = await asyncio.to_thread(self._give, body, person, f"API from {client_of(request)}")
        return Response(as_json({"id": id, "run": body.run}), 202, media_type=JSON_TYPE)

    async def _order_form(self, request: Request) -> Response:
        person, form = _operator(request), await _form(request)
        values: dict[str, float] = {}
        if form.get("knob"):
            try:
                values[form["knob"]] = float(form.get("value", ""))
            except ValueError:
                raise RefusalError(400, "the value must be a number") from None
        try:
            body = OrderBody(
                run=form.get("run", ""),
                command=form.get("command", ""),
                target=form.get("target", ""),
                why=form.get("why", ""),
                values=values,
            )
        except ValidationError as error:
            raise RefusalError(400, error.errors()[0]["msg"]) from None
        await asyncio.to_thread(self._give, body, person, f"dashboard from {client_of(request)}")
        return RedirectResponse(_within(form.get("next", "/")), 303)

    def _give(self, body: OrderBody, person: Person, origin: str) -> str:
        """Writes the command into the log, where the run's manager finds it within a second."""
        info = self._reader.read(lambda store: page_answers.known_run(store, body.run))
        if is_simulated(info):
            raise RefusalError(409, "this run was simulated and has ended, so no manager can carry out the command")
        record = order(
            body.command,
            by=person.name,
            now_s=time.time(),
            why=body.why,
            target=body.target,
            values=body.values,
            role=person.role,
            origin=origin,
        )
        store = open_store(self._reader.log, guest=True)
        try:
            store.append(info.name, [record])
        finally:
            store.close()
        return record.id

    def _sign_in_page(self, request: Request) -> Response:
        context = SignInContext(_within(request.query_params.get("next", "/")))
        return Response(page("sign-in.html", context, PageFrame(_person(request))), media_type=HTML_TYPE)

    async def _sign_in(self, request: Request) -> Response:
        form = await _form(request)
        place = _within(form.get("next", "/"))
        session = self._entrance.sign_in(request, form.get("token", "").strip())
        if session is None:
            body = page("sign-in.html", SignInContext(place, wrong=True))
            return Response(body, 403, media_type=HTML_TYPE)
        answer = RedirectResponse(place, 303)
        answer.set_cookie(
            cookie(request.headers.get("host", "")),
            session[0],
            max_age=int(SESSION_S),
            httponly=True,
            samesite="strict",
            secure=self._secure or request.scope["scheme"] == "https",
        )
        return answer

    async def _sign_out(self, request: Request) -> Response:
        self._entrance.sign_out(request)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(cookie(request.headers.get("host", "")))
        return answer


def _person(request: Request) -> Person | None:
    return getattr(request.state, "person", None)


def _require_role(request: Request, role: Role) -> Person | None:
    person = _person(request)
    if role != "read" and (person is None or not person.may(role)):
        raise RefusalError(403, f"you need the role {role!r}", "sign in with a token that has this role")
    return person


def _operator(request: Request) -> Person:
    person = _require_role(request, "operate")
    assert person is not None
    return person


async def _body(request: Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            return await request.body()
    except TimeoutError:
        raise RefusalError(408, f"the request was not complete within {BODY_WITHIN_S:g} s") from None


async def _form(request: Request) -> dict[str, str]:
    text = (await _body(request)).decode("utf-8", "replace")
    try:
        return dict(parse_qsl(text, max_num_fields=20))
    except ValueError:
        raise RefusalError(400, "The form has expired.", "Reload the page and try again.") from None


def _here(request: Request) -> str:
    return str(request.scope["path"]) + _question(request)


def _question(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return f"?{query}" if query else ""


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _within(place: str) -> str:
    """The address if it is a page of this dashboard, else the start page, so that a crafted link cannot lead
    elsewhere.
    """
    inside = place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()
    return place if inside else "/"


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HomeostatError)
    return refusal_response(request, error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: "page not found", 405: "method not allowed"}.get(error.status_code, str(error.detail))
    answer = refusal_response(request, RefusalError(error.status_code, what))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


async def _report_unexpected(request: Request, error: Exception) -> Response:
    return refusal_response(request, RefusalError(500, f"unexpected {type(error).__name__}", "see the server's output"))
