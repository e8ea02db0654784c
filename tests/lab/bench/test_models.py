"""The models predict configurations of the simulator that they were not fitted to."""

from __future__ import annotations

import pytest

from homeostat.lab.bench import models

pytestmark = pytest.mark.slow


def test_configurations_never_seen_are_predicted_within_ten_per_cent_and_the_intervals_are_honest() -> None:
    figures = models.measure(sides=[models.SIMULATOR])["simulator"]
    assert len(figures["configurations"]) >= 12
    assert figures["accepted"]
    assert figures["median_batch_error"] <= 0.1
    assert figures["median_throughput_error"] <= 0.05
    assert figures["median_saturation_error"] <= 0.1
    assert 0.6 <= figures["coverage"] <= 0.95
