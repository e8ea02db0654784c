"""`homeostat forecast`: predicts the load, from minutes to days ahead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.load_sources import load_of, one_source
from homeostat.cli.log import RunOption, StoreOption
from homeostat.cli.output import JsonFlag, console, heading, picture_option, print_json, print_table, say
from homeostat.cli.plugin_options import WithOption, load_plugins
from homeostat.core.errors import ConfigError
from homeostat.strict.units import UnitError, format_count, format_duration, parse_duration, parse_share

if TYPE_CHECKING:
    from homeostat.models.forecast import Forecast, Series
    from homeostat.recorded_data.load import Load

ROWS_SHOWN = 12
MOST_VALUES = 1_000_000
_DATES_S = 1e8  # times above this are dates, below it seconds since the start

SourceArgument = Annotated[
    str | None,
    typer.Argument(metavar="[CSV|SCENARIO]", help="CSV file or scenario. Default: the newest run in the log."),
]
HorizonOption = Annotated[
    str, typer.Option("--horizon", metavar="TIME", help="How far ahead to forecast, such as '1 h'.")
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Forecast from this moment: a date, or a time after the start such as '3 d'. Default: the end.",
    ),
]
IntervalOption = Annotated[
    str, typer.Option("--interval", metavar="SHARE", help="Probability that the load falls within the interval.")
]
ValuesOption = Annotated[
    str,
    typer.Option(
        "--values",
        metavar="KIND",
        help="What the CSV file contains: count (rows per interval) or rate (rows per second).",
    ),
]
EventLogOption = Annotated[
    Path | None, typer.Option("--event-log", metavar="PATH", help="Forecast the load recorded in Spark's event log.")
]
OfOption = Annotated[
    str | None, typer.Option("--of", metavar="NAME", help="Forecast only this source. Default: the sum of all sources.")
]
PictureOption = Annotated[Path | None, picture_option("the forecast")]


def forecast(
    source: SourceArgument = None,
    horizon: HorizonOption = "1 h",
    at: AtOption = None,
    interval: IntervalOption = "80 %",
    values: ValuesOption = "count",
    store: StoreOption = None,
    run: RunOption = None,
    event_log: EventLogOption = None,
    of: OfOption = None,
    with_: WithOption = None,
    picture: PictureOption = None,
    json: JsonFlag = False,
) -> None:
    """Forecast the load, and show how accurate such forecasts have been and whether this one is usable."""
    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    horizon_s, options = _horizon_s(horizon), _options(interval, with_)
    load = load_of(source, values, store, run, event_log)
    if of is not None:
        load = one_source(load, of)
    for note in load.notes:
        say(f"note: {note}")
    _forecast(load, horizon_s, at, options, picture, json)


def _forecast(
    load: Load, horizon_s: float, at: str | None, options: dict[str, Any], picture: Path | None, json: bool
) -> None:
    from homeostat.log_views.traffic_history import apart_json, as_json, forecast_apart
    from homeostat.models import forecast as models

    whole = models.regular(load.times_s, load.per_s, horizon_s=horizon_s, most=MOST_VALUES)
    count = len(whole.values) if at is None else _place(at, whole)
    history = whole.until(count).newest()
    prediction = models.forecast(history, horizon_s, **options)
    by_source = forecast_apart(load.times_s, load.sources, prediction.made_at_s, horizon_s, **options)
    actual = whole.values[count : count + len(prediction.values)]
    if json:
        print_json({"source": load.name, "sources": apart_json(by_source), **as_json(prediction, actual.tolist())})
    else:
        _print(load.name, prediction, actual.tolist())
        _print_by_source(by_source)
    if picture is not None:
        from homeostat.cli import pictures

        title = f"{load.name}: the next {format_duration(prediction.horizon_s)}"
        pictures.forecast(prediction, history, actual, picture, title=title)
        say(f"Picture: {picture}")


def _print(name: str, prediction: Forecast, actual: Sequence[float]) -> None:
    heading(f"{name}: the next {format_duration(prediction.horizon_s)} from {_moment(prediction.made_at_s)}")
    out = console()
    style = "bold green" if prediction.usable else "bold yellow"
    out.print("usable" if prediction.usable else "not usable", style=style, end="")
    out.print(f": {prediction.reason.removeprefix('not usable: ')}", markup=False)
    if prediction.origins:
        out.print(_accuracy(prediction), markup=False)
    for repair in prediction.repairs:
        say(f"note: {repair}")
    out.print()
    columns = ("ahead", "until", "low", "expected", "high", "actual")[: 6 if len(actual) else 5]
    last = len(prediction.values)
    numbers = sorted({math.ceil(last * part / ROWS_SHOWN) for part in range(1, ROWS_SHOWN + 1)})
    rows = [_row(prediction, actual, number)[: len(columns)] for number in numbers]
    print_table(columns, rows, right=columns)
    out.print("rows/s", style="dim")
    if prediction.scores:
        out.print()
        scores = [(s.name, f"{s.mase:.3f}", f"{format_count(s.error_per_s)} rows/s") for s in prediction.scores]
        print_table(("forecaster", "MASE", "mean error"), scores, right=("MASE", "mean error"))


def _accuracy(prediction: Forecast) -> str:
    season = f"season of {format_duration(prediction.season_s)}" if prediction.season_s else "no season"
    return (
        f"by {prediction.champion}, MASE {prediction.mase:.2f}; {prediction.coverage:.0%} of the actual values fell in "
        f"the {prediction.nominal:.0%} interval "
        f"({prediction.origins} trials of {format_duration(prediction.horizon_s)} each; {season})"
    )


def _print_by_source(by_source: Mapping[str, Forecast]) -> None:
    """The best forecaster of each source; nothing if there is only one source."""
    if by_source:
        console().print()
        rows = [
            (name, each.champion, f"{each.mase:.2f}" if each.origins else "-", each.reason)
            for name, each in by_source.items()
        ]
        print_table(("source", "forecaster", "MASE", ""), rows, right=("MASE",))


def _row(prediction: Forecast, actual: Sequence[float], number: int) -> tuple[str, ...]:
    ahead_s = number * prediction.step_s
    line = prediction.values[number - 1]
    then = actual[number - 1] if number <= len(actual) else math.nan
    rates = (_rate(rate) for rate in (line[0], prediction.column(0.5)[number - 1], line[-1], then))
    return (format_duration(ahead_s), _moment(prediction.made_at_s + ahead_s), *rates)


def _rate(per_s: float) -> str:
    return format_count(per_s) if math.isfinite(per_s) else "-"


def _moment(at_s: float) -> str:
    """A date, or the time since the start."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}" if at_s > _DATES_S else format_duration(at_s)


def _horizon_s(text: str) -> float:
    horizon_s = _read(parse_duration, text, "--horizon")
    if not horizon_s > 0:
        raise ConfigError("must be above 0", where="--horizon", fix="write a time such as '1 h'")
    return horizon_s


def _options(interval: str, forecasters: list[str] | None) -> dict[str, Any]:
    """Arguments that all forecasts of one command share."""
    from homeostat.models.forecast import CANDIDATES

    share = _share(interval)
    quantiles = ((1 - share) / 2, 0.5, (1 + share) / 2)
    return {"quantiles": quantiles, "candidates": (*CANDIDATES, *load_plugins("forecasters", forecasters))}


def _share(text: str) -> float:
    share = _read(parse_share, text, "--interval")
    if not 0 < share < 1:
        raise ConfigError("must lie between 0 and 1", where="--interval", fix="write a share such as '80 %'")
    return share


def _read(parse: Callable[[object], float], text: str, option: str) -> float:
    try:
        return float(parse(text))
    except UnitError as error:
        raise ConfigError(str(error), where=option) from None


def _place(text: str, whole: Series) -> int:
    """The number of values before that moment."""
    try:
        moment = datetime.fromisoformat(text)
        at_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        at_s = whole.start_s + _read(parse_duration, text, "--at")
    place = round((at_s - whole.start_s) / whole.step_s)
    if not 0 < place <= len(whole.values):
        first, last = _moment(whole.start_s), _moment(whole.end_s)
        raise ConfigError(
            f"{text} is outside the recorded load", where="--at", fix=f"choose a moment from {first} to {last}"
        )
    return place
