"""The tables that the state of each kind of operator has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.checkpoint.state_tables import tables

PARTITIONS = 3
CheckpointOf = Callable[[str], Path]


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


@pytest.mark.parametrize(
    ("kind", "operator", "names"),
    [
        ("counts", "stateStoreSave", ["state"]),
        ("counts-hdfs", "stateStoreSave", ["state"]),
        ("unique", "dedupe", ["state"]),
        ("sessions", "sessionWindowStateStoreSaveExec", ["state"]),
        ("pairs", "symmetricHashJoin", ["left_side", "right_side"]),
        ("processor", "transformWithStateInPySparkExec", ["total", "amounts", "seen", "timers"]),
    ],
)
def test_operators_and_their_tables(kind: str, operator: str, names: list[str], checkpoint_of: CheckpointOf) -> None:
    checkpoint = opened(checkpoint_of(kind))
    assert checkpoint.has_state()
    assert checkpoint.operators() == [0]
    operator_info = checkpoint.operator(0)
    assert (operator_info.name, operator_info.partitions) == (operator, PARTITIONS)
    assert sorted(table.view for table in tables(checkpoint)) == sorted(names)
    assert list(operator_info.stores) == [store for store in checkpoint.stores(0, 0) if store in operator_info.stores]
