"""Measures whether the simulator behaves like Spark: batch durations in setups that it was not fitted to, and the
actions of the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from homeostat.core.errors import HomeostatError
from homeostat.core.events import Observed
from homeostat.core.observation import Array
from homeostat.lab.bench.ground import Ground, ground, machine
from homeostat.lab.bench.quiet import GivenUp, Patience, Tell, disturbed_json, never, repeat_until_undisturbed
from homeostat.lab.bench.twin_experiments import (
    EXPERIMENTS,
    SEEDS,
    SETTINGS,
    TRIGGER_S,
    Experiment,
    comparison_json,
    on_spark,
    simulate_experiment,
)
from homeostat.lab.experiment import Moment, Trial, json_of
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, specification
from homeostat.recorded_data.run import RecordedRun
from homeostat.sim.fit.scenario_fit import Fitted, agreement, fit
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import MicrobatchSpec, Scenario, WorkloadSpec
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.outside.logged_run import record

FIT, EXPERIMENT = "fit", "experiments"
PARTS = (FIT, EXPERIMENT)
MOST_ERROR = 0.15
LEAST_COVERAGE, MOST_COVERAGE = 0.7, 0.9
PARTITIONS, STATE_PARTITIONS = 12, 4
WAVE_S = 30.0
# The first batches of a run have cold processes and a backlog from the start.
SKIPPED, SKIPPED_S = 4, 15.0
# The rest of a run is one wave of load. A run with a restart in the middle is longer, since it has two parts.
SETUP_S, RESTARTED_S = SKIPPED_S + WAVE_S, 75.0
# In the simulator all executors are cold at first, so that the backlog of the start takes longer to process.
SETTLING_S, SIMULATED_S = 2 * WAVE_S, 6 * WAVE_S
# Runs differ in speed as a whole, so many runs are simulated.
MANY_SEEDS = tuple(range(1, 51))


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration and its load, which rises and falls by the share `wave`."""

    executors: int
    load_per_s: float
    partitions: int = PARTITIONS
    state_partitions: int = STATE_PARTITIONS
    rows_per_trigger: int | None = None
    trigger_s: float = TRIGGER_S
    wave: float = 0.0

    @property
    def workload(self) -> WorkloadSpec:
        if not self.wave:
            return WorkloadSpec("constant", self.load_per_s)
        return WorkloadSpec("sine", self.load_per_s, amplitude_per_s=self.wave * self.load_per_s, period_s=WAVE_S)

    @property
    def name(self) -> str:
        cut = "" if self.usual else f", {self.partitions} and {self.state_partitions} partitions"
        bound = "" if self.rows_per_trigger is None else f", at most {self.rows_per_trigger:,} a batch"
        every = "" if self.trigger_s == TRIGGER_S else f", every {self.trigger_s:g} s"
        wave = "" if not self.wave else f" ± {self.wave:.0%}"
        return f"{self.executors} executors, {self.load_per_s:,.0f} rows/s{wave}{cut}{bound}{every}"

    @property
    def usual(self) -> bool:
        return (self.partitions, self.state_partitions) == (PARTITIONS, STATE_PARTITIONS)


# The load varies within each run. Runs differ in speed as a whole, so if rows varied only between runs, their cost
# could not be separated from that difference. Many short runs show better than a few long ones how much runs differ.
FITTED = (
    Setup(1, 210.0, wave=0.4),
    Setup(1, 150.0, wave=0.4),
    Setup(1, 280.0, wave=0.4),
    Setup(2, 350.0, wave=0.4),
    Setup(2, 500.0, wave=0.4),
    Setup(2, 650.0, wave=0.4),
    Setup(4, 600.0, wave=0.4),
    Setup(4, 800.0, wave=0.4),
    Setup(4, 1_000.0, wave=0.4),
    Setup(4, 1_200.0, wave=0.4),
)
# Many for the same reason, with steady and with varying loads.
HELD_OUT = (
    Setup(1, 250.0),
    Setup(2, 450.0, wave=0.4),
    Setup(2, 700.0),
    Setup(3, 700.0, wave=0.4),
    Setup(3, 1_000.0),
    Setup(4, 1_100.0, wave=0.4),
    Setup(4, 1_400.0),
    Setup(5, 1_200.0, wave=0.4),
    Setup(5, 1_700.0),
)
# Batches of the first minute take longer, while Java compiles the driver's code.
FIRST = Setup(1, 200.0)
# A machine has slow and fast minutes, so each setup runs once in each round.
ROUNDS = 2
# The seed of the order of runs.
LOT = 1


def measure(*, parts: Sequence[str] = PARTS, scale: float = 1.0, tell: Tell = lambda _: None) -> dict[str, Any]:
    """The numbers of `homeostat bench twin`. All times of the real runs are multiplied by `scale`.

    `parts` may also name single experiments.
    """
    before, patience = machine(), Patience()
    setups = list(in_turn(FITTED, HELD_OUT if FIT in parts else ()))
    tell("starting a cluster")
    with TemporaryDirectory(prefix="homeostat-bench-") as path:
        log = Path(path) / "events"
        with ground("bench-twin", FIRST.executors, event_log=log) as here:
            tell(f"warming up the driver with a run that does not count: {FIRST.name}")
            real_run(here, FIRST, scale * SETUP_S)
            runs: dict[Setup, list[str]] = {setup: [] for _, setup in setups}
            steal_shares: dict[str, list[float]] = {}
            for number, (turn, setup) in enumerate(setups, start=1):
                tell(f"real run {number} of {len(setups)}: {setup.name}")
                restarted = (turn, setup) == (1, FITTED[0])
                seconds = scale * (RESTARTED_S if restarted else SETUP_S)
                run = partial(real_run, here, setup, seconds, turn=turn, restarted=restarted)
                ids, steal_shares[f"{setup.name}, round {turn}"] = repeat_until_undisturbed(run, patience, tell)
                runs[setup] += ids
            recording = record(log)
            fitted_model = fit(only(recording, [run for setup in FITTED for run in runs[setup]]))
            tell(f"fitted to {fitted_model.agreement}")
            figures: dict[str, Any] = {"fitted": _fitted_json(fitted_model)}
            if FIT in parts:
                real = {setup: settled_seconds(only(recording, runs[setup])) for setup in HELD_OUT}
                figures |= held_out_json(fitted_model.scenario, real)
                figures["replayed"] = asdict(
                    agreement(fitted_model.scenario, only(recording, [run for s in HELD_OUT for run in runs[s]]))
                )
                tell(f"held-out setups: median error {figures['median_error']:.0%}, {figures['coverage']:.0%} covered")
            experiments = [each for each in EXPERIMENTS if EXPERIMENT in parts or each.name in parts]
            if experiments:
                figures["experiments"] = _experiments(here, fitted_model.scenario, experiments, scale, patience, tell)
                steal_shares |= {name: each.pop("taken") for name, each in figures["experiments"].items()}
    return {
        **figures,
        "accepted": is_accepted(figures),
        "settings": SETTINGS,
        "scale": scale,
        "machine": {"before": before, "after": machine()},
        "disturbed": disturbed_json(steal_shares),
    }


def in_turn(fitted_setups: Sequence[Setup], held_out_setups: Sequence[Setup]) -> Iterator[tuple[int, Setup]]:
    """Each setup once per round, with the round's number.

    Fitted and held-out setups take turns, so that a slow quarter of an hour affects both alike. Their order is random,
    but always the same.
    """
    lot = Random(LOT)
    for turn in range(1, ROUNDS + 1):
        sides = (lot.sample(side, len(side)) for side in (fitted_setups, held_out_setups))
        for pair in zip_longest(*sides):
            yield from ((turn, setup) for setup in pair if setup is not None)


def held_out_json(scenario: Scenario, real: Mapping[Setup, Array]) -> dict[str, Any]:
    """How far real batches are from the simulated median, and what share of them is within the middle 80 %."""
    errors: list[Array] = []
    inside: list[Array] = []
    setups = {}
    for setup, real_seconds in real.items():
        twins = twin_seconds(scenario, setup)
        if not len(real_seconds) or not len(twins):
            raise HomeostatError(
                f"too few batches ended with {setup.name}",
                where="bench twin",
                fix="use a less busy machine, or a larger --scale",
            )
        low, middle, high = np.percentile(twins, (10, 50, 90))
        errors.append(np.abs(real_seconds / middle - 1))
        inside.append((low <= real_seconds) & (real_seconds <= high))
        setups[setup.name] = {
            "batches": len(real_seconds),
            "median_s": float(np.median(real_seconds)),
            "simulated_p10_p50_p90_s": [float(low), float(middle), float(high)],
            "median_error": float(np.median(errors[-1])),
            "coverage": float(np.mean(inside[-1])),
        }
    error, coverage = float(np.median(np.concatenate(errors))), float(np.mean(np.concatenate(inside)))
    return {
        "median_error": error,
        "coverage": coverage,
        "fit_accepted": error <= MOST_ERROR and LEAST_COVERAGE <= coverage <= MOST_COVERAGE,
        "held_out": setups,
    }


def is_accepted(figures: Mapping[str, Any]) -> bool:
    """Whether the durations agree well enough, and the experiments had the same actions and executors."""
    same = (each["same_actions"] and each["same_executors"] for each in figures.get("experiments", {}).values())
    return bool(figures.get("fit_accepted", True)) and all(same)


def twin_seconds(fitted_scenario: Scenario, setup: Setup) -> Array:
    """Durations of simulated batches with this setup after it has settled, from all seeds."""
    assert isinstance(fitted_scenario.engine, MicrobatchSpec)
    scenario = replace(
        fitted_scenario,
        duration_s=SIMULATED_S,
        engine=replace(fitted_scenario.engine, executors=setup.executors, trigger_s=TRIGGER_S),
        workload=setup.workload,
    )
    seconds: list[float] = []
    for seed in MANY_SEEDS:
        events = Microbatch(scenario, seed).wait(SIMULATED_S)
        observations = [event.observation for event in events if isinstance(event, Observed)]
        seconds += [batch.flows[0].seconds for batch in observations if batch.at_s > SETTLING_S]
    return np.array(seconds)


def real_run(
    here: Ground,
    setup: Setup,
    seconds: float,
    attempt: int = 1,
    given_up: GivenUp = never,
    *,
    turn: int = 1,
    restarted: bool = False,
) -> list[str]:
    """Runs the word count in this setup, without acting on it, and returns the ids of its runs.

    `turn` and `attempt` keep the files of several runs apart. With `restarted`, the query restarts half-way through, so
    that the duration of a restart can be fitted.
    """
    here.set_executors(setup.executors)
    partitions = f"{setup.partitions}-{setup.state_partitions}"
    name = f"{setup.executors}-{setup.load_per_s:.0f}-{setup.wave:g}-{partitions}-{setup.trigger_s:g}-{turn}-{attempt}"
    spec = specification(
        Profile(setup.workload),
        here.directory / f"ledger-{name}",
        trigger_s=setup.trigger_s,
        executors=setup.executors,
        source_partitions=setup.partitions,
        state_partitions=setup.state_partitions,
        rows_per_trigger=setup.rows_per_trigger,
    )
    trial = Trial(here.spark, here.directory / name, spec, mode="observe")
    runs: list[str] = []

    def restart(trial: Trial) -> None:
        runs.append(_run_of(trial))
        trial.application.queries[NAME].restart({}, Deadline.after(seconds))

    moments = [Moment(seconds / 2, restart)] if restarted else []
    trial.run(seconds, moments, until=lambda _: given_up())
    return [*runs, _run_of(trial)]


def _run_of(trial: Trial) -> str:
    query = trial.application.queries[NAME].query
    assert query is not None
    return str(query.runId)


def only(recording: RecordedRun, runs: Sequence[str]) -> RecordedRun:
    return replace(recording, batches=tuple(batch for batch in recording.batches if batch.run in runs))


def settled_seconds(recording: RecordedRun) -> Array:
    """Durations of the batches except the first ones of each run."""
    runs: dict[str, list[float]] = {}
    for batch in recording.batches:
        runs.setdefault(batch.run, []).append(batch.seconds)
    return np.array([seconds for run in runs.values() for seconds in run[SKIPPED:]])


def _fitted_json(fitted_model: Fitted) -> dict[str, Any]:
    return {"setups": [setup.name for setup in FITTED], **fitted_model.as_json()}


def _experiments(
    here: Ground,
    fitted_scenario: Scenario,
    experiments: Sequence[Experiment],
    scale: float,
    patience: Patience,
    tell: Tell,
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for each in experiments:
        experiment = each.stretch(scale)
        tell(f"{experiment.name}: {experiment.title} ({experiment.duration_s:.0f} s)")
        (real, result), steal_shares = repeat_until_undisturbed(partial(on_spark, here, experiment), patience, tell)
        comparison = comparison_json(
            experiment, real, [simulate_experiment(fitted_scenario, experiment, seed) for seed in SEEDS]
        )
        figures[experiment.name] = {**comparison, "run": json_of(result), "taken": steal_shares}
        tell(f"{experiment.name}: {real} on Spark; the same in the simulator: {comparison['same_actions']}")
    return figures
