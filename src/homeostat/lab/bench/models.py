"""Measures how well the models predict configurations that they were not fitted to."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    TRIGGER_S,
    Configuration,
    Patch,
)
from homeostat.core.events import Observed
from homeostat.lab.bench.noise import capacity_per_s
from homeostat.lab.bench.prediction_errors import MOST_ERROR, SEED, Real, comparison_json, summary
from homeostat.lab.scenario_model import from_scenario
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec

Tell = Callable[[str], None]

SIMULATOR, SPARK = "simulator", "spark"
SIDES = (SIMULATOR, SPARK)
SIM_SEEDS = (101, 102, 103)
FITTED_S, TRIED_S, REAL_S = 900.0, 400.0, 90.0
SKIPPED = 5


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration and a load that the model was not fitted to."""

    rate_per_s: float
    executors: int
    partitions: int
    trigger_s: float

    @property
    def name(self) -> str:
        return (
            f"{self.executors} executors, {self.partitions} partitions, {self.trigger_s:g} s, {self.rate_per_s:,.0f}/s"
        )


HELD_OUT = (
    Tried(1_500.0, 4, 24, 10.0),
    Tried(2_000.0, 8, 24, 10.0),
    Tried(2_500.0, 8, 24, 10.0),
    Tried(3_500.0, 12, 24, 10.0),
    Tried(4_500.0, 16, 48, 10.0),
    Tried(2_000.0, 6, 36, 10.0),
    Tried(2_000.0, 6, 12, 10.0),
    Tried(3_000.0, 12, 48, 10.0),
    Tried(1_000.0, 3, 24, 10.0),
    Tried(1_500.0, 6, 24, 5.0),
    Tried(2_200.0, 10, 24, 5.0),
    Tried(2_000.0, 6, 24, 20.0),
    Tried(3_000.0, 8, 32, 20.0),
    Tried(5_000.0, 24, 48, 10.0),
)


def measure(*, sides: Sequence[str] = SIDES, scale: float = 1.0, tell: Tell = lambda _: None) -> dict[str, Any]:
    """The numbers of `homeostat bench models`; `scale` stretches the real runs."""
    figures: dict[str, Any] = {"interval": [0.1, 0.9], "accepted_median_error": MOST_ERROR}
    if SIMULATOR in sides:
        figures[SIMULATOR] = on_simulator(tell)
    if SPARK in sides:
        from homeostat.lab.bench import models_spark

        figures[SPARK] = models_spark.measure(scale, tell)
    return figures


def scenario(setup: Tried, *, varied: bool = False) -> Scenario:
    """A word count with state, and with stragglers and noise as on a shared cluster."""
    rate = setup.rate_per_s
    steps = ((0.0, rate), (300.0, 1.3 * rate), (600.0, 0.75 * rate)) if varied else ()
    return Scenario(
        name="models",
        title="a word count with state",
        engine=MicrobatchSpec(
            trigger_s=setup.trigger_s, executors=setup.executors, straggler_share=0.01, straggler_factor=2.0
        ),
        duration_s=FITTED_S,
        components=(
            ComponentSpec("lines", "source", parallelism=setup.partitions, rate_per_s=6_000.0, selectivity=3.0),
            ComponentSpec(
                "count",
                inputs=("lines",),
                parallelism=setup.partitions,
                rate_per_s=4_000.0,
                key_s=0.0002,
                task_s=0.03,
                keyed=True,
                keys=60_000,
                stateful=True,
            ),
        ),
        workload=WorkloadSpec("steps" if varied else "constant", rate, steps=steps, noise=Noise(0.03, 0.5)),
        service_noise=Noise(0.05, 0.3),
    )


def on_simulator(tell: Tell) -> dict[str, Any]:
    """Fits a model to one configuration for a quarter of an hour of varying load, and tries it in fourteen others."""
    base = Tried(2_000.0, 6, 24, 10.0)
    model = from_scenario(scenario(base, varied=True), SEED)
    order = random.Random(SEED).sample(HELD_OUT, len(HELD_OUT))
    tell(f"fitted to {base.name}; {len(order)} other configurations")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        real_runs = list(pool.map(_simulate, order))
        limits = list(pool.map(_true_saturation, order))
    off = _base_s(model, base) / float(np.median(_simulate(base).seconds))
    lines = []
    for setup, real, limit in zip(order, real_runs, limits, strict=True):
        prediction = model.predict(_configuration(model, setup), setup.rate_per_s)
        lines.append({**comparison_json(setup.name, prediction, real, off), **_saturation(prediction, limit)})
    limit_errors = [line["saturation_error"] for line in lines]
    return {"fitted_to": base.name, **summary(lines, limit_errors), "configurations": lines}


def _simulate(setup: Tried) -> Real:
    """Batches with this load and configuration, from all seeds."""
    seconds: list[float] = []
    rates: list[float] = []
    for seed in SIM_SEEDS:
        events = Microbatch(scenario(setup), seed).wait(TRIED_S)
        observations = [event.observation for event in events if isinstance(event, Observed)][SKIPPED:]
        seconds += [observation.flows[0].seconds for observation in observations]
        rates.append(sum(o.flows[0].rows for o in observations) / sum(o.span_s for o in observations))
    return Real(np.array(seconds), float(np.mean(rates)))


def _true_saturation(setup: Tried) -> float:
    return capacity_per_s(scenario(setup))


def _configuration(model: ApplicationModel, setup: Tried) -> Configuration:
    values: dict[Any, Any] = dict.fromkeys(model.partition_knobs(), setup.partitions)
    triggers = {knob: setup.trigger_s for knob in model.configuration.values if knob.kind == TRIGGER_S}
    return model.configuration.patched(Patch({**values, **triggers, EXECUTORS_KNOB: setup.executors}))


def _base_s(model: ApplicationModel, base: Tried) -> float:
    """The predicted duration of a batch in the configuration that the model was fitted to."""
    prediction = model.predict(_configuration(model, base), base.rate_per_s).batch_s
    assert prediction is not None
    return prediction.middle


def _saturation(prediction: Predicted, limit: float) -> dict[str, Any]:
    return {
        "saturation_per_s": limit,
        "predicted_saturation_per_s": prediction.saturation_per_s.as_json(),
        "saturation_error": abs(prediction.saturation_per_s.middle / limit - 1),
    }
