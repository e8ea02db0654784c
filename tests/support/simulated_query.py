"""A simulated query without the engine around it: 100 rows/s, and a batch every 10 s."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.agenda import CLUSTER, Agenda
from homeostat.sim.microbatch.batches import Batch
from homeostat.sim.microbatch.executors import Executors
from homeostat.sim.microbatch.layout import layout
from homeostat.sim.microbatch.offsets import Offsets
from homeostat.sim.microbatch.query import Query
from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.microbatch.step_runner import StepRunner
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.workload import Workload

SPEC = MicrobatchSpec(trigger_s=10.0, executors=2, executor_start_s=10.0, restart_s=5.0, driver_s=0.5, commit_s=0.2)
SCENARIO = Scenario(
    name="query",
    title="",
    engine=SPEC,
    duration_s=100.0,
    components=(
        ComponentSpec("lines", "source", parallelism=2),
        ComponentSpec("count", inputs=("lines",), parallelism=4, keyed=True, stateful=True),
    ),
    workload=WorkloadSpec(rate_per_s=100.0),
)


@dataclass
class SimulatedQuery:
    agenda: Agenda = field(default_factory=Agenda)
    batches: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = layout(SCENARIO, SPEC)
        self.executors = Executors(SPEC, Faults(()), lambda e: self.agenda.at(e.up_s, CLUSTER, self._executor_up))
        self.query = Query(
            SCENARIO.components,
            SPEC,
            plan,
            faults=Faults(()),
            executors=self.executors,
            agenda=self.agenda,
            offsets=Offsets(Workload(SCENARIO.workload, 1), ("lines",)),
            slowness=Slowness(Noise(), SPEC, 1),
            on_batch_end=self.batches.append,
            on_progress=lambda: None,
        )
        self.steps = StepRunner(self.query, self.executors, self.agenda, plan.capabilities)
        self.query.start()

    def _executor_up(self) -> None:
        self.query.adjust_to_executors()
