"""The score of diagnoses, from runs whose faults are known."""

from __future__ import annotations

import math

import pytest

from homeostat.core.time_causes import CHECKPOINT_BOUND, SINK_BOUND
from homeostat.lab.bench.diagnosis import Score, beside, calibration_error, cases, score, summary
from homeostat.lab.bench.diagnosis_cases import CLEAN, draw_case
from homeostat.policies import registry


def test_a_slow_sink_is_named_soon_and_nothing_else_and_nothing_is_scaled() -> None:
    result = score(draw_case(5, ("slow-sink",)), registry.build("provisioning"))
    assert result.right == [SINK_BOUND]
    assert (result.missed, result.wrong) == ([], [])
    assert result.batches_until_right[0] <= 5
    assert result.vain_scaling == 0


def test_recall_and_precision_of_each_cause_count_alike() -> None:
    scores = [
        Score(right=[SINK_BOUND], sure=[(0.9, True)], batches_until_right=[3]),
        Score(missed=[SINK_BOUND]),
        Score(right=[CHECKPOINT_BOUND], wrong=[SINK_BOUND], batches_until_right=[5]),
    ]
    figures = summary(scores)
    assert figures["causes"][SINK_BOUND] == {"cases": 2, "recall": 0.5, "precision": 0.5, "f1": 0.5}
    assert figures["macro_f1"] == pytest.approx(0.75)
    assert figures["batches_until_right_median"] == 4.0


def test_who_claims_few_causes_is_also_scored_on_those_alone() -> None:
    scores = [Score(right=[SINK_BOUND]), Score(missed=[CHECKPOINT_BOUND], batches_until_right=[math.inf])]
    figures = summary(scores, frozenset({SINK_BOUND}))
    assert (figures["macro_f1"], figures["macro_f1_of_claims"]) == (0.5, 1.0)
    assert figures["never_named"] == 1


def test_the_time_until_right_is_compared_on_the_faults_that_both_name() -> None:
    ours = [Score(batches_until_right=[2, 4]), Score(batches_until_right=[3])]
    table = [Score(batches_until_right=[4, math.inf]), Score(batches_until_right=[6])]
    comparison = beside({"ours": ours, "table": table})["table"]
    assert (comparison["faults"], comparison["named_by_it"], comparison["named_by_both"]) == (3, 2, 2)
    assert comparison["batches_until_right_median"] == {"ours": 2.5, "its": 5.0}
    assert comparison["batches_until_right_ratio"] == 0.5
    assert comparison["batches_until_right_median_of_all"] == {"ours": 3.0, "its": 6.0}


def test_calibration_is_the_distance_between_sure_and_right() -> None:
    assert calibration_error([(0.9, True)] * 9 + [(0.9, False)]) == pytest.approx(0.0)
    assert calibration_error([(0.95, False)] * 10) == pytest.approx(0.95)


def test_runs_have_single_faults_pairs_and_none() -> None:
    drawn = list(cases(60, 1))
    assert {len(case.kinds) for case in drawn} == {1, 2}
    assert any(case.kinds == (CLEAN,) for case in drawn)
