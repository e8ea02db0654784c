"""What a run has shown to work."""

from __future__ import annotations

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, ROWS_PER_TRIGGER, Configuration, Knob
from homeostat.core.events import Apply, Event, Observed, Receipt
from homeostat.core.observation import FlowSample, Observation, TaskSample, WorkerSample
from homeostat.spark.act.evidence import Witness

LIMIT = Knob(ROWS_PER_TRIGGER, "q")
BEFORE = Configuration({EXECUTORS_KNOB: 2, LIMIT: 100})
AFTER = Configuration({EXECUTORS_KNOB: 2, LIMIT: 200})
WAY = "the driver's status store"


def batch(number: int, rows: float, *, tasks: bool) -> Event:
    """Whose tasks were read, or not."""
    one = np.array([rows])
    sample = TaskSample(one, one, one, one, one, one, worker=np.array([0]))
    return Observed(
        Observation(
            at_s=float(number),
            span_s=1.0,
            batch=number,
            flows=(FlowSample("source", "q", rows=rows),),
            tasks={"scan": sample} if tasks else {},
            workers=WorkerSample(ids=("1",), hosts=("h",)) if tasks else WorkerSample(),
        )
    )


def note(witness: Witness, *events: Event) -> list[bool]:
    return [witness.note(event, WAY, ("it refused",)) for event in events]


def test_a_batch_with_tasks_is_evidence_once() -> None:
    witness = Witness()
    assert note(witness, batch(0, 10, tasks=True), batch(1, 10, tasks=True)) == [True, False]
    assert witness.evidence.progress
    assert witness.evidence.tasks
    assert witness.evidence.way == WAY


def test_several_batches_with_rows_and_without_tasks_are_evidence_against() -> None:
    witness = Witness()
    note(witness, batch(0, 10, tasks=True), batch(1, 10, tasks=False), batch(2, 10, tasks=False))
    assert not witness.evidence.lacks_tasks
    note(witness, batch(3, 0, tasks=False))
    assert not witness.evidence.lacks_tasks, "a batch without rows has no tasks"
    note(witness, batch(4, 10, tasks=False))
    assert witness.evidence.lacks_tasks
    note(witness, batch(5, 10, tasks=True))
    assert not witness.evidence.lacks_tasks


def test_a_receipt_is_evidence_for_what_the_command_changed() -> None:
    witness = Witness()
    witness.expect(Apply("a-1", 0.0, AFTER, (), 60.0), BEFORE)
    note(witness, Receipt("a-1", 1.0, AFTER))
    assert witness.evidence.changed == {LIMIT}
    witness.expect(Apply("a-2", 2.0, BEFORE, (), 60.0), AFTER)
    note(witness, Receipt("a-2", 3.0, AFTER, applied=False, detail="no effect within 60 s"))
    assert witness.evidence.failed == {LIMIT: "no effect within 60 s"}


def test_a_replaced_executor_is_evidence() -> None:
    witness = Witness()
    witness.expect(Apply("a-1", 0.0, Configuration(BEFORE.values, frozenset({"3"})), (), 60.0), BEFORE)
    note(witness, Receipt("a-1", 1.0, BEFORE))
    assert witness.evidence.replaced
    assert not witness.evidence.changed
