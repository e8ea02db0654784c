"""Fits the table of strengths, and tests on held-back runs whether it is better than the one in use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from homeostat.core.observation import Array
from homeostat.diagnosers.strengths import FEATURES, TABLE_VERSION, OwnModel, Strength, Strengths
from homeostat.lab.bench.diagnosis import calibration_error
from homeostat.lab.evidence_learning.examples import Example
from homeostat.lab.evidence_learning.logistic import fit, log_loss

# Runs are divided into this many groups. Each is scored by a table that was fitted to the others. A choice.
_GROUPS = 5
# How strongly the common model is shrunk to even odds, and a cause's model to the common one. With a higher precision,
# more examples are needed to move away. Choices.
_COMMON_PRECISION, _CAUSE_PRECISION = 0.1, 1.0
# A cause needs examples from this many runs for a model of its own, which must beat the table in use by this share of
# the log loss: a smaller gain may be luck. Choices.
_LEAST_RUNS, _BETTER_BY = 8, 0.01


@dataclass(frozen=True, slots=True)
class Comparison:
    """Log loss and calibration error of the table in use and of the fitted one, on runs that it was not fitted to.

    `loss_own` and `calibration_own` are those of the user's own model, which was fitted elsewhere; NaN without one.
    """

    cause: str
    examples: int
    runs: int
    right: float
    loss_in_use: float
    loss_fitted: float
    calibration_in_use: float
    calibration_fitted: float
    kept: bool
    loss_own: float = math.nan
    calibration_own: float = math.nan
    own_kept: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def learned(
    examples: Sequence[Example], in_use: Strengths, own: OwnModel | None = None
) -> tuple[Strengths, list[Comparison]]:
    """A table that has a fitted model for each cause where it beats the one in use, and the comparison.

    The table names the user's own model for each cause where that model beats both.
    """
    groups = _groups(examples)
    held_back = np.full(len(examples), np.nan)
    for number in range(_GROUPS):
        model = _fitted([e for e, group in zip(examples, groups, strict=True) if group != number])
        for index in np.flatnonzero(groups == number).tolist():
            held_back[index] = model.probability(examples[index].cause, examples[index].features)
    final = _fitted(examples)
    comparisons = [
        _with_own(each, examples, in_use, own) if own is not None else each
        for each in _comparisons(examples, in_use, held_back)
    ]
    kept = {each.cause for each in comparisons if each.kept}
    causes = {cause: final.causes[cause] for cause in sorted(kept) if cause}
    own_causes = {each.cause: own for each in comparisons if own is not None and each.own_kept and each.cause}
    return Strengths({**in_use.causes, **causes}, in_use.other, own_causes), comparisons


def as_table(strengths: Strengths) -> dict[str, Any]:
    models = {"": strengths.other, **strengths.causes}
    table = {
        "version": TABLE_VERSION,
        "features": list(FEATURES),
        "causes": {
            name: {"intercept": round(m.intercept, 3), "weights": [round(w, 3) for w in m.weights]}
            for name, m in models.items()
        },
    }
    own = {"own": {cause: each.path for cause, each in sorted(strengths.own.items())}}
    return {**table, **own} if strengths.own else table


def _with_own(comparison: Comparison, examples: Sequence[Example], in_use: Strengths, own: OwnModel) -> Comparison:
    """The comparison with the user's own model. If that has no answer, the table in use gives one, as in a run."""
    with_own = replace(in_use, own={example.cause: own for example in examples})
    mine = [example for example in examples if comparison.cause in ("", example.cause)]
    answers = np.array([with_own.probability(example.cause, example.features) for example in mine])
    right = np.array([float(example.right) for example in mine])
    loss = log_loss(answers, right)
    best = min(comparison.loss_in_use, comparison.loss_fitted if comparison.kept else math.inf)
    return replace(
        comparison,
        loss_own=loss,
        calibration_own=calibration_error(list(zip(answers, right > 0, strict=True))),
        own_kept=comparison.runs >= _LEAST_RUNS and loss < best * (1.0 - _BETTER_BY),
    )


def _groups(examples: Sequence[Example]) -> Array:
    """The group of each example. Examples of a run share a group."""
    numbers: dict[str, int] = {}
    for example in examples:
        numbers.setdefault(example.run, len(numbers) % _GROUPS)
    return np.array([numbers[example.run] for example in examples])


def _fitted(examples: Sequence[Example]) -> Strengths:
    rows, right = _arrays(examples)
    common = fit(rows, right, np.zeros(1 + len(FEATURES)), _COMMON_PRECISION)
    causes = {}
    for cause in sorted({example.cause for example in examples}):
        mine = [example for example in examples if example.cause == cause]
        if len({example.run for example in mine}) >= _LEAST_RUNS:
            causes[cause] = _strength(fit(*_arrays(mine), common, _CAUSE_PRECISION))
    return Strengths(causes, _strength(common))


def _strength(weights: Array) -> Strength:
    return Strength(float(weights[0]), tuple(map(float, weights[1:])))


def _arrays(examples: Sequence[Example]) -> tuple[Array, Array]:
    rows = np.array([example.features.values() for example in examples]).reshape(len(examples), len(FEATURES))
    return rows, np.array([float(example.right) for example in examples])


def _comparisons(examples: Sequence[Example], in_use: Strengths, held_back: Array) -> list[Comparison]:
    """One for each cause, and one for all of them with an empty name."""
    right = np.array([float(example.right) for example in examples])
    now = np.array([in_use.probability(example.cause, example.features) for example in examples])
    of: dict[str, list[int]] = {"": list(range(len(examples)))}
    for index, example in enumerate(examples):
        of.setdefault(example.cause, []).append(index)
    comparisons = []
    for cause, mine in sorted(of.items()):
        loss_in_use, loss_fitted = log_loss(now[mine], right[mine]), log_loss(held_back[mine], right[mine])
        runs = len({examples[i].run for i in mine})
        comparisons.append(
            Comparison(
                cause,
                len(mine),
                runs,
                float(right[mine].mean()),
                loss_in_use,
                loss_fitted,
                calibration_error(list(zip(now[mine], right[mine] > 0, strict=True))),
                calibration_error(list(zip(held_back[mine], right[mine] > 0, strict=True))),
                kept=runs >= _LEAST_RUNS and loss_fitted < loss_in_use * (1.0 - _BETTER_BY),
            )
        )
    return comparisons
