"""`homeostat whatif` and `homeostat plan`: what another configuration would do, and which one to have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.log import RunOption, open_log, run_name, store_path
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, heading, print_json, print_table, say
from homeostat.cli.plugin_options import WithOption, plugged
from homeostat.core.errors import ConfigError
from homeostat.strict import units

if TYPE_CHECKING:
    from homeostat.core.configuration import Knob, Value
    from homeostat.models.application_model import ApplicationModel, Predicted
    from homeostat.models.planner import Plan
    from homeostat.models.planning_question import Candidate
    from homeostat.recordings.load import Load
    from homeostat.views.questions import History

SHOWN = 12

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE", envvar="HOMEOSTAT_STORE", help="Ask the model that a manager keeps in this log."
    ),
]
EventLogOption = Annotated[
    Path | None, typer.Option("--event-log", metavar="PATH", help="Learn from Spark's event log instead.")
]
ScenarioOption = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME|FILE", help="Learn from watching a simulation instead.")
]
RateOption = Annotated[
    str | None, typer.Option("--rate", metavar="RATE", help="Rows per second, as 80k or '1M/min'; the present load.")
]


def whatif(
    store: StoreOption = None,
    run: RunOption = None,
    event_log: EventLogOption = None,
    scenario: ScenarioOption = None,
    rate: RateOption = None,
    executors: Annotated[int | None, typer.Option("--executors", metavar="N", min=1, help="So many.")] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", min=1, help="Tasks of every stage that can be cut anew.")
    ] = None,
    trigger: Annotated[
        str | None, typer.Option("--trigger", metavar="TIME", help="The trigger interval, as '5 s'.")
    ] = None,
    rows_per_trigger: Annotated[
        str | None, typer.Option("--rows-per-trigger", metavar="N", help="The bound on the rows of a batch.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KNOB=N", help="Any knob, as parallelism.count=8; may be repeated."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw batch duration and largest rate over the executors."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Predict how a configuration would do at a rate: batch duration, throughput, lag, latency, and what limits it."""
    from homeostat.core.configuration import EXECUTORS, ROWS_PER_TRIGGER, TRIGGER_S
    from homeostat.views import questions

    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    model, _ = seen(store, run, event_log, scenario)
    wanted: dict[Knob, Value] = _assigned(model, set_ or [])
    if executors is not None:
        wanted |= questions.every(model, EXECUTORS, executors, "--executors")
    if trigger is not None:
        trigger_s = _parsed(units.parse_duration, trigger, "--trigger")
        wanted |= questions.every(model, TRIGGER_S, trigger_s, "--trigger")
    if rows_per_trigger is not None:
        count = int(_parsed(units.parse_count, rows_per_trigger, "--rows-per-trigger"))
        wanted |= questions.every(model, ROWS_PER_TRIGGER, count, "--rows-per-trigger")
    if partitions is not None:
        wanted |= questions.partitions(model, partitions, "--partitions")
    configuration = questions.configured(model, wanted)
    now = model.predict(model.configuration, model.arrival_per_s)
    then = model.predict(configuration, model.arrival_per_s if rate is None else _rate(rate))
    if json:
        told = {"now": questions.predicted_json(now), "then": questions.predicted_json(then)}
        print_json({"at_s": model.at_s, **told, "errors": dict(model.errors)})
    else:
        _print_predicted(model, now, then)
    if picture is not None:
        pictures.predictions(model, then, picture)
        say(f"Picture: {picture}")
    if not then.stable:
        raise typer.Exit(EXIT_UNHEALTHY)


def plan(
    store: StoreOption = None,
    run: RunOption = None,
    event_log: EventLogOption = None,
    scenario: ScenarioOption = None,
    rate: RateOption = None,
    throughput: Annotated[str | None, typer.Option("--throughput", metavar="RATE", help="Take at least this.")] = None,
    latency: Annotated[
        str | None, typer.Option("--latency", metavar="TIME", help="95 % of the rows committed within this.")
    ] = None,
    lag: Annotated[str | None, typer.Option("--lag", metavar="TIME", help="Be at most so far behind.")] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", metavar="N", min=0, help="Pay for at most so many instances.")
    ] = None,
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="SHARE", help="How sure it shall be that the objective holds.")
    ] = "90 %",
    horizon: Annotated[str, typer.Option("--horizon", metavar="TIME", help="For how long it shall hold.")] = "30 min",
    proposer: Annotated[
        list[str] | None,
        typer.Option("--proposer", metavar="PATH", help="A scheduler of your own, package.module:name; may repeat."),
    ] = None,
    with_: WithOption = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw largest rate and latency of the configurations."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Find the cheapest configuration that holds the objective, and tell why the others lost."""
    from homeostat.models.planner import plan as make
    from homeostat.models.planning_question import Goal
    from homeostat.views import questions

    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    model, load = seen(store, run, event_log, scenario)
    model = questions.with_objective(
        model,
        throughput_per_s=None if throughput is None else _rate(throughput, "--throughput"),
        latency_p95_s=None if latency is None else _parsed(units.parse_duration, latency, "--latency"),
        lag_s=None if lag is None else _parsed(units.parse_duration, lag, "--lag"),
        cost_limit=cost_limit,
    )
    goal = Goal(_confidence(confidence), _parsed(units.parse_duration, horizon, "--horizon"))
    if rate is not None:
        model = replace(model, arrival_per_s=_rate(rate))
    arrivals, why = questions.coming(model, goal, None if rate else _history(load()), plugged("forecasters", with_))
    made = make(model, arrivals=arrivals, goal=goal, proposers=plugged("proposers", proposer))
    if json:
        print_json({**questions.plan_json(model, made), "load": why})
    else:
        _print_plan(model, made, why)
    if picture is not None:
        pictures.plan(made, SHOWN, model.objective.latency_p95_s, picture)
        say(f"Picture: {picture}")
    if made.chosen is None:
        raise typer.Exit(EXIT_UNHEALTHY)


def seen(
    store: Path | None, run: str | None, event_log: Path | None, scenario: str | None
) -> tuple[ApplicationModel, Callable[[], Load]]:
    """The model of whatever was named, of the newest run in the log if nothing was; and how to get the load it had."""
    from homeostat.cli import forecast

    if event_log is not None and scenario is not None:
        raise ConfigError("name one thing to learn from", where="--event-log, --scenario")
    if event_log is not None:
        from homeostat.spark.outside.recorder import record
        from homeostat.views.recorded_model import from_recording

        recorded = record(event_log)
        load = partial(forecast.recorded_load, recorded, str(event_log))
        return from_recording(recorded, str(event_log)), load
    if scenario is not None:
        from homeostat.cli import scenario_arguments
        from homeostat.sim.scenario_model import from_scenario

        model = from_scenario(scenario_arguments.load_scenario(scenario))
        return model, partial(forecast.simulated_load, scenario)
    from homeostat.views.stored_model import from_store

    path = store_path(store)
    with open_log(path) as log:
        model = from_store(log, run_name(log, run, path), str(path))
    return model, partial(forecast.stored_load, path, run)


def _history(load: Load) -> History:
    return load.times_s, load.per_s


def _print_predicted(model: ApplicationModel, now: Predicted, then: Predicted) -> None:
    heading(f"As seen at {clock(model.at_s)}, and what would be")
    names = {**_figures(now), **_figures(then)}
    rows = [(name, _figures(now).get(name, "-"), _figures(then).get(name, "-")) for name in names]
    print_table(("", "now", "then"), rows)
    print()
    print(then.limit)
    _print_doubts(model, then)


def _print_doubts(model: ApplicationModel, predicted: Predicted) -> None:
    for note in predicted.unknown:
        print(f"unknown: {note}")
    for name, error in model.errors.items():
        print(f"predictions about {name} have been off by {math.expm1(error):.0%} so far")


def _figures(predicted: Predicted) -> dict[str, str]:
    found = {str(knob): f"{value:g}" for knob, value in sorted(predicted.configuration.values.items())}
    found["rate"] = f"{units.format_count(round(predicted.rate_per_s))} rows/s"
    found["throughput"] = f"{units.format_count(round(predicted.throughput_per_s))} rows/s"
    low, high = (
        units.format_count(round(v)) for v in (predicted.saturation_per_s.low, predicted.saturation_per_s.high)
    )
    middle = units.format_count(round(predicted.saturation_per_s.middle))
    found["largest rate"] = f"{middle} rows/s ({low} to {high})"
    if predicted.batch_s is not None:
        batch = predicted.batch_s
        found["batch duration"] = f"{batch.middle:.2f} s ({batch.low:.2f} to {batch.high:.2f})"
        found["lag"] = _seconds(predicted.lag_s)
        found["latency p50, p95, p99"] = ", ".join(_seconds(each) for each in predicted.latency_s.values())
    for name, share in predicted.utilisation.items():
        found[f"utilisation of {name}"] = f"{share:.0%}"
    found["keeps up"] = "yes" if predicted.stable else "NO: lag and latency grow without end"
    return found


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if math.isfinite(value) else "unbounded"


def _print_plan(model: ApplicationModel, made: Plan, load: str) -> None:
    from homeostat.views.questions import first_candidates

    rate = units.format_count(round(made.rate_per_s))
    sure, horizon = f"{made.goal.confidence:.0%}", units.format_duration(made.goal.horizon_s)
    heading(f"For {rate} rows/s over {horizon}, with {sure} confidence")
    print(load)
    changes = ", ".join(f"{knob} {_was(made, knob)} → {value:g}" for knob, value in sorted(made.patch.values.items()))
    if made.chosen is None:
        print(f"Nothing holds the objective. Closest: {changes or 'what is there'} ({made.best.lost})")
    else:
        print(f"Change: {changes}" if changes else "Nothing needs to change.")
    columns = ("configuration", "cost", "batch", "p95 latency", "largest rate", "caught up", "verdict")
    shown = first_candidates(made, SHOWN)
    rows = [_candidate_row(model, made, each) for each in shown]
    styles = ["bold" if each is made.best else "" for each in shown]
    print_table(columns, rows, right=columns[1:5], styles=styles)
    left = len(made.candidates) - SHOWN
    if left > 0:
        print(f"… and {left} more (--json has all)")
    for refused in made.refused:
        print(f"refused of {refused.proposer}: {refused.why}")
    print(made.best.predicted.limit)
    _print_doubts(model, made.best.predicted)


def _was(made: Plan, knob: Knob) -> str:
    value = made.present.configuration.values.get(knob)
    return "-" if value is None else f"{value:g}"


def _candidate_row(model: ApplicationModel, made: Plan, candidate: Candidate) -> tuple[str, ...]:
    from homeostat.views.questions import changes

    predicted = candidate.predicted
    return (
        changes(made, candidate),
        f"{candidate.cost:g}",
        "-" if predicted.batch_s is None else f"{predicted.batch_s.middle:.1f} s",
        _seconds(predicted.latency_s["p95"]) if "p95" in predicted.latency_s else "-",
        units.format_count(round(predicted.saturation_per_s.middle)),
        _caught_up(model, candidate),
        candidate.lost or "chosen",
    )


def _caught_up(model: ApplicationModel, candidate: Candidate) -> str:
    if model.backlog_rows <= 0:
        return "-"
    return f"at {clock(model.at_s + candidate.done_s)}" if math.isfinite(candidate.done_s) else "never"


def _assigned(model: ApplicationModel, assignments: Sequence[str]) -> dict[Knob, Value]:
    from homeostat.views import questions

    found: dict[Knob, Value] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ConfigError(f"cannot read {assignment!r}", where="--set", fix="write parallelism.count=8")
        count = int(_parsed(units.parse_count, text.strip(), "--set"))
        found |= questions.single(model, name.strip(), count, "--set")
    return found


def _parsed(parse: Callable[[object], float], text: str, option: str) -> float:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}", where=option) from None


def _rate(text: str, option: str = "--rate") -> float:
    """`80k` is per second."""
    try:
        return float(units.parse_count(text)) if "/" not in text else units.parse_rate(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a rate", where=option, fix="write 80k, '80 k/s' or '1M/min'") from None


def _confidence(text: str) -> float:
    share = _parsed(units.parse_share, text, "--confidence")
    if not 0.5 <= share < 1:
        raise ConfigError(f"{text!r} is not a confidence", where="--confidence", fix="from 50 % to below 100 %")
    return share
