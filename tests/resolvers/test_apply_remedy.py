"""Remedies as actions: proposed with their gain, kept where they help and taken back where they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeostat.core.actions import RETUNE, REVERT, SWITCH_ON
from homeostat.core.configuration import CHANGELOG_CHECKPOINTING, TRIGGER_S, Knob
from homeostat.core.evidence import LostTime
from homeostat.core.findings import Diagnosis
from homeostat.core.records import ActionContent, AlertContent, OutcomeContent, with_content
from homeostat.core.time_causes import DRIVER_BOUND, STATE_STORE_BOUND
from homeostat.policies import registry
from homeostat.resolvers.apply_remedy import RemedyResolver
from homeostat.sim.microbatch.layout import ASYNC_KNOB, CHANGELOG_KNOB, STATE_KNOB, TRIGGER_KNOB
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore
from homeostat.testing import view_of
from support.timed_batches import slow_sink

SLOW_STORE = FaultSpec("state-store", at_s=200.0, task_s=3.0)
SLOW_COMMIT = FaultSpec("slow-commit", at_s=200.0, seconds=6.0)


class Run:
    """A word count on four executors with two slots each, regulated for a quarter of an hour."""

    def __init__(self, *faults: FaultSpec, rate: float = 400.0, count: dict[str, Any] | None = None, **engine: Any):
        counting: dict[str, Any] = {"parallelism": 16, "stateful": True} | (count or {})
        scenario = Scenario(
            name="word-count",
            title="",
            engine=replace(
                MicrobatchSpec(executors=4, slots=2, warm_up=1.0, hosts=2, locality_wait_s=0.0, max_executors=40),
                **engine,
            ),
            duration_s=900.0,
            components=(
                ComponentSpec("lines", kind="source", parallelism=8, rate_per_s=1000.0),
                ComponentSpec("count", inputs=("lines",), rate_per_s=500.0, keyed=True, keys=100_000, **counting),
            ),
            workload=WorkloadSpec(rate_per_s=rate, noise=Noise(0.05)),
            service_noise=Noise(0.03),
            faults=faults,
        )
        self.store = MemoryStore()
        self.result: RunResult = simulate(
            scenario, registry.build("provisioning", {}), seed=1, store=self.store, run="run"
        )
        records = self.store.records("run")
        self.actions = [(c.action_kind, dict(c.patch)) for _, c in with_content(records, ActionContent)]
        self.verdicts = [c.verdict for _, c in with_content(records, OutcomeContent)]
        self.alerts = [record.text for record, _ in with_content(records, AlertContent)]

    @property
    def values(self) -> dict[Knob, float]:
        return dict(self.result.truth[-1].values)

    @property
    def is_healthy_at_the_end(self) -> bool:
        return all(sample.healthy for sample in self.result.truth[-10:])


@pytest.mark.parametrize(("commit", "verdict"), [(0.3, "helped"), (1.0, "failed")])
def test_changelogs_are_kept_where_they_help_and_taken_back_where_they_do_not(commit: float, verdict: str) -> None:
    run = Run(SLOW_STORE, changelog_commit=commit)
    assert run.actions[0] == (SWITCH_ON, {str(CHANGELOG_KNOB): 1})
    assert run.verdicts[0] == verdict
    assert run.values[CHANGELOG_KNOB] == (verdict == "helped")
    assert (REVERT in [kind for kind, _ in run.actions]) == (verdict == "failed")
    assert run.is_healthy_at_the_end


def test_where_changelogs_are_not_possible_an_alert_names_the_setting() -> None:
    run = Run(SLOW_STORE)
    assert SWITCH_ON not in [kind for kind, _ in run.actions]
    (message,) = run.alerts
    assert (
        "with spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true a batch would take" in message
    )


def test_an_alert_waits_while_an_action_may_mend_the_cause() -> None:
    assert not Run(SLOW_STORE, changelog_commit=0.3).alerts


def test_progress_is_tracked_asynchronously_where_the_logs_are_slow_and_there_is_no_state() -> None:
    run = Run(SLOW_COMMIT, rate=700.0, count={"stateful": False}, async_progress=True)
    assert run.actions[0] == (SWITCH_ON, {str(ASYNC_KNOB): 1})
    assert run.verdicts[0] == "helped"
    assert run.values[ASYNC_KNOB] == 1


@pytest.mark.parametrize(
    ("partitions", "rate", "more"), [(400, 400.0, {"trigger_s": 3.0}), (3, 1100.0, {"trigger_s": 10.0})]
)
def test_each_slot_gets_one_task(partitions: int, rate: float, more: dict[str, float]) -> None:
    run = Run(rate=rate, count={"parallelism": partitions, "task_s": 0.05}, **more)
    assert run.actions[0] == (RETUNE, {str(STATE_KNOB): 8})
    assert run.verdicts[0] == "helped"
    assert run.is_healthy_at_the_end


def test_a_trigger_that_is_shorter_than_the_commit_becomes_longer_and_a_person_knows_why() -> None:
    run = Run(replace(SLOW_COMMIT, seconds=12.0))
    kind, patch = run.actions[0]
    assert (kind, list(patch)) == (RETUNE, [str(TRIGGER_KNOB)])
    assert run.values[TRIGGER_KNOB] > 12.0
    assert run.is_healthy_at_the_end
    assert "checkpoint" in run.alerts[0]


def test_a_gain_that_nobody_could_measure_is_not_worth_a_restart() -> None:
    knob = Knob(CHANGELOG_CHECKPOINTING, "main")
    evidence = LostTime(STATE_STORE_BOUND, 0.5, 9.0, 0.05, trigger_s=10.0)
    diagnosis = Diagnosis(STATE_STORE_BOUND, "read", 0.9, evidence)
    assert not list(RemedyResolver().resolve(view_of(slow_sink(1.0), values={knob: 0}), [diagnosis]))


def test_a_trigger_that_something_else_plans_is_left_alone() -> None:
    view = view_of(slow_sink(1.0), values={Knob(TRIGGER_S, "main"): 10.0})
    diagnosis = Diagnosis(DRIVER_BOUND, "", 0.9, LostTime(DRIVER_BOUND, 9.0, 12.0, 0.9, trigger_s=10.0))
    (proposal,) = RemedyResolver().resolve(view, [diagnosis])
    assert dict(proposal.patch.values) == {Knob(TRIGGER_S, "main"): 18.0}
    assert not list(RemedyResolver(plans_trigger=True).resolve(view, [diagnosis]))
