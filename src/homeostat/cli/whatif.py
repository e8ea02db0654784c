"""`homeostat whatif`: predicts how another configuration would perform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.log import RunOption
from homeostat.cli.model_sources import (
    EventLogOption,
    RateOption,
    ScenarioOption,
    StoreOption,
    format_seconds,
    learned_model,
    parse,
    parse_rate,
    print_doubts,
)
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, heading, picture_option, print_json, print_table, say
from homeostat.core.errors import ConfigError
from homeostat.strict import units

if TYPE_CHECKING:
    from homeostat.core.configuration import Knob, Value
    from homeostat.models.application_model import ApplicationModel, Predicted

ExecutorsOption = Annotated[
    int | None, typer.Option("--executors", metavar="N", min=1, help="Number of executors to try.")
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions", metavar="N", min=1, help="Number of tasks to try for every stage that can be repartitioned."
    ),
]
TriggerOption = Annotated[
    str | None, typer.Option("--trigger", metavar="TIME", help="Trigger interval to try, such as '5 s'.")
]
RowsOption = Annotated[
    str | None, typer.Option("--rows-per-trigger", metavar="N", help="Limit on the rows of a batch to try.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=N", help="Any other knob, such as parallelism.count=8. Repeatable."),
]
PictureOption = Annotated[Path | None, picture_option("batch duration and largest rate by number of executors")]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to try, as given on the command line."""

    executors: int | None
    partitions: int | None
    trigger: str | None
    rows_per_trigger: str | None
    assignments: Sequence[str]

    def values(self, model: ApplicationModel) -> dict[Knob, Value]:
        from homeostat.core.configuration import EXECUTORS, ROWS_PER_TRIGGER, TRIGGER_S
        from homeostat.log_views import questions

        values = _parse_assignments(model, self.assignments)
        if self.executors is not None:
            values |= questions.every(model, EXECUTORS, self.executors, "--executors")
        if self.trigger is not None:
            trigger_s = parse(units.parse_duration, self.trigger, "--trigger")
            values |= questions.every(model, TRIGGER_S, trigger_s, "--trigger")
        if self.rows_per_trigger is not None:
            count = int(parse(units.parse_count, self.rows_per_trigger, "--rows-per-trigger"))
            values |= questions.every(model, ROWS_PER_TRIGGER, count, "--rows-per-trigger")
        if self.partitions is not None:
            values |= questions.partitions(model, self.partitions, "--partitions")
        return values


def whatif(
    store: StoreOption = None,
    run: RunOption = None,
    event_log: EventLogOption = None,
    scenario: ScenarioOption = None,
    rate: RateOption = None,
    executors: ExecutorsOption = None,
    partitions: PartitionsOption = None,
    trigger: TriggerOption = None,
    rows_per_trigger: RowsOption = None,
    set_: SetOption = None,
    picture: PictureOption = None,
    json: JsonFlag = False,
) -> None:
    """Predict how a configuration would perform: batch duration, throughput, lag, latency and the bottleneck.

    Exit code 3: the configuration would not keep up with the load.
    """
    from homeostat.log_views import questions

    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    model, _ = learned_model(store, run, event_log, scenario)
    changes = Changes(executors, partitions, trigger, rows_per_trigger, set_ or ())
    configuration = questions.with_changes(model, changes.values(model))
    now = model.predict(model.configuration, model.arrival_per_s)
    then = model.predict(configuration, model.arrival_per_s if rate is None else parse_rate(rate))
    if json:
        predictions = {"now": questions.predicted_json(now), "then": questions.predicted_json(then)}
        print_json({"at_s": model.at_s, **predictions, "errors": dict(model.errors)})
    else:
        _print_predicted(model, now, then)
    if picture is not None:
        pictures.predictions(model, then, picture)
        say(f"Picture: {picture}")
    if not then.stable:
        raise typer.Exit(EXIT_UNHEALTHY)


def _print_predicted(model: ApplicationModel, now: Predicted, then: Predicted) -> None:
    heading(f"As measured at {clock(model.at_s)}, and as predicted")
    figures_now, figures_then = _figures(now), _figures(then)
    names = {**figures_now, **figures_then}
    rows = [(name, figures_now.get(name, "-"), figures_then.get(name, "-")) for name in names]
    print_table(("", "now", "then"), rows)
    print()
    print(then.limit)
    print_doubts(model, then)


def _figures(predicted: Predicted) -> dict[str, str]:
    figures = {str(knob): f"{value:g}" for knob, value in sorted(predicted.configuration.values.items())}
    figures["rate"] = f"{units.format_count(round(predicted.rate_per_s))} rows/s"
    figures["throughput"] = f"{units.format_count(round(predicted.throughput_per_s))} rows/s"
    largest = predicted.saturation_per_s
    low, middle, high = (units.format_count(round(value)) for value in (largest.low, largest.middle, largest.high))
    figures["largest rate"] = f"{middle} rows/s ({low} to {high})"
    if predicted.batch_s is not None:
        batch = predicted.batch_s
        figures["batch duration"] = f"{batch.middle:.2f} s ({batch.low:.2f} to {batch.high:.2f})"
        figures["lag"] = format_seconds(predicted.lag_s)
        figures["latency p50, p95, p99"] = ", ".join(format_seconds(each) for each in predicted.latency_s.values())
    for name, share in predicted.utilisation.items():
        figures[f"utilisation of {name}"] = f"{share:.0%}"
    figures["keeps up"] = "yes" if predicted.stable else "NO: lag and latency grow without end"
    return figures


def _parse_assignments(model: ApplicationModel, assignments: Sequence[str]) -> dict[Knob, Value]:
    from homeostat.log_views import questions

    values: dict[Knob, Value] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(
                f"cannot parse {assignment!r}", where="--set", fix="write KNOB=N, such as parallelism.count=8"
            )
        count = int(parse(units.parse_count, text.strip(), "--set"))
        values |= questions.single(model, name.strip(), count, "--set")
    return values
