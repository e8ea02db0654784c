"""What each page and its JSON twin show, read from the log."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from homeostat.core.errors import HomeostatError, StoreError
from homeostat.core.records import BATCH, KINDS, Record
from homeostat.store import explain
from homeostat.store.present import load_matrices, load_present
from homeostat.store.protocol import RunInfo, Store
from homeostat.views.traffic_history import apart_json, arrived, as_json, forecast_apart
from homeostat.web import stories, summary
from homeostat.web.conditions import answer, conditions
from homeostat.web.parameters import choice, text, whole
from homeostat.web.responses import RefusalError
from homeostat.web.series import MOST_BATCHES, MOST_POINTS, WANTED, series

RUN = text("run", "the run, as the list names it", required=True, least=1)
SPANS_S = {"15 min": 900.0, "1 h": 3_600.0, "6 h": 21_600.0, "1 d": 86_400.0, "7 d": 604_800.0, "all": math.inf}
LONG = "6 h"  # of a longer history the page shows only so much at first
SPAN = choice("last", "how much of its history", tuple(SPANS_S), "all")
HORIZONS_S = {name: SPANS_S[name] for name in ("15 min", "1 h", "6 h", "1 d")}
LONGEST_CHAIN = 200
LONGEST_EXPLANATION = 20_000

INDEX = (whole("offset", "how many runs to leave out", 0, 100_000, 0), whole("limit", "runs on a page", 1, 500, 200))
QUERY = (RUN,)
SERIES = (RUN, SPAN, whole("points", "the most points of a line", 10, 2_000, MOST_POINTS))
STORIES = (RUN, whole("offset", "how many to leave out", 0, 5_000, 0), whole("limit", "on a page", 1, 100, 20))
LOG = (
    RUN,
    choice("kind", "only this kind; all but batches if left out", ("", *KINDS), ""),
    text("component", "only this component"),
    whole("offset", "how many to leave out", 0, 100_000, 0),
    whole("limit", "on a page", 1, 500, 100),
)
RECORD = (RUN, text("id", "the record's id", required=True, least=1))
TRAFFIC = (RUN, choice("horizon", "how far ahead", tuple(HORIZONS_S), "1 h"))
EVENTS = (text("run", "only events of this run"), whole("after", "the last event seen", 0, 10**11 - 1, 0))
Asked = Mapping[str, Any]


def index(store: Store, asked: Asked) -> dict[str, Any]:
    return summary.runs(store, time.time(), asked["offset"], asked["limit"])


def query(store: Store, asked: Asked) -> dict[str, Any]:
    info = known_run(store, asked["run"])
    about = summary.summary(store, info, time.time())
    now = load_present(store, info.name)
    found = conditions(about, now)
    return {
        "summary": about,
        "present": now.to_json(),
        "matrices": asdict(load_matrices(store, info.name))["components"],
        "span": "all" if info.last_s - info.started_s <= SPANS_S[LONG] else LONG,
        "answer": answer(about, found),
        "conditions": [condition._asdict() for condition in found],
        "unanswered": stories.unanswered(store, info.name),
        **stories.stories(store, info.name, 0, 20),
    }


def charts(store: Store, asked: Asked) -> dict[str, Any]:
    info = known_run(store, asked["run"])
    now = load_present(store, info.name)
    wanted = [name for name in WANTED if name in now.objective]
    shown = series(store, info.name, SPANS_S[asked["last"]], asked["points"], wanted)
    return shown | {"objective": now.objective, "simulated": summary.simulated(info)}


def told(store: Store, asked: Asked) -> dict[str, Any]:
    info = known_run(store, asked["run"])
    return {"run": info.name, **stories.stories(store, info.name, asked["offset"], asked["limit"])}


def log(store: Store, asked: Asked) -> dict[str, Any]:
    info = known_run(store, asked["run"])
    kinds = [asked["kind"]] if asked["kind"] else [kind for kind in KINDS if kind != BATCH]
    wanted = asked["offset"] + asked["limit"]
    found = store.records(info.name, kinds=kinds, component=asked["component"], limit=wanted + 1, newest_first=True)
    return {
        "run": info.name,
        "kind": asked["kind"],
        "records": [stories.line(record) for record in found[asked["offset"] : wanted]],
        "next": wanted if len(found) > wanted else None,
    }


def record(store: Store, asked: Asked) -> dict[str, Any]:
    info = known_run(store, asked["run"])
    found = store.get(info.name, asked["id"])
    if found is None:
        raise RefusalError(404, "this run has no such record", "see its log")
    chain = store.chain(info.name, found.id)
    return {
        "run": info.name,
        "record": stories.whole(found),
        "line": stories.line(found),
        "text": _explained(store, info.name, found)[:LONGEST_EXPLANATION],
        "chain": [stories.line(each) for each in chain[:LONGEST_CHAIN]],
        "left_out": max(0, len(chain) - LONGEST_CHAIN),
    }


def traffic(store: Store, asked: Asked) -> dict[str, Any]:
    from homeostat.models import forecast as models
    from homeostat.models.load_ahead import MOST_SEPARATE_SOURCES

    info = known_run(store, asked["run"])
    seen = arrived(store, info.name, MOST_BATCHES)
    horizon_s = HORIZONS_S[asked["horizon"]]
    history = models.regular(seen.times_s, seen.per_s, horizon_s=horizon_s)
    if not history.known:
        raise RefusalError(404, "this run has no batches to forecast from", "let it run for a while")
    sources = seen.sources if len(seen.sources) <= MOST_SEPARATE_SOURCES else {}
    apart = forecast_apart(seen.times_s, sources, math.inf, horizon_s)
    return {"run": info.name, "sources": apart_json(apart), **as_json(models.forecast(history, horizon_s))}


def known_run(store: Store, name: str) -> RunInfo:
    info = summary.info(store, name)
    if info is None:
        raise RefusalError(404, "there is no such run in this log", "see the list")
    return info


def _explained(store: Store, run: str, found: Record) -> str:
    try:
        return explain.explain(store, run, found.id)
    except StoreError:
        raise
    except HomeostatError as error:
        return error.line
