"""Answers as HTML or JSON, and refusals in the form that the client asked for."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from homeostat.core.errors import ConfigError, HomeostatError, NoLogError

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
_WORTH_PACKING = 1_000
_LEVELS = 60


class RefusalError(HomeostatError):
    """A request that cannot be answered, with its HTTP status and, where it helps, when to try again."""

    def __init__(self, status: int, what: str, fix: str = "", where: str = "", retry_s: float = 0.0) -> None:
        self.status, self.retry_s = status, retry_s
        super().__init__(what, where=where, fix=fix)


def plain(value: object, levels: int = _LEVELS) -> Any:
    """The value as JSON allows it: dataclasses become objects, tuples lists, lone surrogates escapes; NaN, infinities
    and what is nested too deeply become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), levels - 1) for each in fields(value)} if levels else None
    if isinstance(value, Mapping | Sequence) and not levels:
        return None
    if isinstance(value, Mapping):
        return {str(plain(str(key))): plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item, levels - 1) for item in value]
    return value


def as_json(value: object) -> bytes:
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes to send, plain and compressed, and their tag: made once, however many clients ask for them."""

    plain: bytes
    packed: bytes
    etag: str

    @classmethod
    def of(cls, plain: bytes) -> Body:
        packed = gzip.compress(plain, compresslevel=1, mtime=0) if len(plain) >= _WORTH_PACKING else b""
        return cls(plain, packed, f'W/"{hashlib.blake2b(plain, digest_size=12).hexdigest()}"')


def with_etag(request: HTTPConnection, body: Body, media_type: str) -> Response:
    """With an ETag; a client that already has this version gets 304 and no body."""
    vary = "cookie, authorization, accept-encoding"
    headers = {"etag": body.etag, "cache-control": "no-cache", "vary": vary}
    client_tags = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if "*" in client_tags or body.etag.removeprefix("W/") in client_tags:
        return Response(status_code=304, headers=headers)
    if body.packed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(body.packed, headers=headers | {"content-encoding": "gzip"}, media_type=media_type)
    return Response(body.plain, headers=headers, media_type=media_type)


def error_body(status: int, error: HomeostatError) -> dict[str, Any]:
    return {"error": {"status": status, "what": error.what, "where": error.where, "fix": error.fix}}


def status_of(error: HomeostatError) -> int:
    if isinstance(error, RefusalError):
        return error.status
    if isinstance(error, NoLogError):
        return 404
    return 400 if isinstance(error, ConfigError) else 503


def wants_page(request: HTTPConnection) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.scope["path"].endswith(".json")


def refusal_response(request: HTTPConnection, error: HomeostatError) -> Response:
    status = status_of(error)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, RefusalError) and error.retry_s:
        headers["retry-after"] = str(math.ceil(error.retry_s))
    if wants_page(request):
        from homeostat.web.page_contexts import ErrorContext
        from homeostat.web.pages import page

        body, kind = page("error.html", ErrorContext(status, error)), HTML_TYPE
    else:
        body, kind = as_json(error_body(status, error)), JSON_TYPE
    return Response(body, status, headers=headers | {"cache-control": "no-store"}, media_type=kind)
