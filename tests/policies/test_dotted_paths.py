"""Forecasters and schedulers of a user's own, named in [plugins], take part in the loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homeostat.core.causes import UNDER_PROVISIONED
from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, KnobSpec
from homeostat.core.errors import ConfigError
from homeostat.core.findings import Diagnosis
from homeostat.core.objective import Objective
from homeostat.core.traffic import Traffic
from homeostat.core.view import View
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.models.load_ahead import coming
from homeostat.policies import dotted_paths, registry
from homeostat.resolvers.retune import RetuneResolver
from homeostat.testing import instances, observations, view_of

MODULE = """
import numpy as np
from homeostat.core.configuration import EXECUTORS_KNOB, Patch

class Seer:
    name = "seer"

    def ahead(self, history, steps):
        minutes = (history.end_s + history.step_s * (np.arange(steps) + 0.5)) / 60
        return np.where(minutes % 97 < 20, 600.0, 300.0)

class Scheduler:
    name = "scheduler"
    rates = []

    def propose(self, question):
        self.rates.append(question.rate_per_s)
        yield question.model.configuration.patched(Patch({EXECUTORS_KNOB: 9}))

class Nameless:
    def ahead(self, history, steps):
        return np.zeros(steps)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models_of_a_test.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def batches() -> View:
    """2 ms a row in 16 tasks on 4 executors, with batches that outlast their trigger."""
    tasks = {
        "lines": instances([500.0] * 16, 0.001, finish_s=0.001),
        "count": instances([500.0] * 16, 1.0, finish_s=1.0),
    }
    observed = observations(
        20, tasks, span_s=4.2, executors=4, arrival_per_s=2_000.0, rows=8_000.0, seconds=4.2, trigger_s=4.0
    )
    knobs = {EXECUTORS_KNOB: KnobSpec(1, 40, cost=1.0)}
    view = view_of(observed, values={EXECUTORS_KNOB: 4}, capabilities=Capabilities(knobs))
    return replace(view, objective=Objective(latency_p95_s=9.0))


def built(policy: str, **named: list[str]) -> Any:
    return registry.build(policy, {"plugins": {kind: list(paths) for kind, paths in named.items()}})


def test_a_forecaster_that_is_better_than_ours_makes_the_forecast_that_the_loop_acts_upon() -> None:
    """High for 20 of 97 minutes, a season that divides no day."""
    policy = built("provisioning", forecasters=["own_models_of_a_test:Seer"])
    (detector,) = [each for each in policy.detectors if isinstance(each, RiseDetector)]
    minutes = np.arange(-2_000, 0)
    noise = np.exp(np.random.default_rng(1).normal(0.0, 0.03, len(minutes)))
    rates = np.where(minutes % 97 < 20, 600.0, 300.0) * noise
    view = replace(batches(), now_s=0.0, traffic=Traffic(-2_000, tuple(rates.tolist())))
    load_ahead = coming(view, 900.0, 0.9, detector.forecasts)
    assert load_ahead is not None
    assert load_ahead.champion == "seer"


def test_a_scheduler_is_asked_whenever_the_loop_plans() -> None:
    policy = built("latency", proposers=["own_models_of_a_test:Scheduler"])
    (resolver,) = [each for each in policy.resolvers if isinstance(each, RetuneResolver)]
    assert list(resolver.resolve(batches(), [Diagnosis(UNDER_PROVISIONED, "count")]))
    rates = dotted_paths.load("own_models_of_a_test:Scheduler").rates
    assert rates
    assert min(rates) >= 2_000.0


@pytest.mark.parametrize(
    ("kind", "path", "why"),
    [
        ("forecasters", "own_models_of_a_test:Nameless", "has no name"),
        ("forecasters", "own_models_of_a_test:Scheduler", "has no method 'ahead'"),
        ("proposers", "own_models_of_a_test:Seer", "has no method 'propose'"),
        ("proposers", "statsforecast", "'statsforecast' is not a dotted path"),
    ],
)
def test_what_is_no_forecaster_or_scheduler_is_refused(kind: str, path: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        built("latency", **{kind: [path]})
