"""`homeostat plan`: the cheapest configuration that meets the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
from homeostat.cli.plugin_options import WithOption, load_plugins
from homeostat.core.errors import ConfigError
from homeostat.strict import units

if TYPE_CHECKING:
    from homeostat.core.configuration import Knob
    from homeostat.log_views.questions import History
    from homeostat.models.application_model import ApplicationModel
    from homeostat.models.plan_choice import Plan
    from homeostat.models.planning_question import Candidate
    from homeostat.recorded_data.load import Load

SHOWN = 12

ThroughputOption = Annotated[
    str | None, typer.Option("--throughput", metavar="RATE", help="Objective: process at least this rate.")
]
LatencyOption = Annotated[
    str | None, typer.Option("--latency", metavar="TIME", help="Objective: commit 95 % of the rows within this time.")
]
LagOption = Annotated[
    str | None, typer.Option("--lag", metavar="TIME", help="Objective: stay at most this far behind the source.")
]
CostOption = Annotated[
    float | None, typer.Option("--cost-limit", metavar="N", min=0, help="Objective: use at most this many instances.")
]
ConfidenceOption = Annotated[
    str, typer.Option("--confidence", metavar="SHARE", help="Required probability that the objective holds.")
]
HorizonOption = Annotated[
    str, typer.Option("--horizon", metavar="TIME", help="For how long the configuration must meet the objective.")
]
ProposerOption = Annotated[
    list[str] | None,
    typer.Option("--proposer", metavar="PATH", help="Add your own scheduler, package.module:name. Repeatable."),
]
PictureOption = Annotated[Path | None, picture_option("largest rate and latency of the configurations")]


@dataclass(frozen=True, slots=True)
class ObjectiveOptions:
    """The objective, as given on the command line."""

    throughput: str | None
    latency: str | None
    lag: str | None
    cost_limit: float | None

    def apply(self, model: ApplicationModel) -> ApplicationModel:
        from homeostat.log_views import questions

        return questions.with_objective(
            model,
            throughput_per_s=None if self.throughput is None else parse_rate(self.throughput, "--throughput"),
            latency_p95_s=None if self.latency is None else parse(units.parse_duration, self.latency, "--latency"),
            lag_s=None if self.lag is None else parse(units.parse_duration, self.lag, "--lag"),
            cost_limit=self.cost_limit,
        )


def plan(
    store: StoreOption = None,
    run: RunOption = None,
    event_log: EventLogOption = None,
    scenario: ScenarioOption = None,
    rate: RateOption = None,
    throughput: ThroughputOption = None,
    latency: LatencyOption = None,
    lag: LagOption = None,
    cost_limit: CostOption = None,
    confidence: ConfidenceOption = "90 %",
    horizon: HorizonOption = "30 min",
    proposer: ProposerOption = None,
    with_: WithOption = None,
    picture: PictureOption = None,
    json: JsonFlag = False,
) -> None:
    """Find the cheapest configuration that meets the objective, and explain why the others were not chosen.

    Exit code 3: no configuration meets the objective.
    """
    from homeostat.log_views import questions
    from homeostat.models.plan_choice import plan as find_plan
    from homeostat.models.planning_question import Goal

    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    model, load = learned_model(store, run, event_log, scenario)
    model = ObjectiveOptions(throughput, latency, lag, cost_limit).apply(model)
    goal = Goal(_confidence(confidence), parse(units.parse_duration, horizon, "--horizon"))
    if rate is not None:
        model = replace(model, arrival_per_s=parse_rate(rate))
    arrivals, why = questions.coming(
        model, goal, None if rate else _history(load()), load_plugins("forecasters", with_)
    )
    result = find_plan(model, arrivals=arrivals, goal=goal, proposers=load_plugins("proposers", proposer))
    if json:
        print_json({**questions.plan_json(model, result), "load": why})
    else:
        _print_plan(model, result, why)
    if picture is not None:
        pictures.plan(result, SHOWN, model.objective.latency_p95_s, picture)
        say(f"Picture: {picture}")
    if result.chosen is None:
        raise typer.Exit(EXIT_UNHEALTHY)


def _history(load: Load) -> History:
    return load.times_s, load.per_s


def _print_plan(model: ApplicationModel, result: Plan, load: str) -> None:
    from homeostat.log_views.questions import first_candidates

    rate = units.format_count(round(result.rate_per_s))
    confidence, horizon = f"{result.goal.confidence:.0%}", units.format_duration(result.goal.horizon_s)
    heading(f"For {rate} rows/s over {horizon}, with {confidence} confidence")
    print(load)
    print(_advice(result))
    columns = ("configuration", "cost", "batch", "p95 latency", "largest rate", "caught up", "verdict")
    candidates = first_candidates(result, SHOWN)
    rows = [_candidate_row(model, result, each) for each in candidates]
    styles = ["bold" if each is result.best else "" for each in candidates]
    print_table(columns, rows, right=columns[1:5], styles=styles)
    hidden_count = len(result.candidates) - SHOWN
    if hidden_count > 0:
        print(f"… and {hidden_count} more (--json prints all)")
    for refused in result.refused:
        print(f"rejected, from {refused.proposer}: {refused.why}")
    print(result.best.predicted.limit)
    print_doubts(model, result.best.predicted)


def _advice(result: Plan) -> str:
    changes = ", ".join(
        f"{knob} {_before(result, knob)} → {value:g}" for knob, value in sorted(result.patch.values.items())
    )
    if result.chosen is None:
        closest = changes or "the current configuration"
        return f"No configuration meets the objective. Closest: {closest} ({result.best.lost})"
    return f"Change: {changes}" if changes else "Nothing needs to change."


def _before(result: Plan, knob: Knob) -> str:
    value = result.present.configuration.values.get(knob)
    return "-" if value is None else f"{value:g}"


def _candidate_row(model: ApplicationModel, result: Plan, candidate: Candidate) -> tuple[str, ...]:
    from homeostat.log_views.questions import changes

    predicted = candidate.predicted
    return (
        changes(result, candidate),
        f"{candidate.cost:g}",
        "-" if predicted.batch_s is None else f"{predicted.batch_s.middle:.1f} s",
        format_seconds(predicted.latency_s["p95"]) if "p95" in predicted.latency_s else "-",
        units.format_count(round(predicted.saturation_per_s.middle)),
        _caught_up(model, candidate),
        candidate.lost or "chosen",
    )


def _caught_up(model: ApplicationModel, candidate: Candidate) -> str:
    if model.backlog_rows <= 0:
        return "-"
    return f"at {clock(model.at_s + candidate.done_s)}" if math.isfinite(candidate.done_s) else "never"


def _confidence(text: str) -> float:
    share = parse(units.parse_share, text, "--confidence")
    if not 0.5 <= share < 1:
        raise ConfigError(f"{text!r} is not a confidence", where="--confidence", fix="write 50 % or more, below 100 %")
    return share
