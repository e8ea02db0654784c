"""A run as one HTML file that needs nothing else: charts, decisions, costs, and whether the objective was kept."""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeostat.core.records import ACTION, BATCH, OUTCOME, Record
from homeostat.core.wording import number, span
from homeostat.store.present import load_present
from homeostat.store.protocol import Store
from homeostat.views.timeline import behind
from homeostat.web import page_contexts, stories, summary
from homeostat.web.pages import STATIC, page
from homeostat.web.responses import as_json
from homeostat.web.series import MOST_BATCHES, row

MOST_STORIES = 200
# A batch that takes in a little less than the objective's rows is noise, not a breach.
NEARLY = 0.95
Holds = Callable[[Mapping[str, float]], bool]


def report(store: Store, run: str) -> bytes:
    """Of a run that the log has; RefusalError if it has not."""
    info = page_contexts.known_run(store, run)
    about = summary.summary(store, info, time.time())
    shown = page_contexts.charts(store, {"run": run, "last": "all", "points": 1_000})
    batches = store.records(run, kinds=(BATCH,), limit=MOST_BATCHES, newest_first=True)[::-1]
    styles = [_file("uPlot.min.css"), _file("style.css")]
    scripts = [_file("uPlot.iife.min.js"), _file("app.js")]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
        )
    )
    return page(
        "report.html",
        about=about,
        present=load_present(store, run).to_json(),
        facts=facts(batches, store.records(run, kinds=(ACTION, OUTCOME)), about["objective"]),
        stories=stories.stories(store, run, 0, MOST_STORIES)["stories"],
        # Within a script only an end of that script could do harm.
        series=as_json(shown).decode().replace("<", "\\u003c"),
        styles=styles,
        scripts=scripts,
        policy=policy,
    )


def facts(batches: Sequence[Record], acts: Sequence[Record], objective: Mapping[str, Any]) -> dict[str, str]:
    """The run in a few numbers, each in words."""
    rows = [row(batch.body) for batch in batches]
    total_s = sum(_counted(each["span_s"]) for each in rows)
    verdicts = Counter(stories.clipped(act.body.get("verdict", ""), 40) for act in acts if act.kind == OUTCOME)
    taken = sum(_counted(each["rows"]) for each in rows)
    told = {
        "Time covered": f"{span(total_s)} in {len(rows):,} batches",
        "Rows processed": number(round(taken) if math.isfinite(taken) else taken),
        "Kept up": _share(rows, _keeps_up, total_s),
    }
    told |= {
        f"Objective of {name} kept": _share(rows, holds, total_s) for name, holds in _objectives(objective).items()
    }
    workers_s = sum(_counted(each["workers"]) * _counted(each["span_s"]) for each in rows)
    told["Cost"] = f"{number(workers_s / 3600)} worker hours"
    told["Actions"] = str(sum(act.kind == ACTION for act in acts))
    told["Verdicts"] = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common(10)) or "none"
    return told


def _objectives(objective: Mapping[str, Any]) -> dict[str, Holds]:
    """Each part of it, and whether a batch holds it."""
    found: dict[str, Holds] = {}
    if per_s := objective.get("throughput_per_s"):
        found[f"{number(per_s)} rows/s"] = lambda each: (
            each["process_per_s"] >= NEARLY * min(per_s, _counted(each["arrival_per_s"]) or per_s)
        )
    if lag_s := objective.get("lag_s"):
        found[f"{span(lag_s)} lag"] = lambda each: each["lag_s"] <= lag_s
    if latency_s := objective.get("latency_p95_s"):
        found[f"{span(latency_s)} latency for 95 %"] = lambda each: each["latency_p95_s"] <= latency_s
    if limit := objective.get("cost_limit"):
        found[f"{number(limit)} workers at most"] = lambda each: each["workers"] <= limit
    return found


def _keeps_up(each: Mapping[str, float]) -> bool:
    period_s = next((value for value in (each["trigger_s"], each["seconds"], each["span_s"]) if value > 0), 0.0)
    return not behind(each["pending_rows"], each["arrival_per_s"], period_s)


def _share(rows: Sequence[Mapping[str, float]], holds: Holds, total_s: float) -> str:
    good_s = sum(_counted(each["span_s"]) for each in rows if holds(each))
    return f"{100 * good_s / total_s:.1f} % of the time" if total_s > 0 else "unknown"


def _counted(value: float) -> float:
    return value if value > 0 and value != float("inf") else 0.0


def _file(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hashes(texts: Sequence[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
