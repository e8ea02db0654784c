"""A micro-batch scenario calibrated from a recorded run: its costs, its noise, its load."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.recorded_data import batch_limits
from homeostat.recorded_data.run import RecordedBatch, RecordedComponent, RecordedRun, RecordedTasks
from homeostat.sim.fit.calibration import (
    FASTEST_PER_S,
    LEAST_BATCHES,
    MANY_SEEDS,
    calibrate,
    percentiles,
    round_digits,
    seconds_of,
)
from homeostat.sim.fit.cost_regression import LEAST_VARIATION, Cost, fit_cost
from homeostat.sim.fit.load_steps import workload
from homeostat.sim.fit.replay import replay
from homeostat.sim.routing import largest_share
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Scenario

# The first batches of a run and of an executor, in which compilers, caches and connections warm up. Choice.
WARMING = 4
# A task that takes this many times the usual time in its batch is a straggler. Choice.
STRAGGLES = 2.0
# With a larger share of stragglers, they are the rule and part of the noise. Choice.
MOST_STRAGGLERS = 0.1
# The largest warm-up factor, so that one odd first batch cannot distort the fit. Choice.
MOST_WARM_UP = 100.0
# A longer pause between two runs is not a restart. Choice.
LONGEST_RESTART_S = 600.0
# The exponents that are tried.
ZIPF_EXPONENTS = tuple(step / 10 for step in range(21))
# More keys than this do not make a hash more even.
MOST_KEYS = 1_000_000
# Only the latest batches are used, which are the warmest. More of them would take time, but add no information. Choice.
MOST_BATCHES = 300


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well recorded batches are simulated, each with the rows, tasks and executors it really had.

    `median_error` is the median relative error of their simulated durations; `coverage` the share of batches between
    the simulated 10th and 90th percentiles.
    """

    batches: int
    median_error: float
    coverage: float

    def __str__(self) -> str:
        return (
            f"{self.batches} batches: median error {self.median_error:.0%}, "
            f"{self.coverage:.0%} between the simulated 10th and 90th percentiles"
        )


@dataclass(frozen=True, slots=True)
class Fitted:
    """A scenario, and how well it agrees with the run it was fitted to."""

    scenario: Scenario
    agreement: Agreement

    def as_json(self) -> dict[str, object]:
        scenario = self.scenario
        return {
            "name": scenario.name,
            **asdict(self.agreement),
            "microbatch": asdict(scenario.engine),
            "service_noise": asdict(scenario.service_noise),
            "components": [asdict(component) for component in scenario.components],
            "workload": [{"at_s": at_s, "rate_per_s": rate} for at_s, rate in scenario.workload.steps],
            "notes": scenario.notes,
        }


def fit(run: RecordedRun) -> Fitted:
    """Fit a scenario to a run. Raises ConfigError if the run has too few usable batches."""
    settled_batches, fresh = _settled_batches(run)
    recorded = [c for c in run.components if 2 * sum(c.name in b.tasks for b in settled_batches) > len(settled_batches)]
    costs = {c.name: _cost(c.name, settled_batches) for c in recorded}
    share, factor = _stragglers(costs, settled_batches)
    engine = replace(
        _engine(run, settled_batches),
        warm_up=_warm_up(costs, settled_batches, fresh),
        straggler_share=share,
        straggler_factor=factor,
    )

    def fit_components(batches: Sequence[RecordedBatch]) -> tuple[ComponentSpec, ...]:
        source = {c.name: batches if any(c.name in b.tasks for b in batches) else settled_batches for c in recorded}
        return tuple(_component(c, _cost(c.name, source[c.name]), run, source[c.name]) for c in recorded)

    components, engine, noise = calibrate(fit_components, engine, settled_batches)
    scenario = Scenario(
        name=re.sub(r"[^A-Za-z0-9_.-]+", "-", run.application).strip("-._") or "fitted",
        title=f"As recorded: {run.query}",
        engine=engine,
        duration_s=max(1.0, round(run.batches[-1].ended_s - run.batches[0].started_s, 1)),
        components=components,
        workload=workload(run.batches),
        service_noise=noise,
        notes=(*run.notes, *_notes(costs, engine)),
    )
    return Fitted(scenario, agreement(scenario, run))


def agreement(scenario: Scenario, run: RecordedRun) -> Agreement:
    """How well a micro-batch scenario simulates the batches of a run, which need not be the run it was fitted to."""
    if not isinstance(scenario.engine, MicrobatchSpec):
        raise ConfigError("the scenario is not for the micro-batch engine", where=scenario.name)
    batches, _ = _settled_batches(run)
    simulated_s = replay(scenario.components, scenario.engine, scenario.service_noise, batches, MANY_SEEDS)
    measured = seconds_of(batches)
    low, middle, high = percentiles(simulated_s)
    return Agreement(
        batches=len(batches),
        median_error=float(np.median(np.abs(middle / measured - 1))),
        coverage=float(np.mean((low <= measured) & (measured <= high))),
    )


def _settled_batches(run: RecordedRun) -> tuple[list[RecordedBatch], list[tuple[RecordedBatch, str]]]:
    """The batches on warm executors, and those in which an executor worked for the first time, with its name."""
    batches_of_worker: Counter[str] = Counter()
    settled_batches: list[RecordedBatch] = []
    fresh: list[tuple[RecordedBatch, str]] = []
    for batch in run.batches:
        workers = _workers(batch)
        if batch.tasks and min(batches_of_worker[name] for name in (batch.run, *workers)) >= WARMING:
            settled_batches.append(batch)
        fresh += [(batch, worker) for worker in sorted(workers) if not batches_of_worker[worker]]
        batches_of_worker.update((batch.run, *workers))
    if len(settled_batches) < LEAST_BATCHES:
        raise ConfigError(
            f"only {len(settled_batches)} batches with rows ran on warm executors",
            where=run.application,
            fix=f"record at least {LEAST_BATCHES} batches under different loads; 30 are better",
        )
    return settled_batches[-MOST_BATCHES:], fresh


def _workers(batch: RecordedBatch) -> set[str]:
    return {str(worker) for tasks in batch.tasks.values() for worker in tasks.executor}


def _cost(name: str, batches: Sequence[RecordedBatch]) -> Cost:
    tasks = [batch.tasks[name] for batch in batches if name in batch.tasks]
    return fit_cost(
        np.concatenate([columns.rows for columns in tasks]),
        np.concatenate([columns.keys for columns in tasks]),
        np.concatenate([columns.seconds for columns in tasks]),
        np.concatenate([columns.busy for columns in tasks]),
    )


def _component(
    recorded: RecordedComponent, cost: Cost, run: RecordedRun, batches: Sequence[RecordedBatch]
) -> ComponentSpec:
    tasks = [batch.tasks[recorded.name] for batch in batches if recorded.name in batch.tasks]
    read = any(recorded.name in other.inputs for other in run.components)
    selectivity, combining = _selectivity(tasks) if read else (1.0, 1.0)
    spec = ComponentSpec(
        name=recorded.name,
        kind="operator" if recorded.inputs else "source",
        inputs=recorded.inputs,
        parallelism=len(tasks[-1].rows),
        rate_per_s=min(FASTEST_PER_S, 1 / cost.row_s) if cost.row_s > 0 else FASTEST_PER_S,
        selectivity=selectivity,
        combining=combining,
        task_s=cost.task_s,
        crowding=cost.crowding,
        key_s=cost.key_s,
        stateful=recorded.stateful,
    )
    if not recorded.keyed or not recorded.inputs:
        return spec
    state_rows = max((batch.state_rows for batch in batches if batch.state_rows > 0), default=spec.keys)
    keys = int(min(MOST_KEYS, state_rows))
    return _with_skew(replace(spec, keyed=True, keys=keys), [columns.rows for columns in tasks])


def _selectivity(tasks: Sequence[RecordedTasks]) -> tuple[float, float]:
    """The selectivity, and the exponent with which the rows sent by a task grow with the rows read: below 1 if the task
    merges rows of the same key."""
    rows = np.array([columns.rows.mean() for columns in tasks])
    rows_out = np.array([columns.rows_out.mean() for columns in tasks])
    measured = (rows > 0) & (rows_out > 0)
    if not measured.any():
        return 1.0, 1.0
    logs, logs_out = np.log(rows[measured]), np.log(rows_out[measured])
    if logs.std() < LEAST_VARIATION:
        return round_digits(float(rows_out[measured].sum() / rows[measured].sum())), 1.0
    combining = round_digits(float(np.clip(np.polyfit(logs, logs_out, 1)[0], 0.0, 1.0)))
    return round_digits(float(np.exp(np.mean(logs_out - combining * logs)))), combining


def _with_skew(spec: ComponentSpec, rows: Sequence[Array]) -> ComponentSpec:
    """The component with the Zipf exponent that gives the fullest partition its recorded rows."""
    largest = [float(part.max() / part.sum()) for part in rows if len(part) == spec.parallelism and part.sum() > 0]
    if not largest or spec.parallelism == 1:
        return spec
    target = float(np.median(largest))
    return min(
        (replace(spec, zipf=zipf) for zipf in ZIPF_EXPONENTS),
        key=lambda candidate: round(abs(largest_share(candidate, spec.parallelism) - target), 2),
    )


def _engine(run: RecordedRun, batches: Sequence[RecordedBatch]) -> MicrobatchSpec:
    usual = MicrobatchSpec()
    commit_s = _median([batch.commit_s for batch in batches], usual.commit_s)
    working = [e for e in run.executors if e.added_s <= batches[0].started_s < e.removed_s]
    executors = max(1, len(working))
    return MicrobatchSpec(
        trigger_s=batch_limits.trigger_s(run.batches),
        rows_per_trigger=batch_limits.rows_per_trigger(run.batches),
        executors=executors,
        max_executors=max(usual.max_executors, executors),
        slots=run.executors[0].slots if run.executors else usual.slots,
        executor_start_s=_executor_start_s(run, usual.executor_start_s),
        locality_wait_s=run.locality_wait_s,
        driver_s=_median([batch.seconds - _working_s(batch) - commit_s for batch in batches], usual.driver_s),
        commit_s=commit_s,
        restart_s=_restart_s(run.batches, usual.restart_s),
        hosts=max(1, len({executor.host for executor in run.executors})),
    )


def _working_s(batch: RecordedBatch) -> float:
    """How long tasks of any stage ran. The rest of a batch is the driver's."""
    spans = sorted((float(t.start_s.min()), float(t.finish_s.max())) for t in batch.tasks.values())
    total, until_s = 0.0, 0.0
    for start_s, end_s in spans:
        total += max(0.0, end_s - max(start_s, until_s))
        until_s = max(until_s, end_s)
    return total


def _executor_start_s(run: RecordedRun, usual_s: float) -> float:
    """The start of the first executor, which is requested when the driver is up. A log does not say when later ones
    were requested."""
    waits = [executor.added_s - run.driver_up_s for executor in run.executors if executor.id != "driver"]
    return _median(sorted(wait for wait in waits if wait > 0)[:1], usual_s)


def _restart_s(batches: Sequence[RecordedBatch], usual_s: float) -> float:
    """The pause between two runs. After a restart, batch numbers continue; if they begin again, it is another query."""
    pauses = [
        after.started_s - before.ended_s
        for before, after in pairwise(batches)
        if before.run != after.run and after.number > before.number
    ]
    return _median([pause for pause in pauses if 0 < pause < LONGEST_RESTART_S], usual_s)


def _warm_up(
    costs: dict[str, Cost], settled_batches: Sequence[RecordedBatch], fresh: Sequence[tuple[RecordedBatch, str]]
) -> float:
    """How many times longer than usual an executor takes for its first batch.

    The lost time hardly depends on the rows, so the time is compared with that of a usual batch.
    """
    worked_s = [
        sum(tasks.seconds.sum() for tasks in batch.tasks.values()) / len(_workers(batch)) for batch in settled_batches
    ]
    lost_s = [
        sum(
            (tasks.seconds - _expected_seconds(costs[name], tasks))[tasks.executor == worker].sum()
            for name, tasks in stages
        )
        for batch, worker in fresh
        if (stages := [(name, batch.tasks[name]) for name in costs if name in batch.tasks])
    ]
    if not lost_s:
        return MicrobatchSpec().warm_up
    return min(MOST_WARM_UP, 1 + _median(lost_s, 0.0) / max(1e-3, _median(worked_s, 0.0)))


def _stragglers(costs: dict[str, Cost], batches: Sequence[RecordedBatch]) -> tuple[float, float]:
    """The share of stragglers, and how many times the median task of their batch and component they take."""
    ratios: list[float] = []
    for batch in batches:
        for name, cost in costs.items():
            if (tasks := batch.tasks.get(name)) is not None:
                ratio = tasks.seconds / _expected_seconds(cost, tasks)
                ratios += (ratio / np.median(ratio)).tolist()
    late = [ratio for ratio in ratios if ratio > STRAGGLES]
    share = len(late) / len(ratios)
    if not late or share > MOST_STRAGGLERS:
        return 0.0, MicrobatchSpec().straggler_factor
    return round_digits(share), round_digits(float(np.median(late)))


def _expected_seconds(cost: Cost, tasks: RecordedTasks) -> Array:
    return np.maximum(cost.seconds(tasks.rows, tasks.keys, tasks.busy), 1e-3)


def _notes(costs: dict[str, Cost], engine: MicrobatchSpec) -> Iterator[str]:
    for name, cost in costs.items():
        if not cost.separable:
            yield f"{name}: rows per task hardly varied, so the costs per task and per row are a guess"
    if engine.trigger_s == 0:
        yield "trigger: no batch waited for a trigger, so each batch is assumed to start when the previous one ends"


def _median(values: Sequence[float], usual: float) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return max(0.0, round_digits(float(np.median(finite)))) if finite else usual
