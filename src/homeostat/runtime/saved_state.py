"""The part of the loop's state that survives a restart, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast, get_args

from homeostat.core.calibration import OUTCOMES_KEPT, JudgedCause
from homeostat.core.findings import Verdict
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
        "judged": {cause: [[o.probability, o.helped] for o in each] for cause, each in state.judged.items()},
    }


class Restored(NamedTuple):
    """`problems` describes the parts that could not be read and were left out. `lost` are the fields that are missing
    entirely."""

    state: State
    problems: tuple[str, ...] = ()
    lost: frozenset[str] = frozenset()


def restore_state(state: State, value: JSON) -> Restored:
    """Restore the readable parts of the saved state. Anyone who can write the log can write anything there."""
    if not isinstance(value, dict):
        return Restored(state, (f"the saved state is a {type(value).__name__}",), frozenset(_READERS))
    problems: list[str] = []
    fields: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name not in value:
            continue
        try:
            fields[name], left_out = read(value[name])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            problems.append(f"{name} ({type(error).__name__}: {error})")
        else:
            problems += [f"{name}, {what}" for what in left_out]
    lost = frozenset(_READERS.keys() & (value.keys() - fields.keys()))
    return Restored(replace(state, **fields), tuple(problems), lost)


def _numbers(value: Any) -> tuple[dict[str, int], list[str]]:
    numbers = {str(letter): _count(number) for letter, number in value.items()}
    return numbers, []


def _earned(value: Any) -> tuple[int, list[str]]:
    return _count(value), []


def _paused(value: Any) -> tuple[str, list[str]]:
    return _text(value), []


def _memory(value: Any) -> tuple[tuple[MemoryEntry, ...], list[str]]:
    entries, left_out = [], []
    for place, item in enumerate(_list(value), 1):
        try:
            entries.append(_entry(item))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            left_out.append(f"entry {place} ({type(error).__name__}: {error})")
    return tuple(entries), left_out


def _trust(value: Any) -> tuple[dict[str, Trust], list[str]]:
    trusts, left_out = {}, []
    for name, item in value.items():
        try:
            error, actions, *off = _list(item)
            trusts[str(name)] = Trust(_number(error), _count(actions), *map(_number, off))
        except (ValueError, TypeError, OverflowError) as error:
            left_out.append(f"{name} ({type(error).__name__}: {error})")
    return trusts, left_out


def _judged(value: Any) -> tuple[dict[str, tuple[JudgedCause, ...]], list[str]]:
    judged, left_out = {}, []
    for cause, items in value.items():
        try:
            judged[str(cause)] = tuple(_judged_cause(*_list(item)) for item in _list(items)[-OUTCOMES_KEPT:])
        except (ValueError, TypeError) as error:
            left_out.append(f"{cause} ({type(error).__name__}: {error})")
    return judged, left_out


def _judged_cause(probability: Any, helped: Any) -> JudgedCause:
    if not 0.0 < _number(probability) < 1.0 or not isinstance(helped, bool):
        raise ValueError(f"[{probability!r}, {helped!r}] is not an outcome")
    return JudgedCause(probability, helped)


_READERS: Mapping[str, Callable[[Any], tuple[Any, list[str]]]] = {
    "numbers": _numbers,
    "earned": _earned,
    "paused": _paused,
    "memory": _memory,
    "trust": _trust,
    "judged": _judged,
}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


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
    if item["verdict"] not in get_args(Verdict):
        raise ValueError(f"{item['verdict']!r} is not a verdict")
    context = Context(
        float("nan") if arrival is None else _number(arrival),
        _numbers_by_name(item["values"]),
        _text(item["plan"]),
        frozenset(map(_text, _list(item["hosts"]))),
    )
    cause, action, component = map(_text, _list(item["key"]))
    return MemoryEntry(
        ActionKey(cause, action, component),
        item["verdict"],
        _number(item["at_s"]),
        context,
        _numbers_by_name(item["before"]),
        frozenset(map(_text, _list(item.get("hosts_before", [])))),
    )


def _numbers_by_name(value: Mapping[str, Any]) -> dict[str, float]:
    return {_text(name): _number(number) for name, number in value.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
