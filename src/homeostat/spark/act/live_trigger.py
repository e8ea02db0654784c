"""The trigger interval of a running query, read and changed while it runs.

Spark has no API for this. The object that starts the batches of a run reads its field `intervalMs` before each batch,
so a new interval is in effect after the next batch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_FIELD = "intervalMs"
_PACER = "ProcessingTimeExecutor"


class LiveTrigger:
    """The interval of one run. `refusal` is why it cannot change; empty if it can."""

    def __init__(self, query: StreamingQuery) -> None:
        self.refusal = ""
        try:
            self._pacer: Any = query._jsq.streamingQuery().triggerExecutor()
            name = str(self._pacer.getClass().getSimpleName())
            if name != _PACER:
                self.refusal = f"the trigger of the query has no interval ({name})"
                return
            self._field: Any = self._pacer.getClass().getDeclaredField(_FIELD)
            self._field.setAccessible(True)
            self._field.getLong(self._pacer)
        except Exception as error:  # private members of Spark
            reason = str(error).strip().partition("\n")[0][:120]
            self.refusal = f"this release of Spark does not show the interval of a running query ({reason})"

    @property
    def interval_s(self) -> float:
        return math.nan if self.refusal else int(self._field.getLong(self._pacer)) / 1000.0

    def change(self, interval_s: float) -> None:
        self._field.setLong(self._pacer, round(interval_s * 1000))
