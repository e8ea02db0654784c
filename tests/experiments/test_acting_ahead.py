"""Acting ahead on the simulator: a spike of every day is met with the executors it needs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from homeostat.core.objective import Objective
from homeostat.core.symptoms import FORECAST_RISE
from homeostat.core.traffic import Traffic
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.lab.bench import preempt
from homeostat.models.forecast import Forecast
from homeostat.models.load_ahead import AS_NOW, forecast_of
from homeostat.policies import registry
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore

pytestmark = pytest.mark.slow

DAYS, MINUTES = 3, 30


@cache
def case() -> preempt.Case:
    """Three days, and some minutes that are run: 2,000 rows/s, and twice that from minute 12 of a day to minute 22."""
    minutes = np.arange(DAYS * 1440 + MINUTES)
    per_s = np.where((minutes % 1440 >= 12) & (minutes % 1440 < 22), 4_000.0, 2_000.0)
    return preempt.Case("spike", per_s, DAYS)


@cache
def history() -> Traffic:
    """What arrived on the days before."""
    return case().history(3)


@cache
def run(policy: str, times: float = 1.0) -> RunResult:
    """`times`: how wrong the forecast is."""
    scenario = case().scenario()
    if policy == "latency":
        made, scenario = registry.build(policy), replace(scenario, objective=Objective(latency_p95_s=30.0))
    else:
        made = preempt.build_policy(case(), policy)
    if times != 1.0:

        def wrong(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
            right = forecast_of(traffic, horizon_s, confidence)
            return replace(right, values=times * right.values, usable=True)

        detectors = (replace(d, forecasts=wrong) if isinstance(d, RiseDetector) else d for d in made.detectors)
        made = replace(made, detectors=tuple(detectors))
    return simulate(scenario, made, seed=3, traffic=history())


def test_a_spike_that_is_foreseen_is_taken_in_its_stride() -> None:
    ahead, reactive = run(preempt.AHEAD), run(preempt.REACTIVE)
    assert any(taken.because.startswith("rise-ahead") for taken in ahead.trajectory)
    assert not any(taken.because.startswith("rise-ahead") for taken in reactive.trajectory)
    late, later = (run.as_json()["slo_violation_s"] for run in (ahead, reactive))
    assert late <= later / 2
    assert ahead.as_json()["needless_actions"] == 0


def test_a_spike_of_two_sources_is_foreseen_at_each() -> None:
    scenario = case().scenario()
    lines, count = scenario.components
    components = (lines, replace(lines, name="more"), replace(count, inputs=("lines", "more")))
    half = Traffic(history().first, tuple(rate / 2 for rate in history().per_s))
    store = MemoryStore()
    simulate(
        replace(scenario, components=components, duration_s=600.0),
        preempt.build_policy(case(), preempt.AHEAD),
        seed=3,
        store=store,
        run="x",
        traffic=replace(history(), sources={"lines": half, "more": half}),
    )
    (rise, *_) = [each for each in store.records("x", kinds=("symptom",)) if each.body.get("symptom") == FORECAST_RISE]
    evidence = rise.body["evidence"]
    assert isinstance(evidence, dict)
    for name in ("lines", "more"):
        assert evidence[f"forecast of {name} by"] not in ("last value", AS_NOW)
        assert 0 < float(str(evidence[f"error of {name} (MASE)"])) < 1
    assert float(str(evidence["expected_per_s"])) == pytest.approx(4_000.0, rel=0.2)
    actions = store.records("x", kinds=("action",))
    assert any(action.body["cause"] == "rise-ahead" for action in actions)


@pytest.mark.parametrize(
    ("policy", "times"),
    [
        (preempt.AHEAD, 3.0),
        (preempt.AHEAD, 1 / 3),
        pytest.param("latency", 3.0, marks=pytest.mark.soak),
        pytest.param("latency", 1 / 3, marks=pytest.mark.soak),
    ],
)
def test_a_forecast_that_is_wrong_by_a_factor_of_three_does_no_harm(policy: str, times: float) -> None:
    wrong, reactive = run(policy, times), run(preempt.REACTIVE)
    assert wrong.healthy_since_s is not None
    cost, usual = (run.as_json()["instance_seconds"] for run in (wrong, reactive))
    assert cost <= 1.25 * usual
    late, usually = (run.as_json()["slo_violation_s"] for run in (wrong, reactive))
    assert late <= usually + 60.0
