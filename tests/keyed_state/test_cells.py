"""Cells read the state once per call of a handler and write their changes once, at its end."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.keyed_state.cells import CountsCell, ListCell, MapCell, ValueCell
from homeostat.keyed_state.column_types import Codec
from homeostat.keyed_state.memory_handle import Memory, MemoryHandle


class Counted:
    """Counts the calls to a store, each of which would be a trip to the JVM."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


@pytest.fixture
def handle() -> MemoryHandle:
    return MemoryHandle(Memory(now_ms=0), ("ann",))


def test_a_value_is_read_once_and_written_once(handle: MemoryHandle) -> None:
    handle.getValueState("n", "").update((1,))
    store: Any = Counted(handle.getValueState("n", ""))
    cell = ValueCell(store, Codec(int))
    for _ in range(3):
        cell.set((cell.get() or 0) + 1)
    assert store.calls == ["exists", "get"]
    cell.flush()
    cell.flush()
    assert store.calls == ["exists", "get", "update"]
    cell.forget()
    assert cell.get() == 4


def test_a_cleared_value_is_gone_from_the_state(handle: MemoryHandle) -> None:
    store: Any = handle.getValueState("n", "")
    store.update((1,))
    cell = ValueCell(store, Codec(int))
    cell.clear()
    cell.flush()
    assert not store.exists()


def test_a_list_that_replaces_itself_keeps_its_items(handle: MemoryHandle) -> None:
    cell: ListCell[int] = ListCell(handle.getListState("n", ""), Codec(int))  # type: ignore[arg-type]
    cell.extend([1, 2, 3])
    cell.replace(item for item in cell if item != 2)
    assert list(cell) == [1, 3]


def test_a_lookup_in_a_map_reads_one_entry_and_only_once(handle: MemoryHandle) -> None:
    handle.getMapState("n", "", "").updateValue(("a",), (1,))
    store: Any = Counted(handle.getMapState("n", "", ""))
    cell = MapCell(store, Codec(str), Codec(int))
    assert [cell.get("a"), cell.get("a"), cell.get("b"), cell.get("b")] == [1, 1, None, None]
    assert store.calls == ["containsKey", "getValue", "containsKey"]
    del cell["a"]
    cell.flush()
    assert store.calls[-1] == "removeKey"


def test_a_missing_count_is_0_and_may_be_deleted(handle: MemoryHandle) -> None:
    cell: CountsCell[str] = CountsCell(handle.getMapState("n", "", ""), Codec(str), Codec(int))  # type: ignore[arg-type]
    del cell["never"]
    cell["often"] += 2
    cell["once"] += 1
    assert (cell["never"], cell.most_common(1)) == (0, [("often", 2)])
