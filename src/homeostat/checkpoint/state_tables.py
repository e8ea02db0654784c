"""The tables that a checkpoint's state can be read as, and how to ask Spark's reader for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from homeostat.checkpoint.metadata import Checkpoint, Operator
from homeostat.core.errors import ConfigError

JOIN = "symmetricHashJoin"
ONLY = "state"
TIMERS = "timers"
NO_TIME = "NoTime"
SIDES = {"left": "left_side", "right": "right_side"}  # left and right alone are words of SQL
KINDS = {"ValueState": "value", "ListState": "list", "MapState": "map"}


@dataclass(frozen=True, slots=True)
class Table:
    """One table: the whole state of an operator, a side of a join, or a variable or the timers of transformWithState.

    `view` is its name in SQL and in options.
    """

    view: str
    operator: int
    name: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict)


def tables(checkpoint: Checkpoint, batch: int | None = None) -> list[Table]:
    """Every table of the checkpoint; names that several operators share carry the operator's number."""
    found = [table for id in checkpoint.operators() for table in _tables(checkpoint.operator(id, batch))]
    often = Counter(table.name for table in found)
    return [
        replace(table, view=f"{table.name}_{table.operator}") if often[table.name] > 1 else table for table in found
    ]


def pick(found: Sequence[Table], view: str | None, location: str) -> Table:
    """The table of this name, or the only one."""
    if not found:
        raise ConfigError("this query keeps no state", where=location)
    names = ", ".join(table.view for table in found)
    if view is None and len(found) > 1:
        raise ConfigError(f"there are {len(found)} tables", where=location, fix=f"choose with --table: {names}")
    for table in found:
        if view is None or table.view == view:
            return table
    raise ConfigError(f"there is no table {view!r}", where=location, fix=f"choose one of {names}")


def _tables(operator: Operator) -> Iterator[Table]:
    if operator.name == JOIN:
        for side, name in SIDES.items():
            yield Table(name, operator.id, name, "join", {"joinSide": side})
    elif operator.variables:
        for variable in operator.variables:
            if kind := KINDS.get(variable.kind):
                yield Table(variable.name, operator.id, variable.name, kind, {"stateVarName": variable.name})
        if operator.time_mode not in ("", NO_TIME):
            yield Table(TIMERS, operator.id, TIMERS, TIMERS, {"readRegisteredTimers": "true"})
    else:
        yield Table(ONLY, operator.id, ONLY, operator.name)
