"""Every address of the API in one table. The server's routes and the OpenAPI description are generated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from homeostat._version import __version__
from homeostat.runtime.orders import COMMANDS, LONGEST
from homeostat.store.protocol import Store
from homeostat.web import page_answers, whatif
from homeostat.web.parameters import Parameter
from homeostat.web.token_file import Role

# An answer is a context of `page_contexts`, or a mapping where there is no page.
Answer = Callable[[Store, Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`path` has a JSON twin at `path.json`; without a template both are JSON. An expensive answer is cached for
    `keep_s`, whatever is written to the log in the meantime. `empty`: without a log, the answer is an empty list."""

    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: Answer
    template: str = ""
    empty: bool = False
    keep_s: float = 0.0
    role: Role = "read"


ENDPOINTS = (
    Endpoint(
        "/index",
        "List all runs with their health, the newest first",
        page_answers.INDEX,
        page_answers.index,
        "index.html",
        empty=True,
    ),
    Endpoint(
        "/query",
        "Show one run: health, conditions, topology and decisions",
        page_answers.QUERY,
        page_answers.query,
        "query.html",
    ),
    Endpoint("/series", "Return the batches of a run as columns", page_answers.SERIES, page_answers.charts),
    Endpoint(
        "/stories",
        "List the decisions of a run, each from symptom to outcome",
        page_answers.STORIES,
        page_answers.decisions,
        "stories.html",
    ),
    Endpoint("/log", "List the records of a run, the newest first", page_answers.LOG, page_answers.log, "log.html"),
    Endpoint(
        "/audit",
        "List who did what, the newest first (requires the role operate)",
        page_answers.AUDIT,
        page_answers.audit,
        "audit.html",
        role="operate",
    ),
    Endpoint(
        "/record",
        "Explain one record, with the records behind it",
        page_answers.RECORD,
        page_answers.record,
        "record.html",
    ),
    Endpoint(
        "/models/traffic",
        "Forecast the input rate, with an interval",
        page_answers.TRAFFIC,
        page_answers.traffic,
        keep_s=60.0,
    ),
    Endpoint(
        "/models/performance",
        "Predict what another rate or configuration would do",
        whatif.PERFORMANCE,
        whatif.performance,
        "performance.html",
        keep_s=20.0,
    ),
    Endpoint(
        "/plans",
        "Find the cheapest configuration that meets the objective",
        whatif.PLANS,
        whatif.plans,
        "plans.html",
        keep_s=20.0,
    ),
)


class OrderBody(BaseModel):
    """A command for the manager of a run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    run: str = Field(min_length=1, max_length=LONGEST, description="name of the run")
    command: str = Field(description="the command", json_schema_extra={"enum": list(COMMANDS)})
    target: str = Field(
        "",
        max_length=LONGEST,
        description="id of the advice or action, or name of the resolver",
    )
    why: str = Field("", max_length=LONGEST, description="the reason for the command; it is kept in the log")
    values: dict[str, float] = Field(default_factory=dict, max_length=20, description="knobs to set, by name")


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
        "id": {"type": "string", "description": "position of the record in the log"},
        "event": {"enum": ["record", "reset"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


def _refusals(*statuses: int) -> dict[str, Any]:
    words = {
        400: "The request is invalid.",
        401: "A token is required.",
        403: "You do not have permission.",
        404: "Not found.",
        408: "The request was not complete in time.",
        409: "No manager can carry out the command.",
        413: "The request is too large.",
        503: "The log cannot be read at the moment.",
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {str(status): {"description": words[status], "content": content} for status in statuses}


def _parameter_json(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": dict(parameter.schema),
    }


def _get(endpoint: Endpoint) -> dict[str, Any]:
    answer = {"description": endpoint.summary, "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "get": {
            "summary": endpoint.summary,
            "parameters": [_parameter_json(parameter) for parameter in endpoint.parameters],
            "responses": {
                "200": answer,
                "304": {"description": "Nothing has changed."},
                **_refusals(400, 401, 403, 404, 503),
            },
        }
    }


def _events() -> dict[str, Any]:
    last_event_id = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "id of the last event received, as browsers send it when they reconnect; overrides `after`",
        "schema": {"type": "string"},
    }
    return {
        "get": {
            "summary": "Stream new records as server-sent events",
            "parameters": [*(_parameter_json(parameter) for parameter in page_answers.EVENTS), last_event_id],
            "responses": {
                "200": {
                    "description": "An event `record` for each new record, with its position in the log as id. "
                    "An event `reset` means that you missed too many records and should load everything again.",
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
            "description": "What Homeostat observes, decides and does, read from its log. You can also send commands.",
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
                    "summary": "Return the newest numbers of every run for Prometheus",
                    "responses": {
                        "200": {"description": "Prometheus text format", "content": text},
                        **_refusals(401, 403, 503),
                    },
                }
            },
            "/orders.json": {
                "post": {
                    "summary": "Give a command to a manager (requires the role operate)",
                    "security": [{"token": []}],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
                    },
                    "responses": {
                        "202": {
                            "description": "The command is in the log. The manager also writes its answer there.",
                            "content": {"application/json": {"schema": {"type": "object"}}},
                        },
                        **_refusals(400, 401, 403, 404, 408, 409, 413, 503),
                    },
                }
            },
        },
    }
