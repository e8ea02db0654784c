"""A recorded load from almost any CSV file, read leniently and without repairs: for forecasts and benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from homeostat.core.stats import median
from homeostat.recorded_data.load import Load, ValueKind
from homeostat.recorded_data.load_table import read_leniently, too_short
from homeostat.strict.toml_reading import read_text


def read(path: str | Path, values: ValueKind = "count") -> Load:
    return parse(read_text(path), str(path), values)


def parse(text: str, name: str, values: ValueKind = "count") -> Load:
    """Lines without a time are skipped, and a note says how many."""
    moments = list(read_leniently(text, name))
    times_s = np.array([moment.time_s for moment in moments])
    numbers = np.array([moment.value for moment in moments])
    has_time = np.isfinite(times_s)
    if len(np.unique(times_s[has_time & np.isfinite(numbers)])) < 2:
        raise too_short(name)
    skipped_lines = int((~has_time).sum())
    notes = (f"{skipped_lines} of {len(moments)} lines have no time and were skipped",) if skipped_lines else ()
    times_s, numbers = times_s[has_time], numbers[has_time]
    spacing_s = median(np.diff(np.unique(times_s)))
    return Load(name, times_s, numbers / spacing_s if values == "count" else numbers, notes)
