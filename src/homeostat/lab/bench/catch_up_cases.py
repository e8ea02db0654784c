"""Random simulated applications that come back from an outage with a backlog, for `homeostat bench catchup`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.configuration import CHANGELOG_CHECKPOINTING, Capabilities, Knob, Patch
from homeostat.lab.bench.watched_engine import WatchedEngine
from homeostat.models.application_model import ApplicationModel, application_model
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec

TRIGGER_S = 10.0
MOST_EXECUTORS = 40
# A run begins without trouble, so that there is something to fit a model to.
QUIET_S = 600.0
# The outage is a restart of the query that takes that long. It changes a knob that has no other effect here.
_OUTAGE = Patch({Knob(CHANGELOG_CHECKPOINTING, "main"): 1})
_NOISE = Noise(0.03, 0.3)
_KEYS = 20_000
# The disturbances while the query catches up, in the runs that compare rules of admission.
NOTHING, LOST_EXECUTOR, CONTENTION = "nothing", "lost executor", "contention"
DISTURBANCES = (NOTHING, LOST_EXECUTOR, CONTENTION)
# The disturbance begins this long after the end of the outage, and it stays.
DISTURBED_AFTER_S = 150.0


@dataclass(frozen=True, slots=True)
class Case:
    """`within_s` is the objective: the time in which the backlog of the outage must be worked off."""

    scenario: Scenario
    outage_s: float
    within_s: float

    @property
    def rate_per_s(self) -> float:
        return self.scenario.workload.rate_per_s

    @property
    def back_s(self) -> float:
        """When the query runs again."""
        return QUIET_S + self.outage_s


def draw_case(seed: int) -> Case:
    """The seed determines the application, its load, the length of the outage and the objective."""
    random = np.random.default_rng([seed, 32])
    executors = int(random.integers(3, 9))
    partitions = executors * int(random.integers(4, 9))
    rate = float(random.choice([1_000.0, 5_000.0, 20_000.0]))
    outage_s = float(random.uniform(300.0, 1_800.0))
    within_s = outage_s * float(random.uniform(0.3, 1.0))
    busy_s = float(random.uniform(0.4, 0.6)) * TRIGGER_S * executors
    source, count = (rate * TRIGGER_S / (busy_s * float(part)) for part in random.dirichlet([5.0, 8.0]))
    scenario = Scenario(
        name=f"catchup-{seed}",
        title="a query that was down comes back",
        engine=MicrobatchSpec(
            trigger_s=TRIGGER_S,
            executors=executors,
            max_executors=MOST_EXECUTORS,
            rows_per_trigger=float(round(2.0 * rate * TRIGGER_S)),
            executor_start_s=float(random.uniform(8.0, 20.0)),
            restart_s=outage_s,
            changelog_commit=1.0,
            live_limits=True,
        ),
        duration_s=QUIET_S + outage_s + 20.0 * within_s,
        components=(
            ComponentSpec("read", "source", parallelism=partitions, rate_per_s=source),
            ComponentSpec(
                "count",
                inputs=("read",),
                parallelism=partitions,
                rate_per_s=count,
                keyed=True,
                keys=_KEYS,
                stateful=True,
            ),
        ),
        workload=WorkloadSpec(rate_per_s=rate, noise=_NOISE),
        service_noise=_NOISE,
        seed=seed,
    )
    return Case(scenario, outage_s, within_s)


def disturbed(case: Case, disturbance: str) -> Case:
    """The same case with something that goes wrong while it catches up."""
    at_s = case.back_s + DISTURBED_AFTER_S
    faults: dict[str, tuple[FaultSpec, ...]] = {
        NOTHING: (),
        LOST_EXECUTOR: (FaultSpec("crash", at_s, case.scenario.duration_s),),
        CONTENTION: (FaultSpec("contention", at_s, share=0.3),),
    }
    return replace(case, scenario=replace(case.scenario, faults=faults[disturbance]))


def after_outage(case: Case) -> WatchedEngine:
    """The application after the outage, as soon as enough batches have ended for a model."""
    engine = WatchedEngine(case.scenario)
    engine.run_until(QUIET_S)
    engine.change(_OUTAGE)
    engine.run_until(case.back_s)
    while application_model(engine.view) is None:
        engine.next_batch()
    return engine


def fitted(case: Case, engine: WatchedEngine) -> ApplicationModel | None:
    """The model of the observations so far; None for the first batches of a configuration. It may change only knobs
    that apply while the query runs, since another outage is no way to catch up."""
    model = application_model(engine.view)
    if model is None:
        return None
    live = {knob: spec for knob, spec in model.capabilities.knobs.items() if spec.live}
    objective = replace(model.objective, catch_up_s=case.within_s)
    return replace(model, capabilities=Capabilities(live), objective=objective)
