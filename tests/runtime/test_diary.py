"""What a manager writes for viewers besides its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeostat.core.cycle import Trace
from homeostat.core.errors import StoreError
from homeostat.core.loop_state import State
from homeostat.core.policy_definition import Policy
from homeostat.core.records import BATCH, Record
from homeostat.runtime.diary import Diary
from homeostat.store.in_memory import MemoryStore
from homeostat.store.present import PRESENT, load_present
from support.digests import DIGEST


def test_it_writes_only_when_something_is_new() -> None:
    store, trace = MemoryStore(), Trace((), ())
    diary = Diary(store, "run", Policy("watching"))
    diary.note(trace, State())
    assert store.load_state("run", PRESENT) is None
    state = State(history=(DIGEST,))
    for _ in range(2):
        diary.note(trace, state)
    assert [record.id for record in store.records("run", kinds=(BATCH,))] == ["b-100.000-7"]
    assert load_present(store, "run").policy == "watching"
    diary.note(trace, replace(state, history=(DIGEST, replace(DIGEST, at_s=102.0, batch=8))))
    assert len(store.records("run", kinds=(BATCH,))) == 2


def test_a_batch_that_could_not_be_written_is_written_later() -> None:
    class Locked(MemoryStore):
        locked = True

        def append(self, run: str, records: Sequence[Record]) -> None:
            if self.locked:
                raise StoreError("locked")
            super().append(run, records)

    store, trace = Locked(), Trace((), ())
    diary = Diary(store, "run", Policy("watching"))
    with pytest.raises(StoreError):
        diary.note(trace, State(history=(DIGEST,)))
    store.locked = False
    diary.note(trace, State(history=(DIGEST,)))
    assert [record.id for record in store.records("run", kinds=(BATCH,))] == ["b-100.000-7"]


def test_the_present_state_is_written_after_a_pause_and_at_the_end() -> None:
    store, trace, now_s = MemoryStore(), Trace((), ()), [0.0]
    diary = Diary(store, "run", Policy("watching"), pause_s=1.0, clock=lambda: now_s[0])
    history = tuple(replace(DIGEST, at_s=100.0 + number, batch=number) for number in range(4))
    times_s = []
    for number, at_s in enumerate((0.0, 0.5, 1.0, 1.5), 1):
        now_s[0] = at_s
        diary.note(trace, State(history=history[:number]))
        times_s.append(load_present(store, "run").at_s)
    diary.close()
    assert [*times_s, load_present(store, "run").at_s] == [100.0, 100.0, 102.0, 102.0, 103.0]
    assert len(store.records("run", kinds=(BATCH,))) == len(history)
