"""The model that `whatif` and `plan` use: from a log, Spark's event log, or a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.find_application import store_path
from homeostat.cli.log import open_log, run_name
from homeostat.core.errors import ConfigError
from homeostat.strict import units

if TYPE_CHECKING:
    from homeostat.models.application_model import ApplicationModel, Predicted
    from homeostat.recorded_data.load import Load

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="LOG", envvar="HOMEOSTAT_STORE", help="Log with the model that a manager has learned."
    ),
]
EventLogOption = Annotated[
    Path | None,
    typer.Option(
        "--event-log",
        metavar="PATH",
        help="Fit the model to Spark's event log instead of reading it from Homeostat's log.",
    ),
]
ScenarioOption = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="NAME|FILE",
        help="Fit the model to a simulation instead of reading it from Homeostat's log.",
    ),
]
RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="RATE", help="Load in rows per second, such as 80k or '1M/min'. Default: the current load."
    ),
]


def learned_model(
    store: str | None, run: str | None, event_log: Path | None, scenario: str | None
) -> tuple[ApplicationModel, Callable[[], Load]]:
    """The model of what the options name (by default the newest run in the log), and a function that reads its load."""
    from homeostat.cli import load_sources

    if event_log is not None and scenario is not None:
        raise ConfigError("two sources are given", where="--event-log, --scenario", fix="give only one of them")
    if event_log is not None:
        from homeostat.log_views.recorded_model import from_recording
        from homeostat.spark.outside.logged_run import record

        recording = record(event_log)
        load = partial(load_sources.recorded_load, recording, str(event_log))
        return from_recording(recording, str(event_log)), load
    if scenario is not None:
        from homeostat.cli import scenario_arguments
        from homeostat.lab.scenario_model import from_scenario

        model = from_scenario(scenario_arguments.load_scenario(scenario))
        return model, partial(load_sources.simulated_load, scenario)
    from homeostat.log_views.stored_model import from_store

    path = store_path(store)
    with open_log(path) as log:
        name = run_name(log, run, path)
        model = from_store(log, name, str(path))
    return model, partial(load_sources.stored_load, path, name)


def print_doubts(model: ApplicationModel, predicted: Predicted) -> None:
    """What the model does not know, and how wrong it has been."""
    for note in predicted.unknown:
        print(f"unknown: {note}")
    for name, error in model.errors.items():
        print(f"past predictions about {name} were off by {math.expm1(error):.0%}")


def parse(parser: Callable[[object], float], text: str, option: str) -> float:
    try:
        return parser(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}", where=option) from None


def parse_rate(text: str, option: str = "--rate") -> float:
    """A rate; without a unit it is per second."""
    try:
        return float(units.parse_count(text)) if "/" not in text else units.parse_rate(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a rate", where=option, fix="write 80k, '80 k/s' or '1M/min'") from None


def format_seconds(value: float) -> str:
    return f"{value:.1f} s" if math.isfinite(value) else "unbounded"
