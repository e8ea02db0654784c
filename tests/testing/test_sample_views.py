"""The sample views show what their names say."""

from __future__ import annotations

import numpy as np

from homeostat.core.symptoms import PRESSURE
from homeostat.policies import registry
from homeostat.testing.sample_views import idle_views, partly_unknown_views, sample_views, unknown_views


def symptoms(view_name: str) -> set[str]:
    policy, view = registry.build("provisioning"), sample_views()[view_name]
    return {symptom.kind for detector in policy.detectors for symptom in detector.detect(view)}


def test_an_overloaded_application_is_under_pressure_and_a_healthy_one_is_not() -> None:
    for engine in ("", " batches"):
        assert symptoms(f"overloaded{engine}") & {PRESSURE}
        assert not symptoms(f"healthy{engine}") & {PRESSURE}


def test_every_view_can_be_built_and_is_built_once() -> None:
    assert sample_views() is sample_views()
    assert {view.micro_batch for view in sample_views().values()} == {False, True}


def test_nothing_is_known_in_the_unknown_views_and_all_in_the_idle_ones() -> None:
    for view in unknown_views().values():
        assert not np.isfinite(view.flow("rows")).any()
    for view in idle_views().values():
        assert np.isfinite(view.flow("rows")).all()


def test_only_the_last_measurements_are_missing_in_the_partly_unknown_views() -> None:
    view = partly_unknown_views()["idle, rows missing"]
    assert np.isnan(view.column("split", "rows")[-3:]).all()
    assert np.isfinite(view.column("split", "rows")[:-3]).all()
