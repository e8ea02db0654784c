"""A run as one self-contained HTML file: charts, decisions, costs, and whether the objective was met."""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from homeostat.core.records import ACTION, OUTCOME, BatchContent, OutcomeContent, Record, with_content
from homeostat.core.wording import number, span
from homeostat.log_views.overview import period_s
from homeostat.log_views.timeline import behind, processed_per_s
from homeostat.store.present import load_present
from homeostat.store.protocol import Store
from homeostat.store.rollups import history
from homeostat.web import page_answers, stories, summary
from homeostat.web.page_contexts import ReportContext
from homeostat.web.pages import STATIC, page
from homeostat.web.responses import as_json
from homeostat.web.series import MOST_BATCHES, contents, row
from homeostat.web.texts import clip

MOST_STORIES = 200
MOST_POINTS = 1_000
MOST_VERDICTS = 10
# A batch that processes slightly fewer rows than the objective is noise, not a violation.
NEARLY = 0.95
Holds = Callable[[BatchContent], bool]


def report(store: Store, run: str) -> bytes:
    """The report of a run. Raises RefusalError if the log does not have the run."""
    info = page_answers.known_run(store, run)
    about = summary.summarise(store, info, time.time())
    series = page_answers.charts(store, {"run": run, "last": "all", "points": MOST_POINTS})
    batches = history(store, run, most=MOST_BATCHES)
    styles = [_file("uPlot.min.css"), _file("style.css")]
    scripts = [_file("uPlot.iife.min.js"), _file("app.js")]
    sources = ("default-src 'none'", f"script-src {_hashes(scripts)}", f"style-src {_hashes(styles)}")
    context = ReportContext(
        about=about,
        present=load_present(store, run),
        facts=facts(contents(batches), store.records(run, kinds=(ACTION, OUTCOME)), about.objective),
        stories=stories.stories(store, run, 0, MOST_STORIES).stories,
        # Inside a script element, only a closing tag could do harm.
        series=as_json(series).decode().replace("<", "\\u003c"),
        styles=styles,
        scripts=scripts,
        policy="; ".join(sources),
    )
    return page("report.html", context)


def facts(
    batches: Sequence[BatchContent], decisions: Sequence[Record], objective: Mapping[str, float]
) -> dict[str, str]:
    """The run in a few numbers, each in words. `decisions` are its actions and outcomes."""
    total_s = sum(_finite(batch.span_s) for batch in batches)
    verdicts = Counter(clip(outcome.verdict, 40) for _, outcome in with_content(decisions, OutcomeContent))
    rows = sum(_finite(batch.rows) for batch in batches)
    workers_s = sum(_finite(batch.workers) * _finite(batch.span_s) for batch in batches)
    shares = {f"Objective: {name}": _share(batches, holds, total_s) for name, holds in _objectives(objective).items()}
    return {
        "Time covered": f"{span(total_s)} in {sum(batch.batches for batch in batches):,} batches",
        "Rows processed": number(round(rows) if math.isfinite(rows) else rows),
        "Kept up with the load": _share(batches, _keeps_up, total_s),
        **shares,
        "Cost": f"{number(workers_s / 3600)} worker hours",
        "Actions": str(sum(record.kind == ACTION for record in decisions)),
        "Outcomes": ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common(MOST_VERDICTS)) or "none",
    }


def _objectives(objective: Mapping[str, float]) -> dict[str, Holds]:
    """Each part of the objective, and whether a batch holds it."""
    parts: dict[str, Holds] = {}
    if per_s := objective.get("throughput_per_s"):
        parts[f"at least {number(per_s)} rows/s"] = lambda batch: (
            processed_per_s(batch) >= NEARLY * min(per_s, _finite(batch.arrival_per_s) or per_s)
        )
    if lag_s := objective.get("lag_s"):
        parts[f"lag of at most {span(lag_s)}"] = lambda batch: row(batch)["lag_s"] <= lag_s
    if latency_s := objective.get("latency_p95_s"):
        parts[f"p95 latency of at most {span(latency_s)}"] = lambda batch: row(batch)["latency_p95_s"] <= latency_s
    if limit := objective.get("cost_limit"):
        parts[f"at most {number(limit)} workers"] = lambda batch: batch.workers <= limit
    return parts


def _keeps_up(batch: BatchContent) -> bool:
    return not behind(batch.pending_rows, batch.arrival_per_s, period_s(batch))


def _share(batches: Sequence[BatchContent], holds: Holds, total_s: float) -> str:
    good_s = sum(_finite(batch.span_s) for batch in batches if holds(batch))
    return f"{100 * good_s / total_s:.1f} % of the time" if total_s > 0 else "unknown"


def _finite(value: float) -> float:
    return value if value > 0 and value != float("inf") else 0.0


def _file(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hashes(texts: Sequence[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
