"""The noise of recorded batches: from batch to batch, and from run to run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array
from homeostat.recorded_data.run import RecordedBatch
from homeostat.sim.fit.replay import replay, replay_parts
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise

# The share of real batches between the simulated 10th and 90th percentiles: their definition.
COVERED = 0.8
# Limits of the search. More noise than this would hide every effect; a stronger correlation is a drift. Choice.
MOST_SIGMA, MOST_PHI = 1.0, 0.9
# The rate of a component whose rows have no measurable cost.
FASTEST_PER_S = 1e9
# In a run with fewer batches the level cannot be separated from their noise. Choice.
LEAST_BATCHES = 5
# More seeds give steadier percentiles and take longer. The larger set judges the result once. Choice.
SEEDS = tuple(range(1, 26))
MANY_SEEDS = tuple(range(1, 101))


# The components, with costs fitted to these batches.
FitComponents = Callable[[Sequence[RecordedBatch]], tuple[ComponentSpec, ...]]


class Calibrated(NamedTuple):
    components: tuple[ComponentSpec, ...]
    engine: MicrobatchSpec
    noise: Noise


def calibrate(fit_components: FitComponents, engine: MicrobatchSpec, batches: Sequence[RecordedBatch]) -> Calibrated:
    """Find the noise with which the simulated percentiles contain as many real batches as they should.

    The first step finds the noise of batches around the level of their run. It takes the median over the runs, because
    a disturbed run says little about others. The second step finds the noise of these levels, which comes from other
    load on the machine and from errors of the costs.
    """
    components, measured, runs = fit_components(batches), np.log(seconds_of(batches)), _runs(batches)
    steady = np.log(replay(components, replace(engine, straggler_share=0.0), Noise(), batches, SEEDS[:1])[0])
    phi = _in_most_runs(_correlation, measured - steady, runs)

    def in_their_run(sigma: float) -> float:
        simulated_logs = np.log(replay(components, engine, Noise(sigma, phi), batches, SEEDS))
        off = measured - np.median(simulated_logs, axis=0)
        return _in_most_runs(np.mean, _inside(off - _levels(off, runs), simulated_logs), runs)

    noise = Noise(round_digits(_solve(in_their_run, COVERED, 0.0, MOST_SIGMA)), round_digits(phi))
    factor = _what_noise_adds(components, engine, noise, batches)

    def refit(others: Sequence[RecordedBatch]) -> tuple[ComponentSpec, ...]:
        return _scale(fit_components(others), factor)

    components = _scale(components, factor)
    run_sigma = 0.0 if len(set(runs)) == 1 else _run_sigma(components, refit, engine, noise, batches)
    return Calibrated(components, replace(engine, run_sigma=run_sigma), noise)


def _run_sigma(
    components: tuple[ComponentSpec, ...],
    refit: FitComponents,
    engine: MicrobatchSpec,
    noise: Noise,
    batches: Sequence[RecordedBatch],
) -> float:
    """How far the level of a further run will be from its prediction.

    As in any regression, with leverage h: the runs that were fitted deviate by √(1 − h) of their true variation, a run
    that is left out by 1/√(1 − h), and a further run by √(1 + h).
    """
    names, run = np.unique(_runs(batches), return_inverse=True)
    measured = np.log(seconds_of(batches))
    driver_s, tasks_s = (np.median(part, axis=0) for part in replay_parts(components, engine, noise, batches, SEEDS))
    predicted = np.empty(len(batches))
    for number in range(len(names)):
        others = [batch for batch, its in zip(batches, run, strict=True) if its != number]
        mine = [batch for batch, its in zip(batches, run, strict=True) if its == number]
        predicted[run == number] = np.median(np.log(replay(refit(others), engine, noise, mine, SEEDS)), axis=0)
    residual, error = (_variation(measured - expected, run) for expected in (np.log(driver_s + tasks_s), predicted))
    not_drawn = min(1.0, residual / error) if error > 0 else 0.0
    further = error * math.sqrt(not_drawn * (2 - not_drawn))
    share_of_tasks = float(np.median(tasks_s / (driver_s + tasks_s)))
    return round_digits(min(MOST_SIGMA, further / share_of_tasks))


def _variation(off: Array, runs: NDArray[Any]) -> float:
    """The standard deviation of the levels of runs. It is robust against a few runs that are far off."""
    levels = [np.median(off[runs == run]) for run in np.unique(runs)]
    return math.sqrt(math.pi / 2) * float(np.mean(np.abs(levels)))


def _what_noise_adds(
    components: tuple[ComponentSpec, ...], engine: MicrobatchSpec, noise: Noise, batches: Sequence[RecordedBatch]
) -> float:
    """A stage waits for its slowest task. With noise, tasks must be faster by this factor for the stage to take the
    same time."""
    measured, factor = seconds_of(batches), 1.0
    scaled_components = components
    for _ in range(3):
        simulated_s = np.median(replay(scaled_components, engine, noise, batches, SEEDS), axis=0)
        tasks_s = np.maximum(simulated_s - engine.driver_s - engine.commit_s, 1e-3)
        factor *= float(np.clip(1 + np.median((measured - simulated_s) / tasks_s), 0.5, 2.0))
        scaled_components = _scale(components, factor)
    return factor


def percentiles(simulated: Array) -> Array:
    """The 10th, 50th and 90th percentile. Four of five further draws lie between the outer two, even with few draws."""
    return np.percentile(simulated, (10, 50, 90), axis=0, method="weibull")


def seconds_of(batches: Sequence[RecordedBatch]) -> Array:
    return np.array([batch.seconds for batch in batches])


def round_digits(value: float) -> float:
    """Four digits: more would suggest a precision that the measurements do not have."""
    return float(f"{value:.4g}")


def _inside(off: Array, simulated: Array) -> NDArray[np.bool_]:
    low, middle, high = percentiles(simulated)
    inside: NDArray[np.bool_] = (low - middle <= off) & (off <= high - middle)
    return inside


def _runs(batches: Sequence[RecordedBatch]) -> NDArray[np.str_]:
    """The run of each batch. Short runs count as one."""
    counts = Counter(batch.run for batch in batches)
    return np.array([batch.run if counts[batch.run] >= LEAST_BATCHES else "" for batch in batches])


def _in_most_runs(of: Callable[[Any], Any], values: Array | NDArray[np.bool_], runs: NDArray[np.str_]) -> float:
    return float(np.median([of(values[runs == run]) for run in np.unique(runs)]))


def _levels(off: Array, runs: NDArray[Any]) -> Array:
    """For each batch, how far the batches of its run are off."""
    return np.array([np.median(off[runs == run]) for run in runs])


def _correlation(values: Array) -> float:
    """The correlation of each value with the previous one."""
    if len(values) < LEAST_BATCHES or values.std() == 0:
        return 0.0
    around = values - np.median(values)
    return float(np.clip((around[1:] * around[:-1]).sum() / (around**2).sum(), 0.0, MOST_PHI))


def _solve(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing function reaches the target, by bisection."""
    if function(low) >= target:
        return low
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return (low + high) / 2


def _scale(components: tuple[ComponentSpec, ...], factor: float) -> tuple[ComponentSpec, ...]:
    return tuple(
        replace(
            component,
            task_s=round_digits(component.task_s * factor),
            key_s=round_digits(component.key_s * factor),
            rate_per_s=round_digits(min(FASTEST_PER_S, component.rate_per_s / factor)),
        )
        for component in components
    )
