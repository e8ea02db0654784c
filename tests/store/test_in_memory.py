"""A store in memory keeps what it was given, also after it is closed."""

from __future__ import annotations

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.store.in_memory import MemoryStore


def test_a_finished_simulation_can_still_be_asked() -> None:
    store = MemoryStore()
    store.append("run", [Record("s-1", "symptom", 1.0, "pressure")])
    store.close()
    assert [record.text for record in store.records("run")] == ["pressure"]


def test_what_the_writer_changes_later_does_not_change_the_log() -> None:
    store = MemoryStore()
    body: dict[str, JSON] = {"rows": [1, 2]}
    store.append("run", [Record("x-1", "note", 1.0, "", body=body)])
    body["rows"] = []
    record = store.get("run", "x-1")
    assert record is not None
    assert record.body == {"rows": [1, 2]}


def test_two_stores_share_nothing() -> None:
    first, second = MemoryStore(), MemoryStore()
    first.append("run", [Record("s-1", "symptom", 1.0, "")])
    assert second.runs() == []
