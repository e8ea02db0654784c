"""Rules that choose how many rows the next batch may have."""

from __future__ import annotations

import math

import pytest

from homeostat.lab.bench.admission_rules import ByModel, EndedBatch, PidRateEstimator, StaticLimit
from homeostat.models.model_fitting import batch_model
from homeostat.testing import view_of
from support.stages import batches, stage

NO_VIEW = view_of(())


def after(rule: PidRateEstimator, *batches: tuple[float, float, float]) -> list[float]:
    """The limits after batches of so many rows, seconds and seconds of waiting, one every ten seconds."""
    return [
        rule.rows(EndedBatch(10.0 * (number + 1), rows, seconds, waited_s), NO_VIEW)
        for number, (rows, seconds, waited_s) in enumerate(batches)
    ]


def test_the_pid_computes_what_sparks_rule_computes() -> None:
    # By hand: 100/s; then 100 − (100 − 200) = 200/s; then 200 − (200 − 150) − 0.2 · 4 · 150 ÷ 10 = 138/s.
    limits = after(PidRateEstimator(10.0), (1_000, 10.0, 0.0), (2_000, 10.0, 0.0), (1_500, 10.0, 4.0))
    assert math.isnan(limits[0])
    assert limits[1:] == pytest.approx([2_000.0, 1_380.0])


def test_the_pid_takes_no_less_than_its_least_rate_and_ignores_empty_batches() -> None:
    limits = after(PidRateEstimator(10.0), (1_000, 10.0, 0.0), (0, 0.1, 0.0), (10, 10.0, 100.0))
    assert math.isnan(limits[1])
    assert limits[2] == 1_000.0


def test_a_static_limit_stays() -> None:
    assert math.isnan(StaticLimit().rows(EndedBatch(10.0, 1.0, 99.0, 0.0), NO_VIEW))


def test_the_model_admits_what_fills_the_budget_and_nothing_is_changed_without_one() -> None:
    view = batches(60.0)
    model = batch_model(view)
    assert model is not None
    rows = {budget_s: ByModel(budget_s).rows(EndedBatch(80.0, 600.0, 8.1, 0.0), view) for budget_s in (8.1, 12.0)}
    assert 300.0 < rows[8.1] < rows[12.0]
    assert model.expected_s(rows[12.0], model.setup) == pytest.approx(12.0, rel=0.05)
    assert ByModel(1.0).rows(EndedBatch(80.0, 600.0, 8.1, 0.0), view) == 1.0
    assert math.isnan(ByModel(10.0).rows(EndedBatch(80.0, 600.0, 8.1, 0.0), stage(100.0)))
