"""How the keys of a query's state would fall on other numbers of partitions: looked up when its tasks stay uneven."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.core.configuration import STATE_PARTITIONS, Knob
from homeostat.core.events import Event, Failure
from homeostat.core.observation import Balance, TaskSample
from homeostat.core.topology import Topology
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.detectors.uneven_partitions import over_the_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.checkpoint.metadata import Checkpoint

LOOKING = Balance({})
_UNEVEN = Sensitivity().ratio
_BATCHES = 3
_AGAIN_S = 1800.0
_MOST_TIMES = 4
_MORE = 16


@dataclass
class _Known:
    """What is known of one query; `partitions` it had when somebody looked."""

    uneven: int = 0
    looked_s: float = float("-inf")
    partitions: int = 0
    balance: Balance | None = None


class Balances:
    """`look` reads the state, which takes a while and a job: in a thread of its own, once three batches in a row
    were uneven, and not again within half an hour while the number of partitions is the same."""

    def __init__(self, look: Callable[[str], Balance | None], emit: Callable[[Event], None]) -> None:
        self._look, self._emit = look, emit
        self._known: dict[str, _Known] = {}

    def of(self, query: str, topology: Topology | None, tasks: Mapping[str, TaskSample]) -> Balance | None:
        """Never waits: LOOKING until it is known, None if nobody looks."""
        knob = Knob(STATE_PARTITIONS, query)
        stages = [tasks[c.name] for c in topology or () if c.partitions == knob and c.name in tasks]
        known = self._known.setdefault(query, _Known())
        if not stages:
            return known.balance
        partitions = max(stage.instances for stage in stages)
        if partitions != known.partitions:
            known = self._known[query] = _Known(partitions=partitions)
        known.uneven = known.uneven + 1 if any(map(_is_uneven, stages)) else 0
        now_s = time.monotonic()
        if known.uneven >= _BATCHES and now_s - known.looked_s > _AGAIN_S:
            known.looked_s = now_s
            known.balance = known.balance or LOOKING
            threading.Thread(target=self._see, args=(query, known), name="homeostat keys", daemon=True).start()
        return known.balance

    def _see(self, query: str, known: _Known) -> None:
        try:
            found = self._look(query)
        except Exception as error:  # a batch that was removed meanwhile, a private part of Spark that changed
            told = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._emit(Failure(f"sensor of the keys of {query}", told, time.time()))
            found = None
        known.balance = found


def _is_uneven(stage: TaskSample) -> bool:
    return stage.instances > 0 and bool(over_the_mean(stage.rows, _UNEVEN).any())


def read_balance(spark: SparkSession, checkpoint: Checkpoint) -> Balance | None:
    """Of the last batch that was committed, for up to four times the partitions it has; None if there is no state."""
    from homeostat.checkpoint import raw_rows
    from homeostat.checkpoint.partition_preview import preview

    batch = checkpoint.batches().finished
    present = checkpoint.state_partitions(batch) if batch >= 0 else None
    if not present:
        return None
    keys = raw_rows.keys(spark, checkpoint, batch)
    return Balance({n: 1.0 / preview(keys, n).balance for n in range(1, _MOST_TIMES * present + _MORE)})
