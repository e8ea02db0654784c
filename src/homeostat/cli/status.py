"""`homeostat status`: what an application is doing now."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, console, print_json, print_table
from homeostat.core.errors import ConfigError
from homeostat.views.timeline import known

if TYPE_CHECKING:
    from homeostat.views.overview import Overview, QueryState

HOME = Path(".homeostat")
STARTED = "driver.json"


def status(
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR|APP", help="Of `homeostat run`; the last one started if left out."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Tell what an application is doing now: exit code 0 healthy, 3 not running, falling behind or unknown."""
    from homeostat.views.overview import HEALTHY, overview

    now_s = time.time()
    found = overview(application_directory(directory), now_s)
    if json:
        print_json(as_json(found, now_s))
    else:
        _print(found, now_s)
    if found.health != HEALTHY:
        raise typer.Exit(EXIT_UNHEALTHY)


def application_directory(named: Path | None) -> Path:
    """A directory, the name of an application below .homeostat, or the one that was started last."""
    if named is not None:
        below = HOME / (named.stem if named.suffix == ".py" else named.name)
        return below if not (named / STARTED).exists() and (below / STARTED).exists() else named
    started = sorted(HOME.glob(f"*/{STARTED}"), key=lambda path: path.stat().st_mtime)
    if not started:
        raise ConfigError("nothing was started here", where=str(HOME), fix="start it with `homeostat run APP.PY`")
    return started[-1].parent


def as_json(found: Overview, now_s: float) -> dict[str, Any]:
    return {
        "directory": str(found.directory),
        "health": found.health,
        "alive": found.alive,
        "driver": dict(found.about),
        "knobs": dict(found.knobs),
        "capabilities": [dict(line) for line in found.capabilities],
        "queries": [_query_json(query, now_s) for query in found.queries],
    }


def print_capabilities(lines: Sequence[Mapping[str, Any]]) -> None:
    rows = [(str(line["what"]), "yes" if line["can"] else "no", str(line["reason"])) for line in lines]
    print_table(("what can be done", "", "why"), rows, styles=["" if line["can"] else "dim" for line in lines])


def _query_json(query: QueryState, now_s: float) -> dict[str, Any]:
    return {
        "name": query.name,
        "health": query.health,
        "reason": query.reason,
        "heartbeat_s": None if query.newest_s is None else round(now_s - query.newest_s, 1),
        "batch": None if query.batch is None else dict(query.batch.body),
        "diagnoses": [{"id": record.id, "text": record.text, **record.body} for record in query.diagnoses],
        "action": [{"id": record.id, "kind": record.kind, "text": record.text} for record in query.deed],
        "model_errors": dict(query.errors),
    }


def _print(found: Overview, now_s: float) -> None:
    from homeostat.views.overview import HEALTHY

    out = console()
    about = found.about
    out.print(found.health, style="bold green" if found.health == HEALTHY else "bold red")
    process = about["process"]
    driver = f"process {process}, since {clock(about['started_s'])}" if found.alive else f"process {process} has ended"
    lines = {
        "application": f"{about['application']} in {found.directory}",
        "driver": driver,
        "Spark's page": about["ui"] if found.alive else "-",
        "mode": str(about.get("mode", "-")),
        "knobs": ", ".join(f"{name} {value:g}" for name, value in sorted(found.knobs.items())) or "-",
    }
    _print_lines(lines)
    for query in found.queries:
        out.print(f"\nquery {query.name}: {query.health}{f', {query.reason}' if query.reason else ''}", style="bold")
        _print_lines(_query_lines(query, now_s))
    if found.capabilities:
        out.print()
        print_capabilities(found.capabilities)


def _query_lines(query: QueryState, now_s: float) -> dict[str, str]:
    heard = "never" if query.newest_s is None else f"{now_s - query.newest_s:.0f} s ago"
    off = ", ".join(f"{name} {math.expm1(error):.0%}" for name, error in sorted(query.errors.items()))
    return {
        "last batch": batch_line(query.batch.body) if query.batch is not None else "-",
        "diagnoses": "; ".join(f"{record.text} ({record.id})" for record in query.diagnoses) or "none",
        "last action": "; ".join(f"{record.text} ({record.id})" for record in query.deed) or "none",
        "predictions": f"off by {off}" if off else "none judged so far",
        "last news": heard,
    }


def batch_line(body: Mapping[str, Any]) -> str:
    """
    >>> batch_line({"rows": 2000, "span_s": 2.0, "arrival_per_s": 1000, "pending_rows": None, "seconds": 1.25,
    ...     "trigger_s": 2.0, "workers": 2})
    '1,000 rows/s, 1,000 rows/s arrive, unknown rows wait, took 1.2 s of 2 s, 2 executors'
    """
    rate = known(body, "rows") / known(body, "span_s")
    return (
        f"{_shown(rate)} rows/s, {_shown(known(body, 'arrival_per_s'))} rows/s arrive, "
        f"{_shown(known(body, 'pending_rows'))} rows wait, took {known(body, 'seconds'):.1f} s of "
        f"{known(body, 'trigger_s'):g} s, {body.get('workers', '-')} executors"
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "unknown"


def _print_lines(lines: Mapping[str, str]) -> None:
    for label, value in lines.items():
        console().print(f"  {label:<14}{value}", markup=False)
