"""The types of the keys of a scenario file, with their limits."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from homeostat.recorded_data.load import FASTEST_PER_S
from homeostat.strict import toml_reading
from homeostat.strict.toml_reading import ContradictionError

MOST_INSTANCES = 1_000_000
MOST_KEYS = 10_000_000
MOST_TIMES = 1_000_000

# No real application exceeds these limits, and beyond them the simulator's arithmetic would lose precision.
SHORTEST_S, LONGEST_S = 1e-6, 1e12
SLOWEST_PER_S = 1e-9
Duration = Annotated[toml_reading.Duration, Field(le=LONGEST_S)]
PositiveDuration = Annotated[toml_reading.PositiveDuration, Field(ge=SHORTEST_S, le=LONGEST_S)]
Rate = Annotated[toml_reading.Rate, Field(le=FASTEST_PER_S)]
PositiveRate = Annotated[toml_reading.PositiveRate, Field(ge=SLOWEST_PER_S, le=FASTEST_PER_S)]


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", text):
        raise ContradictionError(f"{text!r} is not a valid name", fix="use letters, digits, '_', '-' and '.'")
    return text


Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, AfterValidator(_name)]
Instances = Annotated[int, Field(ge=1, le=MOST_INSTANCES)]
Number = Annotated[int, Field(ge=0)]
Factor = Annotated[float, Field(gt=0)]
Slowdown = Annotated[float, Field(ge=1, le=MOST_TIMES)]
Amount = Annotated[float, Field(ge=0, le=MOST_TIMES)]


def optional(key: str | None = None) -> Any:
    return Field(default=None, alias=key)
