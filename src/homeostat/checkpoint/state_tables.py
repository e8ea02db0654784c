"""The tables in the state of a checkpoint, and the options with which Spark's state reader reads each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from homeostat.checkpoint.metadata import Checkpoint, Operator
from homeostat.checkpoint.state_schema import JOIN
from homeostat.core.errors import ConfigError

ONLY = "state"
TIMERS = "timers"
NO_TIME = "NoTime"
SIDES = {"left": "left_side", "right": "right_side"}  # left and right are SQL keywords
KINDS = {"ValueState": "value", "ListState": "list", "MapState": "map"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the state of an operator, a side of a join, or a variable or the timers of transformWithState.

    `view` is its name in SQL and in options.
    """

    view: str
    operator: int
    name: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict)


def tables(checkpoint: Checkpoint, batch: int | None = None) -> list[Table]:
    """Return every table of the checkpoint. If operators share a name, the number of the operator is added."""
    every_table = [table for id in checkpoint.operators() for table in _tables(checkpoint.operator(id, batch))]
    name_counts = Counter(table.name for table in every_table)
    return [
        replace(table, view=f"{table.name}_{table.operator}") if name_counts[table.name] > 1 else table
        for table in every_table
    ]


def pick(available: Sequence[Table], view: str | None, location: str) -> Table:
    """Return the table with this name, or the only one."""
    if not available:
        raise ConfigError("this query has no state", where=location, fix="choose a query with state")
    names = ", ".join(table.view for table in available)
    if view is None and len(available) > 1:
        raise ConfigError(
            f"the state has {len(available)} tables", where=location, fix=f"choose one with --table: {names}"
        )
    for table in available:
        if view is None or table.view == view:
            return table
    raise ConfigError(f"the state has no table {view!r}", where=location, fix=f"choose one of {names}")


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
