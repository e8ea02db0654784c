"""The parts of a record about a change: its prediction, and the remedies of a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from homeostat.core.record_json import json_field

Values = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class PredictionContent:
    """What an action is expected to do: `gain` is ln(time before ÷ after) at equal load."""

    gain: float = math.nan
    touched: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class PartContent:
    """One remedy of a plan, with its own cause and prediction."""

    action_kind: str = json_field("kind", "")
    cause: str = ""
    component: str = ""
    patch: Values = field(default_factory=dict)
    retire: tuple[str, ...] = ()
    prediction: PredictionContent | None = None


@dataclass(frozen=True, slots=True)
class PartOutcomeContent:
    """How one remedy of a plan turned out."""

    action_kind: str = json_field("kind", "")
    cause: str = ""
    component: str = ""
    verdict: str = ""
    reason: str = ""
