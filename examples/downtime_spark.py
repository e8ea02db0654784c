"""The downtime detector of Spark's programming guide ("Putting it all together", Row form; Apache License 2.0).

`downtime.py` does the same with Homeostat. Lines marked `repaired` differ from the guide: its code raises an error.
"""
# mypy: ignore-errors
# ruff: noqa: C417, N802, N803 - quoted

from datetime import datetime
from typing import Iterator  # noqa: UP035

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructField, StructType, TimestampType


class DownTimeDetector(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        # Define schema for the state value (timestamp)
        state_schema = StructType([StructField("value", TimestampType(), True)])
        self.handle = handle
        # Initialize state to store the last seen timestamp for each key
        self.last_seen = handle.getValueState("last_seen", state_schema)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[Row]:
        latest_from_existing = self.last_seen.get()[0].astimezone()  # repaired
        # Calculate downtime duration
        downtime_duration = timerValues.getCurrentProcessingTimeInMs() - int(latest_from_existing.timestamp() * 1000)
        # Register a new timer for 10 seconds in the future
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 10000)
        # Yield a DataFrame with the key and downtime duration
        yield Row(id=key[0], timeValues=str(downtime_duration))

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        # Find the maximum timestamp
        max_timestamp = max(map(lambda x: x.timestamp, rows))

        # Get the latest timestamp from existing state or use epoch start if not exists
        if self.last_seen.exists():
            latest_from_existing = self.last_seen.get()[0].astimezone()  # repaired
        else:
            latest_from_existing = datetime.fromtimestamp(0).astimezone()  # repaired

        # If new data is more recent than existing state
        if latest_from_existing < max_timestamp:
            # Delete all existing timers
            for timer in self.handle.listTimers():
                self.handle.deleteTimer(timer)
            # Update the last seen timestamp
            self.last_seen.update((max_timestamp,))

        # Register a new timer for 5 seconds in the future
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 5000)

        return iter([])

    def close(self) -> None:
        # No cleanup needed
        pass
