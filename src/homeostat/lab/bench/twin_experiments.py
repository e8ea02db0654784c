"""E1 to E4 in a form that runs both on real Spark and in the micro-batch simulator, and the actions in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from homeostat.core.configuration import ADMISSION_ROOM, EXECUTORS_KNOB
from homeostat.core.objective import Objective
from homeostat.lab.bench.ground import CORES, WORKERS, Ground
from homeostat.lab.bench.quiet import GivenUp, never
from homeostat.lab.bench.trial_log import action_kinds
from homeostat.lab.experiment import Moment, Trial, TrialResult
from homeostat.lab.faults import SlowExecutor
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import WordCount, specification
from homeostat.policies import registry
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import simulate
from homeostat.store.in_memory import MemoryStore

TRIGGER_S = 3.0
SEEDS = (1, 2, 3, 4, 5)
# Faster than for a real application, since an experiment lasts minutes. Only `catch_up` is long: otherwise the number
# of executors would depend on the backlog that happened to be there at the decision.
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "guards": {"cooldown": "5 s", "cooldown_shrink": "2 min", "confirm": "1 min"},
    "loop": {"settle": "20 s", "window": "1 min", "patience": "30 s", "catch_up": "5 min"},
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """`load` has pairs (second, factor): from that second on, `load_per_s` is multiplied by the factor. From
    `slow_at_s` on, one executor is slow."""

    name: str
    title: str
    duration_s: float
    load_per_s: float
    load: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    noise: Noise = Noise()
    executors: int = 3
    source_partitions: int = 12
    state_partitions: int = 4
    policy: str = "provisioning"
    throughput_per_s: float | None = None
    slow_at_s: float | None = None
    slow_factor: float = 4.0

    def stretch(self, factor: float) -> Experiment:
        """The same experiment with all times multiplied by `factor`."""
        return replace(
            self,
            duration_s=factor * self.duration_s,
            load=tuple((factor * at_s, times) for at_s, times in self.load),
            slow_at_s=None if self.slow_at_s is None else factor * self.slow_at_s,
        )

    @property
    def rows_per_trigger(self) -> int:
        return round(ADMISSION_ROOM * TRIGGER_S * self.load_per_s * max(factor for _, factor in self.load))


# The loads and partitions leave no doubt about the number of executors: the right number has a third to spare, and
# numbers below it are too few because they need another wave of tasks. So a decision does not depend on the noise of
# one run.
EXPERIMENTS = (
    Experiment(
        "E1",
        "the load falls by 20 %, rises by 30 %, then doubles",
        400.0,
        780.0,
        load=((0.0, 1.0), (120.0, 0.8), (200.0, 1.04), (280.0, 2.08)),
        executors=4,  # as many as the last load needs, and twice as many as the first needs
        source_partitions=4,
        state_partitions=2,
    ),
    Experiment(
        "E2",
        "a throughput objective from one executor and one partition",
        240.0,
        850.0,
        executors=1,
        source_partitions=1,
        state_partitions=1,
        policy="throughput",
        throughput_per_s=850.0,
    ),
    Experiment(
        "E3",
        "one slow executor, and too few executors",
        300.0,
        2_450.0,
        source_partitions=6,
        state_partitions=2,
        slow_at_s=0.0,
    ),
    Experiment("E4", "noise around a load that needs no change", 240.0, 1_000.0, noise=Noise(0.15, 0.7)),
)


@dataclass(frozen=True, slots=True)
class Done:
    """The kinds of action in order, and the executors at the end."""

    kinds: tuple[str, ...]
    executors: int


def on_spark(
    here: Ground, experiment: Experiment, attempt: int = 1, given_up: GivenUp = never
) -> tuple[Done, TrialResult]:
    here.set_executors(experiment.executors)
    trial = Trial(
        here.spark,
        here.directory / f"{experiment.name}-{attempt}",
        _specification(here.directory / f"ledger-{experiment.name}-{attempt}", experiment),
        policy=experiment.policy,
        settings=SETTINGS,
    )
    faults: list[SlowExecutor] = []
    try:
        result = trial.run(experiment.duration_s, _moments(experiment, faults), until=lambda _: given_up())
    finally:
        for fault in faults:
            fault.stop()
    return Done(tuple(result.actions), int(result.final.get(EXECUTORS_KNOB, 0))), result


def _specification(ledger: Path, experiment: Experiment) -> WordCount:
    return specification(
        Profile(WorkloadSpec("constant", experiment.load_per_s, noise=experiment.noise)),
        ledger,
        Objective(throughput_per_s=experiment.throughput_per_s),
        trigger_s=TRIGGER_S,
        executors=experiment.executors,
        source_partitions=experiment.source_partitions,
        state_partitions=experiment.state_partitions,
        rows_per_trigger=experiment.rows_per_trigger,
    )


def _moments(experiment: Experiment, faults: list[SlowExecutor]) -> list[Moment]:
    def slow_down(trial: Trial) -> None:
        slow_id = min(trial.application.sensors.workers().ids, key=int)
        fault = SlowExecutor(slow_id, experiment.slow_factor, str(trial.spark.sparkContext.applicationId))
        faults.append(fault)
        fault.start()

    moments = [Moment(at_s, partial(Trial.load, factor=factor)) for at_s, factor in experiment.load if at_s > 0]
    if experiment.slow_at_s is not None:
        moments.append(Moment(experiment.slow_at_s, slow_down))
    return sorted(moments, key=lambda moment: moment.at_s)


def simulate_experiment(fitted_scenario: Scenario, experiment: Experiment, seed: int) -> Done:
    scenario = scenario_of(fitted_scenario, experiment)
    store = MemoryStore()
    result = simulate(scenario, registry.build(scenario.policy, scenario.settings), seed=seed, store=store, run="twin")
    return Done(tuple(action_kinds(store.records("twin"))), int(result.final_parallelism["executors"]))


def scenario_of(fitted_scenario: Scenario, experiment: Experiment) -> Scenario:
    """The experiment on an application with the fitted costs and noise, without the variation between runs."""
    assert isinstance(fitted_scenario.engine, MicrobatchSpec)
    steps = tuple((at_s, factor * experiment.load_per_s) for at_s, factor in experiment.load)
    slow = FaultSpec("slow-instance", at_s=experiment.slow_at_s or 0.0, component="app", factor=experiment.slow_factor)
    return replace(
        fitted_scenario,
        name=experiment.name,
        title=experiment.title,
        duration_s=experiment.duration_s,
        engine=replace(
            fitted_scenario.engine,
            trigger_s=TRIGGER_S,
            executors=experiment.executors,
            max_executors=WORKERS * CORES,
            run_sigma=0.0,
            rows_per_trigger=experiment.rows_per_trigger,
        ),
        components=tuple(_with_partitions(component, experiment) for component in fitted_scenario.components),
        workload=WorkloadSpec("steps", experiment.load_per_s, steps=steps, noise=experiment.noise),
        faults=() if experiment.slow_at_s is None else (slow,),
        objective=Objective(throughput_per_s=experiment.throughput_per_s),
        policy=experiment.policy,
        settings=SETTINGS,
    )


def _with_partitions(component: ComponentSpec, experiment: Experiment) -> ComponentSpec:
    if component.kind == "source":
        return replace(component, parallelism=experiment.source_partitions)
    return replace(component, parallelism=experiment.state_partitions) if component.stateful else component


def comparison_json(experiment: Experiment, real: Done, twins: Sequence[Done]) -> dict[str, Any]:
    """The real run beside the most frequent result of the simulator."""
    (twin, count), *_ = Counter(twins).most_common()
    return {
        "title": experiment.title,
        "spark": {"actions": real.kinds, "executors": real.executors},
        "simulator": {"actions": twin.kinds, "executors": twin.executors, "seeds": f"{count} of {len(twins)}"},
        "same_actions": real.kinds == twin.kinds,
        "same_executors": abs(real.executors - twin.executors) <= 1,
        "seeds_with_the_same_actions": sum(each.kinds == real.kinds for each in twins),
    }
