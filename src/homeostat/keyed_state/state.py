"""`hs.State`: the class that a user's state derives from, and how it runs on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeostat.keyed_state.program import StateProgram

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.group import GroupedData


class State(StateProgram):
    """The state of each key, and what to do when rows arrive or a timer fires.

    A subclass declares its variables, declares its output columns in `emits` ("user STRING, clicks BIGINT"), and yields
    tuples of these. `time` is "event" if timers follow the watermark; otherwise they follow the clock.
    """

    def over(self, grouped: GroupedData) -> DataFrame:
        """Run the state on Spark: `Sessions().over(clicks.groupBy("user"))`."""
        from homeostat.keyed_state import on_spark

        return on_spark.over(self, grouped)
