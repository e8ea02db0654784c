"""How strongly the measurements speak for a cause: one small logistic model for each.

`homeostat learn` fits the table, on simulated and recorded runs whose causes are known. Causes of which too few runs
are known share one model, whose weights are set by hand. A table may name a model of the user's own for the causes
where it was better on runs held back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from homeostat.core.errors import ConfigError
from homeostat.core.evidence import LostTime

TABLE_VERSION = 1
_TABLE = "strengths.json"
# Losses are compared with what is usual as a ratio. This much is added to both, so that a loss of milliseconds is not
# many times another. A choice.
_SMALL_S = 0.05
# The range of the features in logarithms: beyond it they say nothing more. Choices.
_LATENESS_RANGE, _CHANGE_RANGE = (-2.0, 1.0), (-1.0, 3.0)
# The batches in a row beyond which more say nothing. A choice, as long as the series of losses.
_MOST_BATCHES = 6.0
# No model is ever surer than this, because no run was like the one at hand. A choice.
_SUREST = 0.99


@dataclass(frozen=True, slots=True)
class Features:
    """What the model of a cause reads. Each is about 0 to 1, so that weights can be compared.

    `share`: the loss over the time that a batch may take. `of_batch`: the loss over the batch without the causes that
    cost more. `lateness`: ln(batch ÷ trigger). `change`: ln(loss ÷ usual loss), 0 if that is unknown. `agreement`:
    batches in a row. `guessed`: 1 if a measurement is missing. `alone`: the share of all losses that this cause has.
    """

    share: float
    of_batch: float
    lateness: float
    change: float
    agreement: float
    guessed: float
    alone: float

    def values(self) -> tuple[float, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))


FEATURES = tuple(each.name for each in fields(Features))


def features_of(evidence: LostTime, all_lost_s: float) -> Features:
    times = evidence.batch_s / evidence.trigger_s if evidence.trigger_s else 0.0
    late = math.log(times) if times > 0 else 0.0
    usual_s, rest_s = evidence.usual_s, evidence.batch_s if evidence.rest_s is None else evidence.rest_s
    change = math.log((evidence.lost_s + _SMALL_S) / (usual_s + _SMALL_S)) if usual_s is not None else 0.0
    return Features(
        share=min(1.0, evidence.share),
        of_batch=min(1.0, evidence.lost_s / rest_s) if rest_s > 0 else 0.0,
        lateness=min(max(late, _LATENESS_RANGE[0]), _LATENESS_RANGE[1]),
        change=min(max(change, _CHANGE_RANGE[0]), _CHANGE_RANGE[1]),
        agreement=min(1.0, evidence.batches_in_a_row / _MOST_BATCHES),
        guessed=1.0 if evidence.guessed else 0.0,
        alone=evidence.lost_s / all_lost_s if all_lost_s > 0 else 1.0,
    )


@dataclass(frozen=True, slots=True)
class Strength:
    """The model of one cause: probability = 1 ÷ (1 + exp(−(intercept + weights · features)))."""

    intercept: float
    weights: tuple[float, ...]

    def probability(self, features: Features) -> float:
        total = self.intercept + sum(w * x for w, x in zip(self.weights, features.values(), strict=True))
        return min(_SUREST, 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total)))))


class CauseModel(Protocol):
    """A model of the user's own."""

    def probability(self, cause: str, features: Features) -> float: ...


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model of the user's own, and the dotted path under which it is found."""

    path: str
    model: CauseModel

    def probability(self, cause: str, features: Features) -> float | None:
        """Its answer; None if it fails or does not answer with a probability."""
        try:
            answer = float(self.model.probability(cause, features))
        except Exception:
            return None
        return min(_SUREST, answer) if 0.0 <= answer <= 1.0 else None


@dataclass(frozen=True, slots=True)
class Strengths:
    """The models by cause. A cause without one gets `other`. The user's `own` come first where they answer."""

    causes: Mapping[str, Strength]
    other: Strength
    own: Mapping[str, OwnModel] = field(default_factory=dict)

    def probability(self, cause: str, features: Features) -> float:
        own = self.own[cause].probability(cause, features) if cause in self.own else None
        return own if own is not None else self.causes.get(cause, self.other).probability(features)


@cache
def shipped_strengths() -> Strengths:
    return read_strengths(json.loads((files(__package__) / _TABLE).read_text(encoding="utf-8")), _TABLE)


def _no_models(path: str) -> CauseModel:
    raise ConfigError("this table names a model of your own, which cannot be loaded here", where=path)


def strengths_in_use(path: str, load_model: Callable[[str], CauseModel] = _no_models) -> Strengths:
    """The table in this file, or the shipped one without a path. Raises ConfigError if the file has none."""
    if not path:
        return shipped_strengths()
    try:
        return read_strengths(json.loads(Path(path).read_text(encoding="utf-8")), path, load_model)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"not a table of strengths: {error}", where=path, fix="make one: homeostat learn --out FILE"
        ) from error


def read_strengths(
    table: Mapping[str, Any], where: str, load_model: Callable[[str], CauseModel] = _no_models
) -> Strengths:
    """Raises ConfigError if the table was made by another version."""
    if table.get("version") != TABLE_VERSION or tuple(table.get("features", ())) != FEATURES:
        raise ConfigError(
            "this table of strengths has other features",
            where=where,
            fix="use the table that ships with this version, or make one: homeostat learn",
        )
    models = {
        name: Strength(float(m["intercept"]), tuple(map(float, m["weights"]))) for name, m in table["causes"].items()
    }
    own = {str(cause): OwnModel(str(path), load_model(str(path))) for cause, path in table.get("own", {}).items()}
    return Strengths({name: model for name, model in models.items() if name}, models[""], own)
