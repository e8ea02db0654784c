"""`homeostat status`: shows the current state of an application."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.find_application import application_directory
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, console, print_json, print_table, visible
from homeostat.core.wording import rows_waiting
from homeostat.strict.units import format_size

if TYPE_CHECKING:
    from homeostat.core.records import BatchContent
    from homeostat.log_views.overview import Overview, QueryState
    from homeostat.log_views.resource_usage import DiskUse, ResourceUsage

NO_QUERY = "no streaming query is running"


def status(
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR|APP", help="Application to show. Default: the one started last."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show the current state of an application: queries, last batch, diagnoses, actions, knobs and resources.

    It covers applications that `homeostat run` started and applications that call hs.attach.

    Exit code 0: healthy. Exit code 3: not running, falling behind, or unknown.
    """
    from homeostat.log_views.overview import HEALTHY, overview

    now_s = time.time()
    application = overview(application_directory(directory), now_s)
    if json:
        print_json(as_json(application, now_s))
    else:
        _print(application, now_s)
    if application.health != HEALTHY:
        raise typer.Exit(EXIT_UNHEALTHY)


def as_json(application: Overview, now_s: float) -> dict[str, Any]:
    return {
        "directory": str(application.directory),
        "health": application.health,
        "alive": application.alive,
        "driver": dict(application.about),
        "knobs": dict(application.knobs),
        "capabilities": [dict(line) for line in application.capabilities],
        "queries": [_query_json(query, now_s) for query in application.queries],
        "usage": [asdict(use) for use in application.usage.uses],
        "disks": [_disk_json(each) for each in application.usage.disks],
    }


def _disk_json(use: DiskUse) -> dict[str, Any]:
    disk = use.disk
    return {
        "uses": disk.uses,
        "path": disk.path,
        "free_bytes": disk.free_bytes,
        "total_bytes": disk.total_bytes,
        "alert_below_bytes": use.alert_below_bytes,
    }


def print_capabilities(lines: Sequence[Mapping[str, Any]]) -> None:
    """An action that is possible but has not worked in this run yet is shown as `not tried`."""
    rows = [(str(line["what"]), _claim(line), str(line["reason"])) for line in lines]
    print_table(("possible action", "", "why"), rows, styles=["" if line["can"] else "dim" for line in lines])


def _claim(line: Mapping[str, Any]) -> str:
    if not line["can"]:
        return "no"
    return "yes" if line.get("seen") else "not tried"


def _query_json(query: QueryState, now_s: float) -> dict[str, Any]:
    return {
        "name": query.name,
        "health": query.health,
        "reason": query.reason,
        "heartbeat_s": None if query.newest_s is None else round(now_s - query.newest_s, 1),
        "batch": None if query.batch is None else dict(query.batch.body),
        "catch_up": None if query.catch_up is None else query.catch_up.to_json(),
        "diagnoses": [{"id": record.id, "text": record.text, **record.body} for record in query.diagnoses],
        "action": [{"id": record.id, "kind": record.kind, "text": record.text} for record in query.last_action],
        "model_errors": dict(query.errors),
        "undelivered": query.undelivered or None,
    }


def _print(application: Overview, now_s: float) -> None:
    from homeostat.log_views.overview import HEALTHY

    out = console()
    about = application.about
    out.print(application.health, style="bold green" if application.health == HEALTHY else "bold red")
    process = about["process"]
    driver = (
        f"process {process}, since {clock(about['started_s'])}" if application.alive else f"process {process} has ended"
    )
    lines = {
        "application": f"{about['application']} in {application.directory}",
        "driver": driver,
        "Spark UI": about["ui"] if application.alive else "-",
        "mode": str(about.get("mode", "-")),
        "knobs": ", ".join(f"{name} {value:g}" for name, value in sorted(application.knobs.items())) or "-",
    }
    _print_lines(lines)
    for query in application.queries:
        out.print(f"\nquery {query.name}: {query.health}{f', {query.reason}' if query.reason else ''}", style="bold")
        _print_lines(_query_lines(query, now_s))
    if not application.queries:
        out.print(f"\n{NO_QUERY}", style="bold")
    out.print()
    _print_usage(application.usage)
    if application.capabilities:
        out.print()
        print_capabilities(application.capabilities)


def _print_usage(usage: ResourceUsage) -> None:
    uses = [(use.what, _amount(use.used, use.unit), _amount(use.bound, use.unit), use.where) for use in usage.uses]
    print_table(("resource", "used", "limit", "where"), uses, right=("used", "limit"))
    disks = [
        (
            ", ".join(each.disk.uses),
            format_size(each.disk.free_bytes),
            format_size(each.disk.total_bytes),
            _amount(each.alert_below_bytes, "bytes"),
            each.disk.path,
        )
        for each in usage.disks
    ]
    console().print()
    print_table(("disk for", "free", "size", "alert below", "where"), disks, right=("free", "size", "alert below"))


def _amount(value: float, unit: str) -> str:
    """
    >>> _amount(2e9, "bytes"), _amount(1024.0, "count"), _amount(math.nan, "bytes")
    ('2 GB', '1,024', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    return format_size(value) if unit == "bytes" else f"{value:,.0f}"


def _query_lines(query: QueryState, now_s: float) -> dict[str, str]:
    from homeostat.core.records import BatchContent
    from homeostat.log_views.catching_up import catching_up_sentence

    batch = query.batch.content_as(BatchContent) if query.batch is not None else None
    last_report = "never" if query.newest_s is None else f"{now_s - query.newest_s:.0f} s ago"
    off = ", ".join(f"{name} {math.expm1(error):.0%}" for name, error in sorted(query.errors.items()))
    backlog = {"backlog": catching_up_sentence(query.catch_up)} if query.catch_up is not None else {}
    alerts = {"alerts": query.undelivered} if query.undelivered else {}
    return {
        "last batch": batch_line(batch) if batch is not None else "-",
        **backlog,
        "diagnoses": "; ".join(f"{record.text} ({record.id})" for record in query.diagnoses) or "none",
        "last action": "; ".join(f"{record.text} ({record.id})" for record in query.last_action) or "none",
        "predictions": f"off by {off}" if off else "none checked yet",
        "last record": last_report,
        **alerts,
    }


def batch_line(batch: BatchContent) -> str:
    """
    >>> from homeostat.core.records import BatchContent
    >>> batch_line(BatchContent(2000, 1.25, 2.0, 1000, math.nan, span_s=2.0, workers=2))
    '1,000 rows/s, 1,000 rows/s arrive, unknown rows wait, took 1.2 s of 2 s, 2 executors'
    >>> batch_line(BatchContent(2000, 1.25, 2.0, 1000, math.nan, span_s=2.0, workers=2, tasks_left_out=80_000))[-35:]
    ' 2 executors, 80,000 tasks not read'
    """
    rate = batch.rows / batch.span_s if batch.span_s > 0 else math.nan
    left_out = f", {batch.tasks_left_out:,} tasks not read" if batch.tasks_left_out else ""
    return (
        f"{_count_text(rate)} rows/s, {_count_text(batch.arrival_per_s)} rows/s arrive, "
        f"{rows_waiting(batch.pending_rows, batch.pending_at_most)}, took {batch.seconds:.1f} s of "
        f"{batch.trigger_s:g} s, {batch.workers} executors{left_out}"
    )


def _count_text(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "unknown"


def _print_lines(lines: Mapping[str, str]) -> None:
    for label, value in lines.items():
        console().print(f"  {label:<14}{visible(value)}", markup=False)
