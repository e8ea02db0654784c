"""When the partitions of a batch count as uneven: one criterion for the detector and for the sensor that reads keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array

ROWS_THAT_TELL = 10.0  # on average. A choice: partitions with fewer rows are uneven, or empty, by chance
UNEVEN_RATIO = 1.5  # times the mean. A choice: a lower ratio finds more skew, and more chance


@dataclass(frozen=True, slots=True)
class UnevenPartitions:
    """Partitions are uneven if one of them has `ratio` times the mean, in `batches` batches in a row."""

    ratio: float = UNEVEN_RATIO
    batches: int = 3  # a choice: fewer react to a single odd batch, more react later

    def holds(self, rows: Array) -> bool:
        """Return whether the partitions of one batch are uneven."""
        return len(rows) > 0 and bool(over_the_mean(rows, self.ratio).any())


def over_the_mean(rows: Array, ratio: float) -> NDArray[np.bool_]:
    """Which partitions have `ratio` times the mean; none if rows are few or unknown. Partitions are the last axis."""
    mean = rows.mean(axis=-1, keepdims=True)
    large: NDArray[np.bool_] = (mean >= ROWS_THAT_TELL) & (rows >= ratio * mean)
    return large
