"""Every address of the API in one table: the server's routes and the OpenAPI description are both made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from homeostat._version import __version__
from homeostat.runtime.orders import COMMANDS, LONGEST
from homeostat.store.protocol import Store
from homeostat.web import page_contexts, whatif
from homeostat.web.parameters import Parameter

Answer = Callable[[Store, Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`path` has a JSON twin at `path.json`; without a template both are JSON. An answer that costs much is given out
    for `keep_s`, whatever was written meanwhile."""

    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: Answer
    template: str = ""
    empty: bool = False
    keep_s: float = 0.0


ENDPOINTS = (
    Endpoint(
        "/index",
        "Every run, the newest first, with its health",
        page_contexts.INDEX,
        page_contexts.index,
        "index.html",
        empty=True,
    ),
    Endpoint(
        "/query",
        "One run: health, conditions, topology, decisions",
        page_contexts.QUERY,
        page_contexts.query,
        "query.html",
    ),
    Endpoint("/series", "Its batches as columns, and its actions", page_contexts.SERIES, page_contexts.charts),
    Endpoint(
        "/stories",
        "Its decisions, each from symptom to outcome",
        page_contexts.STORIES,
        page_contexts.told,
        "stories.html",
    ),
    Endpoint("/log", "Its records, the newest first", page_contexts.LOG, page_contexts.log, "log.html"),
    Endpoint(
        "/record", "One record, explained, with its chain", page_contexts.RECORD, page_contexts.record, "record.html"
    ),
    Endpoint(
        "/models/traffic",
        "What will arrive, with an interval",
        page_contexts.TRAFFIC,
        page_contexts.traffic,
        keep_s=60.0,
    ),
    Endpoint(
        "/models/performance",
        "What a rate and a configuration would do, with the curve over the rate",
        whatif.PERFORMANCE,
        whatif.performance,
        "performance.html",
        keep_s=20.0,
    ),
    Endpoint(
        "/plans",
        "The cheapest configuration that holds the objective, and why the others lost",
        whatif.PLANS,
        whatif.plans,
        "plans.html",
        keep_s=20.0,
    ),
)


class OrderBody(BaseModel):
    """A person's order to the loop that regulates a run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    run: str = Field(min_length=1, max_length=LONGEST, description="the run")
    command: str = Field(description="what to do", json_schema_extra={"enum": list(COMMANDS)})
    target: str = Field("", max_length=LONGEST, description="the advice, the action or the resolver meant")
    why: str = Field("", max_length=LONGEST, description="the reason, for the log")
    values: dict[str, float] = Field(default_factory=dict, max_length=20, description="knobs to apply")


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "what", "where", "fix"],
            "properties": {
                "status": {"type": "integer"},
                **{name: {"type": "string"} for name in ("what", "where", "fix")},
            },
        }
    },
}


_EVENT = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string", "description": "its place in the log"},
        "event": {"enum": ["record", "reset"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


def _refusals(*statuses: int) -> dict[str, Any]:
    words = {
        400: "It cannot be asked so.",
        401: "A token is needed.",
        403: "It is not allowed.",
        404: "There is no such thing.",
        408: "It was not complete in time.",
        409: "Nobody regulates this run now.",
        413: "It is too large.",
        503: "The log cannot be read now.",
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {str(status): {"description": words[status], "content": content} for status in statuses}


def _asked(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": dict(parameter.schema),
    }


def _get(endpoint: Endpoint) -> dict[str, Any]:
    answered = {"description": endpoint.summary, "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "get": {
            "summary": endpoint.summary,
            "parameters": [_asked(parameter) for parameter in endpoint.parameters],
            "responses": {
                "200": answered,
                "304": {"description": "It is as it was."},
                **_refusals(400, 401, 403, 404, 503),
            },
        }
    }


def _events() -> dict[str, Any]:
    seen = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "the last event seen, as a browser sends it that connects again; counts more than `after`",
        "schema": {"type": "string"},
    }
    return {
        "get": {
            "summary": "News of the log as server-sent events, without end",
            "parameters": [*(_asked(parameter) for parameter in page_contexts.EVENTS), seen],
            "responses": {
                "200": {
                    "description": "Events `record`, each a line of the log with its place as id, and `reset` for "
                    "whoever missed too much and should read anew.",
                    "content": {"text/event-stream": {"schema": _EVENT}},
                },
                **_refusals(400, 401, 403, 503),
            },
        }
    }


def description() -> dict[str, Any]:
    order = OrderBody.model_json_schema()
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Homeostat",
            "version": __version__,
            "description": "What Homeostat sees, thinks and does, read from its log; and orders to it.",
        },
        "components": {
            "schemas": {"Error": _ERROR, "Order": order},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
        "paths": {
            **{f"{endpoint.path}.json": _get(endpoint) for endpoint in ENDPOINTS},
            "/events": _events(),
            "/metrics": {
                "get": {
                    "summary": "The newest numbers of every run for Prometheus",
                    "responses": {
                        "200": {"description": "Prometheus' text format", "content": text},
                        **_refusals(401, 403, 503),
                    },
                }
            },
            "/orders.json": {
                "post": {
                    "summary": "Give an order; needs the role operate",
                    "security": [{"token": []}],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                    },
                    "responses": {
                        "202": {
                            "description": "It is in the log; its answer will be there too.",
                            "content": {"application/json": {"schema": {"type": "object"}}},
                        },
                        **_refusals(400, 401, 403, 404, 408, 409, 413, 503),
                    },
                }
            },
        },
    }
