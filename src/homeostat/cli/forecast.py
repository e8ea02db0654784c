"""`homeostat forecast`: the load minutes to days ahead, from a trace, a log, Spark's event log or a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from homeostat.cli.log import RunOption, StoreOption, store_path
from homeostat.cli.output import JsonFlag, console, heading, print_json, print_table, say
from homeostat.cli.plugin_options import WithOption, plugged
from homeostat.core.errors import ConfigError
from homeostat.strict.units import UnitError, format_count, format_duration, parse_duration, parse_share

if TYPE_CHECKING:
    from homeostat.models.forecast import Forecast, Series
    from homeostat.recordings.load import Load
    from homeostat.recordings.run import RecordedRun

VALUES = ("count", "rate")
ROWS_SHOWN = 12
_DATES_S = 1e8


def forecast(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[TRACE|SCENARIO]", help="A CSV file, or a scenario; the log's newest run if left out."),
    ] = None,
    horizon: Annotated[str, typer.Option("--horizon", metavar="TIME", help="How far ahead, such as '1 h'.")] = "1 h",
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Forecast from here: a date, or a time after the start ('3 d')."),
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="SHARE", help="How sure the interval is to hold what comes.")
    ] = "80 %",
    values: Annotated[
        str,
        typer.Option("--values", metavar="KIND", help="Of a trace: count (rows per interval) or rate (per second)."),
    ] = "count",
    store: StoreOption = None,
    run: RunOption = None,
    event_log: Annotated[
        Path | None, typer.Option("--event-log", metavar="PATH", help="What arrived according to Spark's event log.")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="NAME", help="One of several sources; all together if left out.")
    ] = None,
    with_: WithOption = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it to a .png or .svg file.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Forecast the load, and tell how wrong such forecasts have been and whether this one is worth using."""
    from homeostat.models import forecast as models
    from homeostat.views.traffic_history import apart_json, as_json, forecast_apart

    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    horizon_s, options = _horizon_s(horizon), _options(interval, with_)
    load = load_of(source, values, store, run, event_log)
    if of is not None:
        load = _one_source(load, of)
    for note in load.notes:
        say(f"note: {note}")
    whole = models.regular(load.times_s, load.per_s, horizon_s=horizon_s, most=1_000_000)
    count = len(whole.values) if at is None else _place(at, whole)
    history = whole.until(count).newest()
    made = models.forecast(history, horizon_s, **options)
    apart = forecast_apart(load.times_s, load.sources, made.made_at_s, horizon_s, **options)
    came = whole.values[count : count + len(made.values)]
    known = came.tolist()
    if json:
        print_json({"source": load.name, "sources": apart_json(apart), **as_json(made, known)})
    else:
        _print(load.name, made, known)
        _print_apart(apart)
    if picture is not None:
        pictures.forecast(
            made, history, came, picture, title=f"{load.name}: the next {format_duration(made.horizon_s)}"
        )
        say(f"Picture: {picture}")


def _print(name: str, made: Forecast, came: Sequence[float]) -> None:
    heading(f"{name}: the next {format_duration(made.horizon_s)} from {_moment(made.made_at_s)}")
    out = console()
    out.print("usable" if made.usable else "not usable", style="bold green" if made.usable else "bold yellow", end="")
    out.print(f": {made.reason.removeprefix('not usable: ')}", markup=False)
    if made.origins:
        season = f"season {format_duration(made.season_s)}" if made.season_s else "no season"
        out.print(
            f"by {made.champion}, MASE {made.mase:.2f}; {made.coverage:.0%} lay in the {made.nominal:.0%} interval "
            f"({made.origins} trials over {format_duration(made.horizon_s)} each; {season})",
            markup=False,
        )
    for repair in made.repairs:
        say(f"note: {repair}")
    out.print()
    columns = ("ahead", "until", "low", "expected", "high", "came")[: 6 if len(came) else 5]
    last = len(made.values)
    numbers = sorted({math.ceil(last * part / ROWS_SHOWN) for part in range(1, ROWS_SHOWN + 1)})
    rows = [_row(made, came, number)[: len(columns)] for number in numbers]
    print_table(columns, rows, right=columns)
    out.print("rows/s", style="dim")
    if made.scores:
        out.print()
        scores = [(s.name, f"{s.mase:.3f}", f"{format_count(s.error_per_s)} rows/s") for s in made.scores]
        print_table(("candidate", "MASE", "mean error"), scores, right=("MASE", "mean error"))


def _print_apart(apart: Mapping[str, Forecast]) -> None:
    """Who would speak for each source; nothing where there is one."""
    if apart:
        console().print()
        told = [
            (name, one.champion, f"{one.mase:.2f}" if one.origins else "-", one.reason) for name, one in apart.items()
        ]
        print_table(("source", "champion", "MASE", ""), told, right=("MASE",))


def _row(made: Forecast, came: Sequence[float], number: int) -> tuple[str, ...]:
    ahead_s = number * made.step_s
    line = made.values[number - 1]
    then = came[number - 1] if number <= len(came) else math.nan
    rates = (_rate(rate) for rate in (line[0], made.column(0.5)[number - 1], line[-1], then))
    return (format_duration(ahead_s), _moment(made.made_at_s + ahead_s), *rates)


def _rate(per_s: float) -> str:
    return format_count(per_s) if math.isfinite(per_s) else "-"


def _moment(at_s: float) -> str:
    """A date, or the time since a start."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}" if at_s > _DATES_S else format_duration(at_s)


def load_of(source: str | None, values: str, store: Path | None, run: str | None, event_log: Path | None) -> Load:
    if values not in VALUES:
        raise ConfigError(f"there is no kind {values!r}", where="--values", fix=f"one of {', '.join(VALUES)}")
    if (source is not None or event_log is not None) and (store is not None or run is not None):
        raise ConfigError("both a source and a log are named", where="--store", fix="leave one of them out")
    if source is not None and event_log is not None:
        raise ConfigError("both a source and a log are named", where="--event-log", fix="leave one of them out")
    if event_log is not None:
        from homeostat.spark.outside.recorder import record

        return recorded_load(record(event_log), str(event_log))
    if source is None:
        return stored_load(store_path(store), run)
    path = Path(source)
    if path.suffix == ".toml" or not (path.suffix or path.exists()):
        return simulated_load(source)
    from homeostat.recordings import load_file

    kind: Literal["count", "rate"] = "rate" if values == "rate" else "count"
    return load_file.read(path, kind)


def _one_source(load: Load, name: str) -> Load:
    from homeostat.strict.toml_reading import nearest

    if name not in load.sources:
        fix = nearest(name, list(load.sources)) or "only one is known of it: leave --of out"
        raise ConfigError(f"{load.name} has no source {name!r}", where="--of", fix=fix)
    return replace(load, name=f"{name} of {load.name}", per_s=load.sources[name], sources={})


def stored_load(path: Path, run: str | None) -> Load:
    """What arrived in each batch of a run."""
    from homeostat.recordings.load import Load
    from homeostat.store.sqlite import SqliteStore
    from homeostat.strict.toml_reading import nearest
    from homeostat.views.traffic_history import arrived

    if not path.exists():
        raise ConfigError(
            "there is no log here", where=str(path), fix="name a trace, a scenario, or a log with --store"
        )
    opened = SqliteStore(path, read_only=True)
    try:
        names = [info.name for info in opened.runs()]
        if run is not None and run not in names:
            raise ConfigError(f"there is no run {run!r}", where=str(path), fix=nearest(run, names[-10:]))
        name = run or (names[-1] if names else "")
        seen = arrived(opened, name)
    finally:
        opened.close()
    return _enough(Load(f"{name} in {path}", seen.times_s, seen.per_s, sources=seen.sources), f"run {name}", path)


def recorded_load(recorded: RecordedRun, path: str) -> Load:
    """What arrived for each batch of a recorded query."""
    from homeostat.recordings.arrivals import arrivals, arrivals_by_source
    from homeostat.recordings.load import Load

    load = Load(f"{recorded.query} in {path}", *arrivals(recorded), recorded.notes, arrivals_by_source(recorded))
    return _enough(load, f"query {recorded.query}", path)


def _enough(load: Load, what: str, where: str | Path) -> Load:
    if len(load.times_s) < 2:
        raise ConfigError(
            f"{what} has no batches to forecast from", where=str(where), fix="let the application run for a while"
        )
    return load


def simulated_load(name: str) -> Load:
    """The load that a scenario gives out, with its noise."""
    import numpy as np

    from homeostat.cli import scenario_arguments
    from homeostat.recordings.load import Load
    from homeostat.sim.simulation import interval_s
    from homeostat.sim.workload import Workload

    scenario = scenario_arguments.load_scenario(name)
    step_s = interval_s(scenario)
    workload = Workload(scenario.workload, scenario.seed, step_s)
    starts_s = np.arange(int(scenario.duration_s / step_s), dtype=np.float64) * step_s
    per_s = np.array([workload.rows_between(start_s, start_s + step_s) / step_s for start_s in starts_s])
    sources = [component.name for component in scenario.components if component.kind == "source"]
    apart = {name: per_s / len(sources) for name in sources} if len(sources) > 1 else {}
    return Load(scenario.name, starts_s, per_s, sources=apart)


def _horizon_s(text: str) -> float:
    horizon_s = _read(parse_duration, text, "--horizon")
    if not horizon_s > 0:
        raise ConfigError("must be above 0", where="--horizon", fix="such as '1 h'")
    return horizon_s


def _options(interval: str, further: list[str] | None) -> dict[str, Any]:
    """How every forecast is made."""
    from homeostat.models.forecast import CANDIDATES

    share = _share(interval)
    quantiles = ((1 - share) / 2, 0.5, (1 + share) / 2)
    return {"quantiles": quantiles, "candidates": (*CANDIDATES, *plugged("forecasters", further))}


def _share(text: str) -> float:
    share = _read(parse_share, text, "--interval")
    if not 0 < share < 1:
        raise ConfigError("must lie between 0 and 1", where="--interval", fix="such as '80 %'")
    return share


def _read(parse: Any, text: str, option: str) -> float:
    try:
        return float(parse(text))
    except UnitError as error:
        raise ConfigError(str(error), where=option) from None


def _place(text: str, whole: Series) -> int:
    """How many values lie before that moment."""
    try:
        moment = datetime.fromisoformat(text)
        at_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        at_s = whole.start_s + _read(parse_duration, text, "--at")
    place = round((at_s - whole.start_s) / whole.step_s)
    if not 0 < place <= len(whole.values):
        first, last = _moment(whole.start_s), _moment(whole.end_s)
        raise ConfigError(f"{text} is not within the history", where="--at", fix=f"it goes from {first} to {last}")
    return place
