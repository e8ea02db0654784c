"""Questions to the model of an application: what another configuration would do, and which one to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.core.configuration import Configuration, Knob, Patch, Value
from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.forecast import CANDIDATES, Forecaster, forecast, regular
from homeostat.models.planner import Plan, Refused
from homeostat.models.planning_question import Arrivals, Candidate, Forecasted, Goal, Steady

Wanted = dict[Knob, Value]
History = tuple[Array, Array]  # moments, and the rows per second that arrived then


def every(model: ApplicationModel, kind: str, value: Value, where: str) -> Wanted:
    """All knobs of a kind set to it."""
    found = {knob: value for knob in model.configuration.values if knob.kind == kind}
    if not found:
        raise ConfigError(f"this application has no {kind}", where=where, fix=f"it has {_known(model)}")
    return found


def partitions(model: ApplicationModel, count: int, where: str) -> Wanted:
    """Every stage that can be cut anew, cut into so many tasks."""
    found: Wanted = {knob: count for knob in model.partition_knobs() if knob in model.configuration.values}
    if not found:
        raise ConfigError("no stage of this application can be cut anew", where=where)
    return found


def single(model: ApplicationModel, name: str, value: Value, where: str) -> Wanted:
    knob = Knob.parse(name)
    if knob not in model.configuration.values:
        raise ConfigError(f"there is no knob {name!r}", where=where, fix=f"one of {_known(model)}")
    return {knob: value}


def configured(model: ApplicationModel, wanted: Mapping[Knob, Value]) -> Configuration:
    """The present configuration with these changes; what the engine cannot do is refused."""
    configuration = model.configuration.patched(Patch(dict(wanted)))
    refusal = model.capabilities.refusal(configuration)
    if refusal:
        raise ConfigError(refusal, where="the configuration")
    return configuration


def with_objective(model: ApplicationModel, **given: float | None) -> ApplicationModel:
    """Those of the objective's parts that are given replace the application's own."""
    parts: Mapping[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(model, objective=replace(model.objective, **parts))


def coming(
    model: ApplicationModel, goal: Goal, history: History | None, further: Sequence[Forecaster] = ()
) -> tuple[Arrivals, str]:
    """The load over the horizon and where that comes from: a forecast, if there is a history and it is worth using.

    `further` candidates take part in it.
    """
    now = Steady(model.arrival_per_s, model.variation)
    if history is None:
        return now, "the load is taken to stay as it is"
    series = regular(*history, horizon_s=goal.horizon_s)
    quantiles = (1.0 - goal.confidence, 0.5, goal.confidence)
    made = forecast(series, goal.horizon_s, quantiles=quantiles, candidates=(*CANDIDATES, *further))
    if not made.usable:
        return now, f"the load is taken to stay as it is; a forecast is {made.reason}"
    return Forecasted(now, made), f"the load is forecast by {made.champion} (MASE {made.mase:.2f})"


def predicted_json(predicted: Predicted) -> dict[str, Any]:
    return {
        "configuration": dict(predicted.configuration.as_json()),
        "rate_per_s": predicted.rate_per_s,
        "stable": predicted.stable,
        "throughput_per_s": predicted.throughput_per_s,
        "saturation_per_s": predicted.saturation_per_s.as_json(),
        "batch_s": None if predicted.batch_s is None else predicted.batch_s.as_json(),
        "lag_s": predicted.lag_s,
        "latency_s": dict(predicted.latency_s),
        "critical_path_s": dict(predicted.parts_s),
        "utilisation": dict(predicted.utilisation),
        "limit": predicted.limit,
        "unknown": list(predicted.unknown),
    }


def plan_json(model: ApplicationModel, made: Plan) -> dict[str, Any]:
    return {
        "at_s": model.at_s,
        "rate_per_s": made.rate_per_s,
        "confidence": made.goal.confidence,
        "horizon_s": made.goal.horizon_s,
        "holds": made.chosen is not None,
        "change": {str(knob): value for knob, value in made.patch.values.items()},
        "errors": dict(model.errors),
        "best": _candidate_json(made.best),
        "candidates": [_candidate_json(each) for each in made.candidates],
        "refused": [_refused_json(each) for each in made.refused],
    }


def first_candidates(made: Plan, most: int) -> tuple[Candidate, ...]:
    """At most so many of those that were looked at; what there is now is always among them."""
    first = made.candidates[:most]
    present = next((each for each in made.candidates if each.configuration == made.present.configuration), None)
    if present is None or any(each is present for each in first):
        return first
    return (*first[:-1], present)


def changes(made: Plan, candidate: Candidate) -> str:
    """What a candidate of the plan would change, in short."""
    changed = made.present.configuration.changed(Patch(candidate.configuration.values))
    return " ".join(f"{knob}={value:g}" for knob, value in sorted(changed.values.items())) or "as it is"


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    return {
        **predicted_json(candidate.predicted),
        "proposed_by": candidate.proposer,
        "cost": candidate.cost,
        "pause_s": candidate.pause_s,
        "catch_up_s": candidate.catch_up_s,
        "instance_seconds": candidate.spent,
        "lost": candidate.lost,
    }


def _refused_json(refused: Refused) -> dict[str, Any]:
    configuration = refused.configuration
    wanted = None if configuration is None else dict(configuration.as_json())
    return {"proposed_by": refused.proposer, "why": refused.why, "configuration": wanted}


def _known(model: ApplicationModel) -> str:
    return ", ".join(str(each) for each in sorted(model.configuration.values))
