"""Answers the question behind each page and its JSON twin, from the log."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from homeostat.core.errors import HomeostatError, StoreError
from homeostat.core.records import DELIVERY, KINDS, LISTED_KINDS, Record
from homeostat.log_views.audit import MOST_LINES, audit_trail
from homeostat.log_views.catching_up import catching_up, catching_up_sentence
from homeostat.log_views.overview import STOPPED, undelivered
from homeostat.log_views.traffic_history import apart_json, arrival_history, as_json, forecast_apart
from homeostat.store import explain
from homeostat.store.present import load_matrices, load_present
from homeostat.store.protocol import RunInfo, Store
from homeostat.store.sql_store import SqlStore
from homeostat.web import stories, summary
from homeostat.web.conditions import answer, conditions
from homeostat.web.page_contexts import (
    AuditContext,
    IndexContext,
    LogContext,
    QueryContext,
    RecordContext,
    StoriesContext,
)
from homeostat.web.parameters import choice, text, whole
from homeostat.web.responses import RefusalError
from homeostat.web.series import MOST_BATCHES, MOST_POINTS, OBJECTIVE_COLUMNS, series

RUN = text("run", "name of the run, as /index.json lists it", required=True, least=1)
SPANS_S = {"15 min": 900.0, "1 h": 3_600.0, "6 h": 21_600.0, "1 d": 86_400.0, "7 d": 604_800.0, "all": math.inf}
# The first view of a longer history: enough to see today's load at a glance.
FIRST_SPAN = "6 h"
SPAN = choice("last", "how much of the history to return", tuple(SPANS_S), "all")
HORIZONS_S = {name: SPANS_S[name] for name in ("15 min", "1 h", "6 h", "1 d")}
STORIES_ON_A_PAGE = 20
STORIES_ON_A_QUERY_PAGE = 10
LONGEST_CHAIN = 200
LONGEST_EXPLANATION = 20_000

INDEX = (whole("offset", "how many runs to skip", 0, 100_000, 0), whole("limit", "most runs to return", 1, 500, 200))
QUERY = (RUN,)
SERIES = (RUN, SPAN, whole("points", "most points in a line", 10, 2_000, MOST_POINTS))
STORIES = (
    RUN,
    whole("offset", "how many decisions to skip", 0, 5_000, 0),
    whole("limit", "most decisions to return", 1, 100, STORIES_ON_A_PAGE),
)
LOG = (
    RUN,
    choice("kind", "only records of this kind; by default every kind but batches", ("", *KINDS), ""),
    text("component", "only records of this component"),
    whole("offset", "how many records to skip", 0, 100_000, 0),
    whole("limit", "most records to return", 1, 500, 100),
)
AUDIT = (
    whole("offset", "how many entries to skip", 0, MOST_LINES, 0),
    whole("limit", "most entries to return", 1, 500, 100),
)
RECORD = (RUN, text("id", "the record's id", required=True, least=1))
TRAFFIC = (RUN, choice("horizon", "how far ahead to forecast", tuple(HORIZONS_S), "1 h"))
EVENTS = (
    text("run", "only events of this run"),
    whole("after", "id of the last event that you have received", 0, 10**11 - 1, 0),
)
Parameters = Mapping[str, Any]


def index(store: Store, parameters: Parameters) -> IndexContext:
    infos, after = store.runs()[::-1], parameters["offset"] + parameters["limit"]
    summaries = [summary.summarise(store, info, time.time()) for info in infos[parameters["offset"] : after]]
    return IndexContext(summary.by_application(summaries), len(infos), after if after < len(infos) else None)


def query(store: Store, parameters: Parameters) -> QueryContext:
    info = known_run(store, parameters["run"])
    about = summary.summarise(store, info, time.time())
    present = load_present(store, info.name)
    checks = conditions(about, present)
    page = stories.stories(store, info.name, 0, STORIES_ON_A_QUERY_PAGE)
    return QueryContext(
        summary=about,
        present=present,
        matrices=load_matrices(store, info.name).components,
        span="all" if info.last_s - info.started_s <= SPANS_S[FIRST_SPAN] else FIRST_SPAN,
        answer=answer(about, checks),
        catching_up=catching_up_sentence(catching_up(store, info.name)) if about.health != STOPPED else "",
        conditions=checks,
        unanswered=stories.unanswered_orders(store, info.name),
        undelivered=undelivered(store.records(info.name, kinds=(DELIVERY,), limit=1, newest_first=True)),
        stories=page.stories,
        next=page.next,
    )


def charts(store: Store, parameters: Parameters) -> dict[str, Any]:
    info = known_run(store, parameters["run"])
    objective = load_present(store, info.name).objective
    extra = [name for name in OBJECTIVE_COLUMNS if name in objective]
    columns = series(store, info.name, SPANS_S[parameters["last"]], parameters["points"], extra)
    return asdict(columns) | {"objective": objective, "simulated": summary.is_simulated(info)}


def decisions(store: Store, parameters: Parameters) -> StoriesContext:
    info = known_run(store, parameters["run"])
    page = stories.stories(store, info.name, parameters["offset"], parameters["limit"])
    return StoriesContext(info.name, page.stories, page.next)


def log(store: Store, parameters: Parameters) -> LogContext:
    info = known_run(store, parameters["run"])
    kinds = [parameters["kind"]] if parameters["kind"] else LISTED_KINDS
    after = parameters["offset"] + parameters["limit"]
    records = store.records(
        info.name, kinds=kinds, component=parameters["component"], limit=after + 1, newest_first=True
    )
    lines = tuple(stories.line(each) for each in records[parameters["offset"] : after])
    return LogContext(info.name, parameters["kind"], lines, after if len(records) > after else None)


def audit(store: Store, parameters: Parameters) -> AuditContext:
    assert isinstance(store, SqlStore)  # the address of the log says where the accesses are recorded
    after = parameters["offset"] + parameters["limit"]
    lines = audit_trail(store, store.log, after + 1)
    return AuditContext(tuple(lines[parameters["offset"] : after]), after if len(lines) > after else None)


def record(store: Store, parameters: Parameters) -> RecordContext:
    info = known_run(store, parameters["run"])
    focus = store.get(info.name, parameters["id"])
    if focus is None:
        raise RefusalError(404, "this run has no record with that id", "see its log for the ids")
    chain = store.chain(info.name, focus.id)
    return RecordContext(
        run=info.name,
        record={each.name: getattr(focus, each.name) for each in fields(focus)},
        line=stories.line(focus),
        text=_explanation(store, info.name, focus)[:LONGEST_EXPLANATION],
        chain=tuple(stories.line(each) for each in chain[:LONGEST_CHAIN]),
        left_out=max(0, len(chain) - LONGEST_CHAIN),
    )


def traffic(store: Store, parameters: Parameters) -> dict[str, Any]:
    from homeostat.models import forecast as models
    from homeostat.models.load_ahead import MOST_SEPARATE_SOURCES

    info = known_run(store, parameters["run"])
    arrivals = arrival_history(store, info.name, MOST_BATCHES)
    horizon_s = HORIZONS_S[parameters["horizon"]]
    history = models.regular(arrivals.times_s, arrivals.per_s, horizon_s=horizon_s)
    if not history.known_count:
        raise RefusalError(404, "this run has no batches to forecast from", "let it run for a while")
    sources = arrivals.sources if len(arrivals.sources) <= MOST_SEPARATE_SOURCES else {}
    apart = forecast_apart(arrivals.times_s, sources, math.inf, horizon_s)
    return {"run": info.name, "sources": apart_json(apart), **as_json(models.forecast(history, horizon_s))}


def known_run(store: Store, name: str) -> RunInfo:
    info = summary.info(store, name)
    if info is None:
        raise RefusalError(404, "this log has no run with that name", "see /index.json for the names")
    return info


def _explanation(store: Store, run: str, focus: Record) -> str:
    try:
        return explain.explain(store, run, focus.id)
    except StoreError:
        raise
    except HomeostatError as error:
        return error.line
