"""How evenly the keys of a query's state would spread over other numbers of partitions.

The keys are read when the tasks of the query stay uneven.
"""

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
from homeostat.models.partition_sizes import UnevenPartitions
from homeostat.spark.clocks import STEADY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.checkpoint.metadata import Checkpoint

LOOKING = Balance({})
_AGAIN_S = 1800.0  # a choice: reading the keys takes a Spark job, and hot keys rarely change within half an hour
# Numbers of partitions that are tried: up to four times the present one, and some more for a small one. A choice:
# more would need more executors than a query usually gets.
_MOST_TIMES = 4
_MORE = 16


@dataclass
class _QueryKeys:
    """The knowledge about the keys of one query, as long as it has this number of `partitions`."""

    uneven_batches: int = 0
    read_s: float = float("-inf")
    partitions: int = 0
    balance: Balance | None = None


class Balances:
    """Calls `read` in its own thread, because it runs a Spark job and takes a while. It does so once the partitions are
    `uneven`, and not again within half an hour while the number of partitions stays the same."""

    def __init__(
        self, read: Callable[[str], Balance | None], emit: Callable[[Event], None], uneven: UnevenPartitions
    ) -> None:
        self._read, self._emit, self._uneven = read, emit, uneven
        self._queries: dict[str, _QueryKeys] = {}

    def of(self, query: str, topology: Topology | None, tasks: Mapping[str, TaskSample]) -> Balance | None:
        """Returns at once: LOOKING until the keys have been read, None if reading them was not requested."""
        knob = Knob(STATE_PARTITIONS, query)
        stages = [tasks[c.name] for c in topology or () if c.partitions == knob and c.name in tasks]
        keys = self._queries.setdefault(query, _QueryKeys())
        if not stages:
            return keys.balance
        partitions = max(stage.instances for stage in stages)
        if partitions != keys.partitions:
            keys = self._queries[query] = _QueryKeys(partitions=partitions)
        is_uneven = any(self._uneven.holds(stage.rows) for stage in stages)
        keys.uneven_batches = keys.uneven_batches + 1 if is_uneven else 0
        now_s = time.monotonic()
        if keys.uneven_batches >= self._uneven.batches and now_s - keys.read_s > _AGAIN_S:
            keys.read_s = now_s
            keys.balance = keys.balance or LOOKING
            threading.Thread(target=self._look, args=(query, keys), name="homeostat keys", daemon=True).start()
        return keys.balance

    def _look(self, query: str, keys: _QueryKeys) -> None:
        balance = None
        try:
            balance = self._read(query)
        except Exception as error:  # Spark has removed the batch, or has changed a private interface
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._emit(Failure(f"sensor of the keys of {query}", reason, STEADY.now_s()))
        keys.balance = balance


def read_balance(spark: SparkSession, checkpoint: Checkpoint) -> Balance | None:
    """The balance of the last committed batch, by number of partitions. None if the query has no state."""
    from homeostat.checkpoint import raw_rows
    from homeostat.checkpoint.partition_preview import preview

    batch = checkpoint.batches().finished
    present = checkpoint.state_partitions(batch) if batch >= 0 else None
    if not present:
        return None
    keys = raw_rows.keys(spark, checkpoint, batch)
    return Balance({n: 1.0 / preview(keys, n).balance for n in range(1, _MOST_TIMES * present + _MORE)})
