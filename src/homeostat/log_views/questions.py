"""Questions to the model of an application: what would another configuration do, and which one is cheapest?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.core.configuration import Configuration, Knob, Patch, Value
from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.forecast import CANDIDATES, Forecaster, forecast, regular
from homeostat.models.plan_choice import Plan, Refused
from homeostat.models.planning_question import Arrivals, Candidate, Forecasted, Goal, Steady

KnobValues = dict[Knob, Value]
History = tuple[Array, Array]  # times, and the rows per second that arrived at each


def every(model: ApplicationModel, kind: str, value: Value, where: str) -> KnobValues:
    """Sets all knobs of a kind."""
    values: KnobValues = {knob: value for knob in model.configuration.values if knob.kind == kind}
    if not values:
        raise ConfigError(f"this application has no knob for {kind}", where=where, fix=f"it has {_knob_names(model)}")
    return values


def partitions(model: ApplicationModel, count: int, where: str) -> KnobValues:
    """Sets the number of tasks of every stage that can be repartitioned."""
    values: KnobValues = {knob: count for knob in model.partition_knobs() if knob in model.configuration.values}
    if not values:
        raise ConfigError("no stage of this application can be repartitioned", where=where)
    return values


def single(model: ApplicationModel, name: str, value: Value, where: str) -> KnobValues:
    knob = Knob.parse(name)
    if knob not in model.configuration.values:
        raise ConfigError(f"there is no knob {name!r}", where=where, fix=f"use one of {_knob_names(model)}")
    return {knob: value}


def with_changes(model: ApplicationModel, values: Mapping[Knob, Value]) -> Configuration:
    """The present configuration with these changes. Raises ConfigError for what the engine cannot do."""
    configuration = model.configuration.patched(Patch(dict(values)))
    refusal = model.capabilities.refusal(configuration)
    if refusal:
        raise ConfigError(refusal, where="the configuration")
    return configuration


def with_objective(model: ApplicationModel, **parts: float | None) -> ApplicationModel:
    """The model with these parts of its objective replaced; None leaves a part as it is."""
    changes: Mapping[str, Any] = {name: value for name, value in parts.items() if value is not None}
    return replace(model, objective=replace(model.objective, **changes))


def coming(
    model: ApplicationModel, goal: Goal, history: History | None, further: Sequence[Forecaster] = ()
) -> tuple[Arrivals, str]:
    """The load over the horizon, and a sentence that says where it comes from: a forecast if the history allows one,
    else the present load. `further` models compete in the forecast."""
    now = Steady(model.arrival_per_s, model.variation)
    if history is None:
        return now, "The load is assumed to stay constant."
    series = regular(*history, horizon_s=goal.horizon_s)
    quantiles = (1.0 - goal.confidence, 0.5, goal.confidence)
    load = forecast(series, goal.horizon_s, quantiles=quantiles, candidates=(*CANDIDATES, *further))
    if not load.usable:
        return now, f"The load is assumed to stay constant; a forecast is {load.reason}."
    return Forecasted(now, load), f"The load is forecast by {load.champion} (MASE {load.mase:.2f})."


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


def plan_json(model: ApplicationModel, plan: Plan) -> dict[str, Any]:
    return {
        "at_s": model.at_s,
        "rate_per_s": plan.rate_per_s,
        "confidence": plan.goal.confidence,
        "horizon_s": plan.goal.horizon_s,
        "holds": plan.chosen is not None,
        "change": {str(knob): value for knob, value in plan.patch.values.items()},
        "errors": dict(model.errors),
        "best": _candidate_json(plan.best),
        "candidates": [_candidate_json(each) for each in plan.candidates],
        "refused": [_refused_json(each) for each in plan.refused],
    }


def first_candidates(plan: Plan, most: int) -> tuple[Candidate, ...]:
    """At most `most` of the candidates; the present configuration is always among them."""
    first = plan.candidates[:most]
    present = next((each for each in plan.candidates if each.configuration == plan.present.configuration), None)
    if present is None or any(each is present for each in first):
        return first
    return (*first[:-1], present)


def changes(plan: Plan, candidate: Candidate) -> str:
    """The knobs that a candidate of the plan would change."""
    changed = plan.present.configuration.effective_part(Patch(candidate.configuration.values))
    return " ".join(f"{knob}={value:g}" for knob, value in sorted(changed.values.items())) or "no change"


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


def _refused_json(refusal: Refused) -> dict[str, Any]:
    configuration = refusal.configuration
    values = None if configuration is None else dict(configuration.as_json())
    return {"proposed_by": refusal.proposer, "why": refusal.why, "configuration": values}


def _knob_names(model: ApplicationModel) -> str:
    return ", ".join(str(each) for each in sorted(model.configuration.values))
