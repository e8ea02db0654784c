"""A load: rows per second over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.observation import Array

# What a file's values are: rows per interval, or rows per second.
ValueKind = Literal["count", "rate"]

# No real load is faster, and up to here (below 2^53) a float still counts single rows.
FASTEST_PER_S = 1e15


@dataclass(frozen=True, slots=True)
class Load:
    """Rates as they were recorded: not sorted, not at regular times, NaN where a value is missing.

    `notes` say which lines of the file were skipped. `sources` has the rates of each source, if there are several.
    """

    name: str
    times_s: Array
    per_s: Array
    notes: tuple[str, ...] = ()
    sources: Mapping[str, Array] = field(default_factory=dict)
