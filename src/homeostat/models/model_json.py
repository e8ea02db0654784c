"""Converts a model to JSON and back, so that another process can query it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from homeostat.core.configuration import Capabilities, Configuration, Knob, KnobSpec
from homeostat.core.objective import Objective
from homeostat.core.observation import Array
from homeostat.core.record_json import JSON
from homeostat.core.topology import Component, Topology
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_replay import BatchModel, KeyCurve, Setup, Stage
from homeostat.models.saturation import FlowModel, KeyShares, Operator
from homeostat.models.task_cost_model import Slowing, TaskCost

FORMAT = 1
# The saved state of a run contains the model under this key.
MODEL_KEY = "model"
# For a stage with more tasks, quantiles of the noise are stored instead of the noise of each task, so that the log
# stays small. A choice.
_MOST_TASKS = 400
# Significant digits stored: far finer than any measurement.
_DIGITS = 5


def to_json(model: ApplicationModel) -> JSON:
    performance = model.performance
    fitted = (
        {"batches": _batches_json(performance)}
        if isinstance(performance, BatchModel)
        else {"flow": _flow_json(performance)}
    )
    return cast(
        JSON,
        {
            "format": FORMAT,
            "at_s": model.at_s,
            "topology": [_component_json(component) for component in model.topology],
            "configuration": dict(model.configuration.as_json()),
            "capabilities": {str(knob): asdict(spec) for knob, spec in model.capabilities.knobs.items()},
            "objective": asdict(model.objective),
            "arrival_per_s": model.arrival_per_s,
            "variation": model.variation,
            "backlog_rows": model.backlog_rows,
            "replays": model.replays,
            "errors": dict(model.errors),
            **fitted,
        },
    )


def from_json(value: JSON) -> ApplicationModel | None:
    """Return the model; None if another version wrote it."""
    fields = cast(Mapping[str, Any], value)
    if not isinstance(value, dict) or fields.get("format") != FORMAT:
        return None
    knobs = {Knob.parse(name): KnobSpec(**spec) for name, spec in fields["capabilities"].items()}
    return ApplicationModel(
        at_s=fields["at_s"],
        topology=Topology(tuple(_component(each) for each in fields["topology"])),
        configuration=Configuration.from_json(fields["configuration"]),
        capabilities=Capabilities(knobs),
        objective=Objective(**fields["objective"]),
        performance=_batches(fields["batches"]) if "batches" in fields else _flow(fields["flow"]),
        arrival_per_s=fields["arrival_per_s"],
        variation=fields["variation"],
        backlog_rows=fields["backlog_rows"],
        replays=fields["replays"],
        errors=fields["errors"],
    )


def _component_json(component: Component) -> dict[str, Any]:
    partitions, spread = component.partitions, component.spread
    return {
        **asdict(component),
        "scaled_by": str(component.scaled_by),
        "partitions": None if partitions is None else str(partitions),
        "spread": None if spread is None else str(spread),
    }


def _component(value: Mapping[str, Any]) -> Component:
    partitions, spread = value["partitions"], value.get("spread")
    return Component(
        value["name"],
        value["kind"],
        Knob.parse(value["scaled_by"]),
        tuple(value["inputs"]),
        value["query"],
        value["keyed"],
        None if partitions is None else Knob.parse(partitions),
        None if not isinstance(spread, str) else Knob.parse(spread),
        value.get("unspread", ""),
        value.get("watched", ""),
    )


def _batches_json(model: BatchModel) -> dict[str, Any]:
    return {
        "stages": [_stage_json(stage) for stage in model.stages],
        "driver_s": _numbers(model.driver_s),
        "common": _numbers(model.common),
        "slots": model.slots,
        "setup": asdict(model.setup),
        "slow": list(model.slow),
        "rows_seen": list(model.rows_seen),
        "widening": model.widening,
        "pace": model.pace,
    }


def _batches(value: Mapping[str, Any]) -> BatchModel:
    return BatchModel(
        tuple(_stage(stage) for stage in value["stages"]),
        np.array(value["driver_s"]),
        np.array(value["common"]),
        value["slots"],
        Setup(**value["setup"]),
        tuple(value["slow"]),
        (value["rows_seen"][0], value["rows_seen"][1]),
        value["widening"],
        value["pace"],
    )


def _stage_json(stage: Stage) -> dict[str, Any]:
    noise = stage.noise
    if noise.shape[1] > _MOST_TASKS:
        noise = np.quantile(noise, np.linspace(0.0, 1.0, _MOST_TASKS)).reshape(1, -1)
    return {
        "name": stage.name,
        "cost": asdict(stage.cost),
        "shares": _numbers(stage.shares),
        "rows_per_row": stage.rows_per_row,
        "noise": [_numbers(line) for line in noise],
        "delay_s": stage.delay_s,
        "keys": stage.keys.keys,
    }


def _stage(value: Mapping[str, Any]) -> Stage:
    shares = np.array(value["shares"])
    return Stage(
        value["name"],
        _cost(value["cost"]),
        shares / shares.sum(),
        value["rows_per_row"],
        np.array(value["noise"]).reshape(len(value["noise"]), -1),
        value["delay_s"],
        KeyCurve(value["keys"]),
    )


def _cost(value: Mapping[str, Any]) -> TaskCost:
    slowing = value["slowing"]
    return TaskCost(**{**value, "slowing": None if slowing is None else Slowing(**slowing)})


def _flow_json(model: FlowModel) -> dict[str, Any]:
    fields = asdict(model)
    for operator in fields["operators"]:
        operator["measured"] = {str(count): rate for count, rate in operator["measured"].items()}
    return fields


def _flow(value: Mapping[str, Any]) -> FlowModel:
    operators = []
    for each in value["operators"]:
        shares = each["shares"]
        measured = {int(count): rate for count, rate in each["measured"].items()}
        fields = {**each, "inputs": tuple(each["inputs"]), "measured": measured}
        operators.append(Operator(**{**fields, "shares": None if shares is None else KeyShares(**shares)}))
    return FlowModel(tuple(operators), value["shares"])


def _numbers(values: Array) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
