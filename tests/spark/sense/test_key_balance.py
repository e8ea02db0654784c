"""When the keys of a state are looked at, and what is made of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, Knob
from homeostat.core.events import Event, Failure
from homeostat.core.observation import Balance
from homeostat.core.topology import Component, Topology
from homeostat.models.partition_sizes import UnevenPartitions
from homeostat.spark.sense.key_balance import LOOKING, Balances
from homeostat.testing import instances

SHAPE = Topology(
    (
        Component("scan", "source", EXECUTORS_KNOB),
        Component("aggregate", "operator", EXECUTORS_KNOB, ("scan",), partitions=Knob(STATE_PARTITIONS, "words")),
    )
)
EVEN, UNEVEN = [100.0] * 4, [350.0, 20.0, 20.0, 10.0]
FOUND = Balance({4: 3.5, 5: 1.1})
LIMIT_S = 10.0
UNEVEN_HERE = UnevenPartitions()


class Looked:
    """Who reads the state, and how often; what is known of the keys afterwards."""

    def __init__(self, error: str = "", uneven: UnevenPartitions = UNEVEN_HERE) -> None:
        self.times, self.done, self.events = 0, threading.Event(), list[Event]()
        self._error = error
        self._balances = Balances(self._look, self._emit, uneven)

    def batch(self, rows: Sequence[float], stage: str = "aggregate") -> Balance | None:
        tasks = {stage: instances(rows, 1.0, finish_s=1.0)}
        return self._balances.of("words", SHAPE, tasks)

    def batches(self, count: int, rows: Sequence[float], stage: str = "aggregate") -> Balance | None:
        return [self.batch(rows, stage) for _ in range(count)][-1]

    def wait(self) -> None:
        """Until somebody has looked; the thread then has nothing left to do but to write it down."""
        assert self.done.wait(LIMIT_S)
        for thread in threading.enumerate():
            if thread.name == "homeostat keys":
                thread.join(LIMIT_S)

    def _look(self, query: str) -> Balance:
        self.times += 1
        self.done.set()
        if self._error:
            raise ValueError(self._error)
        return FOUND

    def _emit(self, event: Event) -> None:
        self.events.append(event)


def test_three_uneven_batches_in_a_row_make_somebody_look_once() -> None:
    looked = Looked()
    assert looked.batches(2, UNEVEN) is None
    assert looked.times == 0
    assert looked.batch(UNEVEN) in (LOOKING, FOUND)
    looked.wait()

    assert looked.batches(5, UNEVEN) == FOUND
    assert looked.times == 1


@pytest.mark.parametrize("rows", [EVEN, [float("nan")] * 4, [7.0, 0.0, 0.0, 0.0], [100.0]])
def test_nobody_looks_at_the_keys_of_other_batches(rows: list[float]) -> None:
    looked = Looked()
    assert looked.batches(10, rows) is None
    assert looked.times == 0


def test_nobody_looks_because_of_a_moment_or_of_a_stage_without_state() -> None:
    looked = Looked()
    for rows in (UNEVEN, UNEVEN, EVEN) * 4:
        looked.batch(rows)
    looked.batches(10, UNEVEN, stage="scan")

    assert looked.times == 0


def test_what_was_seen_does_not_outlive_the_number_of_partitions() -> None:
    looked = Looked()
    looked.batches(3, UNEVEN)
    looked.wait()

    assert looked.batch(EVEN) == FOUND
    assert looked.batch([*UNEVEN, 10.0]) is None


def test_that_the_keys_cannot_be_read_is_reported_and_nothing_more() -> None:
    looked = Looked("no such batch\nat line 1")
    looked.batches(3, UNEVEN)
    looked.wait()

    assert looked.batches(5, UNEVEN) is None
    (failure,) = looked.events
    assert isinstance(failure, Failure)
    assert (failure.where, failure.error) == ("sensor of the keys of words", "ValueError: no such batch")


def test_the_criterion_is_the_one_that_was_passed() -> None:
    tolerant = Looked(uneven=UnevenPartitions(ratio=4.0))
    assert tolerant.batches(10, UNEVEN) is None
    assert tolerant.times == 0
    quick = Looked(uneven=UnevenPartitions(batches=1))
    quick.batch(UNEVEN)
    quick.wait()
    assert quick.times == 1
