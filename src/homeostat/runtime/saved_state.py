"""The part of the loop's state that survives a restart, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from homeostat.core.loop_state import State
from homeostat.core.memory import ActionKey, Context, MemoryEntry
from homeostat.core.record_json import JSON
from homeostat.core.trust import Trust


def state_json(state: State) -> JSON:
    return {
        "numbers": cast(JSON, dict(state.numbers)),
        "earned": state.earned,
        "paused": state.paused,
        "memory": [_entry_json(entry) for entry in state.memory],
        "trust": {name: [trust.error, trust.actions, trust.off] for name, trust in state.trust.items()},
    }


def restore_state(state: State, value: JSON) -> State:
    if not isinstance(value, dict):
        return state
    fields = cast(dict[str, Any], value)
    return replace(
        state,
        numbers=dict(fields.get("numbers", {})),
        earned=int(fields.get("earned", 0)),
        paused=str(fields.get("paused", "")),
        memory=tuple(_entry(item) for item in fields.get("memory", [])),
        trust={
            name: Trust(error, int(actions), *off) for name, (error, actions, *off) in fields.get("trust", {}).items()
        },
    )


def _entry_json(entry: MemoryEntry) -> dict[str, JSON]:
    return {
        "key": list(entry.key),
        "verdict": entry.verdict,
        "at_s": entry.at_s,
        "before": cast(JSON, dict(entry.values_before)),
        "arrival_per_s": entry.context.arrival_per_s,
        "values": cast(JSON, dict(entry.context.values)),
        "plan": entry.context.plan,
        "hosts": list[JSON](sorted(entry.context.hosts)),
        "hosts_before": list[JSON](sorted(entry.hosts_before)),
    }


def _entry(item: Mapping[str, Any]) -> MemoryEntry:
    arrival = item["arrival_per_s"]
    return MemoryEntry(
        ActionKey(*item["key"]),
        item["verdict"],
        item["at_s"],
        Context(float("nan") if arrival is None else arrival, item["values"], item["plan"], frozenset(item["hosts"])),
        item["before"],
        frozenset(item.get("hosts_before", ())),
    )
