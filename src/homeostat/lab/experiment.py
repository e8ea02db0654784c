"""Runs an experiment on real Spark: an application, a load, faults at given times, and the actions of the loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import Configuration
from homeostat.core.loop_state import Mode
from homeostat.core.records import BATCH, FAILURE, ActionContent, DiagnosisContent, OutcomeContent, Record, with_content
from homeostat.lab.ledger import check, committed_rows, recorded_rows
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_control import add_load_step
from homeostat.lab.wordcount import NAME, WordCount, pipeline_of
from homeostat.policies import registry
from homeostat.runtime.batch_lines import Samples
from homeostat.runtime.loop_thread import Loop
from homeostat.runtime.manager import Manager
from homeostat.spark.application import Application
from homeostat.store.in_memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.core.cycle import Trace
    from homeostat.core.loop_state import State

LOOK_AGAIN_S = 0.2
INTERVAL_S = 0.5
WARM_UP = 0.05  # of the profile's load, until the query has done its first batch
JOIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Something to do `at_s` seconds after the first batch."""

    at_s: float
    do: Callable[[Trial], object]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`differences` are those between the rows of the sink and those of the profile. Empty if no row was lost or
    duplicated."""

    started_s: float
    records: tuple[Record, ...]
    final: Configuration
    rows: int
    differences: tuple[str, ...]
    complaints: tuple[str, ...] = ()

    def of(self, *kinds: str) -> list[Record]:
        return [record for record in self.records if record.kind in kinds]

    @property
    def actions(self) -> list[str]:
        return [action.action_kind for _, action in with_content(self.records, ActionContent)]

    @property
    def batches(self) -> list[Record]:
        return self.of(BATCH)

    @property
    def verdicts(self) -> list[str]:
        return [outcome.verdict for _, outcome in with_content(self.records, OutcomeContent)]

    def causes(self) -> list[str]:
        diagnoses = with_content(self.records, DiagnosisContent)
        return [diagnosis.cause for _, diagnosis in diagnoses if diagnosis.cause and not diagnosis.over]


@dataclass
class Trial:
    """One word count, on a session that can be used before and after it."""

    spark: SparkSession
    directory: Path
    spec: WordCount
    policy: str = "provisioning"
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    mode: Mode = "regulate"
    application: Application = field(init=False)
    started_s: float = 0.0

    def __post_init__(self) -> None:
        """The profile starts now, but hardly any rows arrive before the query runs: see WARM_UP."""
        self.spec = replace(self.spec, start_s=time.time())
        self.application = Application([pipeline_of(self.spec)], self.directory)
        self.store = MemoryStore()
        self.complaints: list[str] = []
        self._manager: Manager | None = None

    def load(self, factor: float) -> None:
        """From now on, multiply the profile's load by this factor."""
        assert self.spec.start_s is not None
        add_load_step(self.application.control(NAME), time.time() - self.spec.start_s, factor)

    @property
    def elapsed_s(self) -> float:
        return time.time() - self.started_s

    def records(self, *kinds: str) -> list[Record]:
        return self.store.records(NAME, kinds=kinds)

    def run(
        self,
        duration_s: float,
        moments: Sequence[Moment] = (),
        until: Callable[[Trial], bool] = lambda _: False,
        each: Callable[[Trial], None] = lambda _: None,
    ) -> TrialResult:
        """Run for `duration_s`, or until the condition holds. Afterwards everything that it started is stopped."""
        application = self.application
        application.open(self.spark)
        self.load(WARM_UP)
        loop = Loop(self._managers, self.complaints.append, INTERVAL_S)
        try:
            application.start()
            self.started_s = time.time()
            self.load(1.0)
            loop.start()
            self._live(duration_s, list(moments), until, each)
            final = application.describe(NAME).configuration
        finally:
            loop.stop()
            if loop.thread.is_alive():
                loop.thread.join(JOIN_S)
            application.stop(session=False)
        return self._result(final)

    def _live(
        self,
        duration_s: float,
        moments: list[Moment],
        until: Callable[[Trial], bool],
        each: Callable[[Trial], None],
    ) -> None:
        while self.elapsed_s < duration_s and not until(self) and self.application.running():
            while moments and moments[0].at_s <= self.elapsed_s:
                moments.pop(0).do(self)
            each(self)
            time.sleep(LOOK_AGAIN_S)

    def _managers(self) -> Sequence[Manager]:
        samples = Samples()

        def after(trace: Trace, state: State) -> None:
            self.store.append(NAME, samples.new(state))

        policy = registry.build(self.policy, self.settings)
        objective = self.application.pipelines[0].objective
        engine = self.application.engine(NAME)
        return [Manager(engine, policy, self.store, NAME, objective=objective, mode=self.mode, on_step=after)]

    def _result(self, final: Configuration) -> TrialResult:
        checkpoint = self.directory / "checkpoints" / NAME
        rows = max(committed_rows(checkpoint), recorded_rows(self.spec.ledger, checkpoint))
        differences = check(self.spec.ledger, Profile.from_json(self.spec.profile), rows)
        return TrialResult(
            self.started_s, tuple(self.store.records(NAME)), final, rows, tuple(differences), tuple(self.complaints)
        )


def json_of(result: TrialResult) -> dict[str, Any]:
    return {
        "actions": [
            {"at_s": round(record.at_s - result.started_s, 1), "kind": action.action_kind, "text": record.text}
            for record, action in with_content(result.records, ActionContent)
        ],
        "verdicts": result.verdicts,
        "final": dict(result.final.as_json()),
        "rows": result.rows,
        "differences": list(result.differences),
        "failures": [*result.complaints, *(record.text for record in result.of(FAILURE))],
    }
