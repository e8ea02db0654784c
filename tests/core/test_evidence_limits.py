"""The limits on evidence stand once, and the parts use them."""

from __future__ import annotations

import math

import pytest

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, MEDIAN_ERROR, NOISE_FLOOR
from homeostat.core.trial import LoadNormalisedJudge
from homeostat.detectors.sensitivity import Sensitivity


def test_detectors_and_the_judge_share_their_limits() -> None:
    sensitivity, judge = Sensitivity(), LoadNormalisedJudge()

    assert sensitivity.floor == judge.noise_floor == NOISE_FLOOR
    assert sensitivity.least == judge.least_before == LEAST_OBSERVATIONS


def test_the_error_of_a_median_is_that_of_normal_noise() -> None:
    assert pytest.approx(math.sqrt(math.pi / 2.0), abs=0.005) == MEDIAN_ERROR
