"""Measures predictions on real Spark: models are fitted to some setups of an application and tried on others."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Configuration,
    Knob,
    Patch,
)
from homeostat.lab.bench import latency
from homeostat.lab.bench.ground import ground, machine
from homeostat.lab.bench.latency import EVERY_S, PEAK_PER_S
from homeostat.lab.bench.prediction_errors import SEED, Real, comparison_json, judged, summary
from homeostat.lab.bench.twin import Setup, only, real_run
from homeostat.lab.wordcount import NAME
from homeostat.log_views.recorded_model import from_recording
from homeostat.models.application_model import ApplicationModel
from homeostat.recorded_data.run import RecordedBatch, RecordedRun
from homeostat.spark.outside.logged_run import record

Tell = Callable[[str], None]
Runs = Mapping[Setup, Sequence[str]]

RUN_S, OVERLOADED_S = 27.0, 42.0
# A run starts with little load, to warm up its processes. SETTLING batches of the full load, which also process the
# backlog of the start, are left out. A setup with fewer than LEAST batches after that is left out.
SETTLING, LEAST = 2, 3
# Few and many rows, each with few and many executors. Otherwise the cost of rows and that of executors could not be
# separated.
FITTED = (Setup(2, 400.0), Setup(2, 800.0), Setup(4, 600.0), Setup(4, 1_200.0))
HELD_OUT = (
    Setup(1, 300.0),
    Setup(2, 600.0),
    Setup(3, 500.0),
    Setup(3, 1_000.0),
    Setup(3, 1_200.0),
    Setup(4, 1_700.0),
    Setup(4, PEAK_PER_S, trigger_s=EVERY_S),
    Setup(5, 1_200.0),
    Setup(5, PEAK_PER_S, trigger_s=EVERY_S),
    Setup(6, PEAK_PER_S, trigger_s=EVERY_S),
    Setup(3, 800.0, partitions=6),
    Setup(4, 1_000.0, partitions=24),
    Setup(3, 800.0, state_partitions=8),
    Setup(4, 1_400.0, partitions=24, state_partitions=8),
)
# A load that cannot be processed, in batches that take longer than their trigger.
OVERLOADED = (
    Setup(2, 6_000.0, rows_per_trigger=8_000),
    Setup(3, PEAK_PER_S, rows_per_trigger=round(EVERY_S * PEAK_PER_S), trigger_s=EVERY_S),
)
_FULL = 0.9
AT_PEAK = tuple(setup for setup in (*HELD_OUT, *OVERLOADED) if setup.load_per_s == PEAK_PER_S)


def measure(scale: float, tell: Tell) -> dict[str, Any]:
    """Runs all setups in one application in random order, then backlogs, then a varying load."""
    before = machine()
    every = [*FITTED, *HELD_OUT, *OVERLOADED]
    setups = random.Random(SEED).sample(every, len(every))
    with TemporaryDirectory(prefix="homeostat-bench-") as path:
        log = Path(path) / "events"
        tell("starting a cluster")
        with ground("bench-models", setups[0].executors, event_log=log) as here:
            runs = {}
            for number, setup in enumerate(setups, start=1):
                tell(f"real run {number} of {len(setups)}: {setup.name}")
                runs[setup] = real_run(here, setup, scale * (OVERLOADED_S if setup in OVERLOADED else RUN_S))
            behind = {}
            for setup in latency.CAUGHT_UP:
                tell(f"processing a backlog: {setup.name}")
                behind[setup] = latency.fall_behind(here, setup, scale)
            tell(f"a load from {latency.LOW_PER_S:,.0f} to {PEAK_PER_S:,.0f} rows/s under the policy latency")
            varied_result, span = latency.vary(here, scale)
            recording = record(log)
    model = fitted_to(recording, runs)
    figures = predictions(model, recording, runs)
    figures["catch_up"] = [_catch_up_json(model, recording, setup, span) for setup, span in behind.items()]
    static = [latency.Static(setup, settled_batches(recording, setup, runs[setup])) for setup in AT_PEAK]
    figures["latency"] = latency.varied_json(recording, varied_result, span, [each for each in static if each.batches])
    return {**with_what_followed(figures), "machine": {"before": before, "after": machine()}}


def with_what_followed(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures, accepted only if the backlogs were predicted and the objective was kept as well."""
    catch_up = [line["accepted"] for line in figures["catch_up"]]
    return judged(figures, {"catch_up": bool(catch_up) and all(catch_up), "latency": figures["latency"]["accepted"]})


def fitted_to(recording: RecordedRun, runs: Runs) -> ApplicationModel:
    batches = [batch for setup in FITTED for batch in settled_batches(recording, setup, runs[setup])]
    batches.sort(key=lambda batch: batch.started_s)
    return from_recording(replace(recording, batches=tuple(batches)), "bench models")


def predictions(model: ApplicationModel, recording: RecordedRun, runs: Runs) -> dict[str, Any]:
    """Predictions beside measurements. Ratios to the fitted setups cancel the speed of the machine, which all setups
    share."""
    batches = {setup: settled_batches(recording, setup, ids) for setup, ids in runs.items()}
    real = {setup: _real(setup_batches) for setup, setup_batches in batches.items() if setup_batches}
    off = fmean(np.log(_batch_s(model, setup) / np.median(real[setup].seconds)) for setup in FITTED if setup in real)
    lines = [
        comparison_json(
            setup.name, model.predict(configuration(model, setup), setup.load_per_s), real[setup], float(np.exp(off))
        )
        for setup in HELD_OUT
        if setup in real
    ]
    saturation = [_overload_json(model, setup, real[setup]) for setup in OVERLOADED if setup in real]
    return {
        "fitted_to": [setup.name for setup in FITTED],
        **summary(lines, [line["error"] for line in saturation]),
        "configurations": lines,
        "saturation": saturation,
        "left_out": [setup.name for setup, setup_batches in batches.items() if not setup_batches],
    }


def settled_batches(recording: RecordedRun, setup: Setup, ids: Sequence[str]) -> list[RecordedBatch]:
    """The batches without the first ones; none if too few are left."""
    batches = only(recording, ids).batches
    full = _FULL * min(setup.load_per_s * setup.trigger_s, setup.rows_per_trigger or math.inf)
    full_numbers = [number for number, batch in enumerate(batches) if batch.rows >= full]
    rest = batches[full_numbers[0] + SETTLING :] if full_numbers else ()
    return list(rest) if len(rest) >= LEAST else []


def _real(batches: Sequence[RecordedBatch]) -> Real:
    return Real(np.array([batch.seconds for batch in batches]), latency.taken_per_s(batches))


def _batch_s(model: ApplicationModel, setup: Setup) -> float:
    prediction = model.predict(configuration(model, setup), setup.load_per_s).batch_s
    assert prediction is not None
    return prediction.middle


def _overload_json(model: ApplicationModel, setup: Setup, real: Real) -> dict[str, Any]:
    """The rate that was processed under overload beside the largest rate that the model predicts."""
    prediction = model.predict(configuration(model, setup), setup.load_per_s)
    return {
        "setup": setup.name,
        "taken_per_s": real.throughput_per_s,
        "predicted_per_s": prediction.most_per_s,
        "error": abs(prediction.most_per_s / real.throughput_per_s - 1),
    }


def _catch_up_json(model: ApplicationModel, recording: RecordedRun, setup: Setup, span: latency.Span) -> dict[str, Any]:
    def predict(waiting: float) -> float:
        return model.catch_up_s(configuration(model, setup), setup.load_per_s, waiting)

    return latency.caught_up_json(setup, latency.between(recording.batches, span), predict)


def configuration(model: ApplicationModel, setup: Setup) -> Configuration:
    values: dict[Any, Any] = {EXECUTORS_KNOB: setup.executors}
    if setup.rows_per_trigger is not None:
        values[Knob(ROWS_PER_TRIGGER, NAME)] = setup.rows_per_trigger
    values |= {knob: setup.trigger_s for knob in model.configuration.values if knob.kind == TRIGGER_S}
    for knob in model.partition_knobs():
        if knob.kind == SOURCE_PARTITIONS:
            values[knob] = setup.partitions
        elif knob.kind == STATE_PARTITIONS:
            values[knob] = setup.state_partitions
    return model.configuration.patched(Patch(values))
