"""Values are stored as plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from homeostat.core.records import Record
from homeostat.store.codec import dump, load
from homeostat.store.in_memory import MemoryStore
from homeostat.store.protocol import Store
from homeostat.store.sqlite import SqliteStore

StoreFactory = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    numbers = count()
    if request.param == "memory":
        return MemoryStore
    return lambda: SqliteStore(tmp_path / f"{next(numbers)}.sqlite")


def test_what_a_detector_measured_with_numpy_is_kept_as_plain_values() -> None:
    measured = {"rows": np.int64(3), "rate": np.float32(0.5), "late": np.bool_(True), "gap": np.float64("nan")}
    assert repr(load(dump(measured))) == "{'rows': 3, 'rate': 0.5, 'late': True, 'gap': nan}"


def test_text_that_no_terminal_can_print_is_spelled_out(factory: StoreFactory) -> None:
    with closing(factory()) as store:
        store.append("run \udc80", [Record("f-1", "failure", 1.0, "cannot read caf\udce9.csv")])
        record = store.get("run \udc80", "f-1")
    assert record is not None
    assert record.text == r"cannot read caf\udce9.csv"
