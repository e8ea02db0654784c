"""The state in memory: each key has its own, and what has lived long enough is gone."""

from __future__ import annotations

from homeostat.keyed_state.memory_handle import Memory, MemoryHandle


def test_each_key_has_its_own_state() -> None:
    memory = Memory(now_ms=0)
    ann, bob = MemoryHandle(memory, ("ann",)), MemoryHandle(memory, ("bob",))
    ann.getValueState("n", "").update((1,))
    assert ann.getValueState("n", "").get() == (1,)
    assert not bob.getValueState("n", "").exists()


def test_entries_expire_one_by_one() -> None:
    memory = Memory(now_ms=0)
    handle = MemoryHandle(memory, ("ann",))
    items, entries = handle.getListState("items", "", 10), handle.getMapState("entries", "", "", 10)
    items.appendList([(1,)])
    entries.updateValue(("a",), (1,))
    memory.now_ms = 5
    items.appendList([(2,)])
    entries.updateValue(("b",), (2,))
    memory.now_ms = 10
    assert list(items.get()) == [(2,)]
    assert list(entries.iterator()) == [(("b",), (2,))]
    memory.now_ms = 15
    assert not items.exists()
    assert not entries.containsKey(("b",))


def test_timers_are_due_in_the_order_of_their_times() -> None:
    memory = Memory(now_ms=0)
    MemoryHandle(memory, ("ann",)).registerTimer(20)
    MemoryHandle(memory, ("bob",)).registerTimer(10)
    MemoryHandle(memory, ("bob",)).registerTimer(30)
    assert memory.due(20) == [(10, ("bob",)), (20, ("ann",))]
    MemoryHandle(memory, ("bob",)).deleteTimer(10)
    assert list(MemoryHandle(memory, ("bob",)).listTimers()) == [30]
