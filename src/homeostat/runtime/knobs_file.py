"""The file in which an application keeps its settings for the next driver."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from homeostat.core.configuration import Knob
from homeostat.core.errors import ConfigError
from homeostat.runtime.launch import write_json

# Version 0.1.0 wrote no format. Its files are read as format 1.
FORMAT = 2
_SET_ASIDE = ".set-aside"


def write_knobs(path: Path, knobs: Mapping[str, Any]) -> None:
    write_json(path, with_format(knobs))


def read_knobs(path: Path, say: Callable[[str], None]) -> Mapping[str, Any]:
    """The settings of an earlier driver; empty if there are none, or if they are damaged and were set aside."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    try:
        return knobs_of(json.loads(text), str(path))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        aside = path.with_name(path.name + _SET_ASIDE)
        path.replace(aside)
        say(f"{path}: cannot be read ({error}); it is kept as {aside.name}, and the application starts without it")
        return {}


def with_format(knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, **knobs}


def knobs_of(content: Any, where: str) -> Mapping[str, Any]:
    """The settings in what was kept; one of several errors of Python if it is damaged."""
    format_ = content.get("format", 1)
    if isinstance(format_, int) and format_ > FORMAT:
        raise ConfigError(
            f"a newer Homeostat wrote these settings (format {format_}; this one reads {FORMAT})",
            where=where,
            fix="upgrade homeostat, or delete them to start with the settings of the application",
        )
    return {"executors": _executors(content), "values": _values(content)}


def _executors(knobs: Mapping[str, Any]) -> dict[str, int]:
    counts = {str(query): int(count) for query, count in knobs.get("executors", {}).items()}
    if any(count < 1 for count in counts.values()):
        raise ValueError(f"the numbers of executors are {counts}")
    return counts


def _values(knobs: Mapping[str, Any]) -> dict[str, int | float]:
    values = dict(knobs.get("values", {}))
    for name, value in values.items():
        Knob.parse(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}")
    return values
