"""What would help against lost time, and why it is not possible here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from homeostat.core.actions import RETUNE, SWITCH_ON
from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    ROWS_PER_TRIGGER,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
    Patch,
    Value,
)
from homeostat.core.evidence import LostTime
from homeostat.core.findings import Diagnosis
from homeostat.core.objective import Objective
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    DRIVER_BOUND,
    SINK_BOUND,
    STATE_STORE_BOUND,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.core.view import View
from homeostat.resolvers.remedies import Remedy, remedies
from homeostat.testing import view_of
from support.timed_batches import slow_sink

CHANGES, ASYNC = Knob(CHANGELOG_CHECKPOINTING, "main"), Knob(ASYNC_PROGRESS, "main")
STATE, TRIGGER, ROWS = Knob(STATE_PARTITIONS, "main"), Knob(TRIGGER_S, "main"), Knob(ROWS_PER_TRIGGER, "main")


def view(
    values: Mapping[Knob, Value], *, objective: Objective | None = None, notes: Mapping[str, str] | None = None
) -> View:
    """Batches of 1000 rows on two slots, 100 rows/s, with a trigger of 10 s; all of these values can be changed."""
    base_view = view_of(slow_sink(1.0), values=dict(values), objective=objective)
    stage = replace(base_view.topology.components[0], partitions=STATE)
    capabilities = Capabilities(
        {knob: KnobSpec(0, 3600, live=False, apply_s=10.0) for knob in values}, notes=notes or {}
    )
    return replace(base_view, topology=replace(base_view.topology, components=(stage,)), capabilities=capabilities)


def lost(cause: str, lost_s: float, batch_s: float, component: str = "") -> Diagnosis:
    return Diagnosis(cause, component, 0.9, LostTime(cause, lost_s, batch_s, lost_s / 10.0, trigger_s=10.0))


def only(snapshot: View, diagnosis: Diagnosis) -> Remedy:
    (remedy,) = remedies(snapshot, diagnosis)
    return remedy


def test_a_slow_state_store_needs_changelogs() -> None:
    remedy = only(view({CHANGES: 0}), lost(STATE_STORE_BOUND, 6.0, 9.0, "read"))
    assert (remedy.kind, remedy.patch, remedy.refusal) == (SWITCH_ON, Patch({CHANGES: 1}), "")
    assert remedy.sentence == (
        "with spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true "
        "a batch would take 6 s instead of 9 s"
    )


def test_what_is_on_already_cannot_help() -> None:
    assert not remedies(view({CHANGES: 1}), lost(STATE_STORE_BOUND, 6.0, 9.0, "read"))


@pytest.mark.parametrize(("lost_s", "after_s"), [(4.0, 6.0), (7.0, 7.0)])
def test_logs_are_written_beside_the_next_batch_but_no_faster(lost_s: float, after_s: float) -> None:
    remedy = only(view({ASYNC: 0}), lost(CHECKPOINT_BOUND, lost_s, 10.0))
    assert remedy.patch == Patch({ASYNC: 1})
    assert remedy.after_s == after_s


def test_the_reason_against_it_comes_from_the_engine() -> None:
    diagnosis = lost(CHECKPOINT_BOUND, 4.0, 10.0)
    why = "Spark allows it only for queries without state"
    assert only(view({}, notes={"main: asynchronous progress tracking": why}), diagnosis).sentence.endswith(
        f", but {why}"
    )
    attached = view({}, notes={"main: changes that need a restart": "attached queries cannot be restarted"})
    assert only(attached, diagnosis).refusal == "attached queries cannot be restarted"
    assert only(view({}), diagnosis).refusal == "this engine cannot change it"


@pytest.mark.parametrize("cause", [TINY_TASKS, TOO_FEW_PARTITIONS])
def test_each_slot_gets_one_task(cause: str) -> None:
    remedy = only(view({STATE: 40}), lost(cause, 3.0, 9.0, "read"))
    assert (remedy.kind, remedy.patch, remedy.after_s) == (RETUNE, Patch({STATE: 2}), 6.0)
    assert not remedies(view({STATE: 2}), lost(cause, 3.0, 9.0, "read"))
    refused = only(
        view({}, notes={"main: state partitions": "only RocksDB state can be repartitioned"}), remedy_of(cause)
    )
    assert refused.sentence.startswith("with spark.sql.shuffle.partitions=2 a batch would take 6 s")
    assert refused.sentence.endswith(", but only RocksDB state can be repartitioned")


def remedy_of(cause: str) -> Diagnosis:
    return lost(cause, 3.0, 9.0, "read")


def test_a_trigger_shorter_than_the_fixed_cost_of_a_batch_becomes_longer() -> None:
    """9 s of every batch, and 3 s for 1000 rows of which 100 come each second: 9 ÷ (0.8 − 0.3) = 18 s."""
    remedy = only(view({TRIGGER: 10.0}), lost(DRIVER_BOUND, 9.0, 12.0))
    assert (remedy.kind, remedy.patch, remedy.refusal) == (RETUNE, Patch({TRIGGER: 18.0}), "")
    assert not remedy.mends
    assert remedy.gain == 0.0


def test_the_limit_on_rows_grows_with_the_trigger() -> None:
    remedy = only(view({TRIGGER: 10.0, ROWS: 2000}), lost(DRIVER_BOUND, 9.0, 12.0))
    assert remedy.patch == Patch({TRIGGER: 18.0, ROWS: 3600})


def test_a_longer_trigger_must_leave_the_objective_in_reach() -> None:
    diagnosis = lost(DRIVER_BOUND, 9.0, 12.0)
    assert not only(view({TRIGGER: 10.0}, objective=Objective(latency_p95_s=40.0)), diagnosis).refusal
    refusal = only(view({TRIGGER: 10.0}, objective=Objective(latency_p95_s=30.0)), diagnosis).refusal
    assert refusal == "rows would wait up to 32.4 s, longer than the objective allows"


def test_a_trigger_that_the_user_chose_becomes_longer_only_for_an_objective_of_latency() -> None:
    diagnosis = lost(DRIVER_BOUND, 9.0, 12.0)

    def refusal(objective: Objective, promise: float) -> str:
        snapshot = view({TRIGGER: 10.0}, objective=objective)
        spec = replace(snapshot.capabilities.knobs[TRIGGER], promise=promise)
        return only(replace(snapshot, capabilities=Capabilities({TRIGGER: spec})), diagnosis).refusal

    why = "it is longer than the trigger that you chose: set longest_trigger or a latency objective"
    assert refusal(Objective(lag_s=60.0), 10.0) == why
    assert not refusal(Objective(lag_s=60.0), 20.0)
    assert not refusal(Objective(latency_p95_s=60.0), 10.0)


def test_a_longer_trigger_does_not_help_if_the_rows_alone_need_the_time() -> None:
    assert not remedies(view({TRIGGER: 10.0}), lost(DRIVER_BOUND, 9.0, 17.0))
    assert not remedies(view({TRIGGER: 10.0}), lost(DRIVER_BOUND, 3.0, 9.0)), "the interval is not the problem"


def test_other_causes_and_other_evidence_have_no_remedy_here() -> None:
    assert not remedies(view({CHANGES: 0, ASYNC: 0, STATE: 9}), lost(SINK_BOUND, 6.0, 9.0))
    assert not remedies(view({CHANGES: 0}), Diagnosis(STATE_STORE_BOUND, "read"))
