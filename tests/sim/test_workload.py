"""The load, and the random streams behind all noise."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.sim.scenario.spec import Noise, Spike, WorkloadSpec
from homeostat.sim.workload import Workload

NOISE = Noise(sigma=0.15, phi=0.7)
KINDS = {
    "constant": WorkloadSpec(rate_per_s=100.0),
    "steps": WorkloadSpec(kind="steps", steps=((0.0, 10.0), (60.0, 30.0), (95.0, 5.0))),
    "ramp": WorkloadSpec(kind="ramp", rate_per_s=10.0, to_per_s=110.0, start_s=50.0, end_s=150.0),
    "sine": WorkloadSpec(kind="sine", rate_per_s=50.0, amplitude_per_s=80.0, period_s=70.0),
    "diurnal": WorkloadSpec(kind="diurnal", rate_per_s=20.0, to_per_s=90.0, period_s=300.0),
    "trace": WorkloadSpec(kind="trace", trace=((20.0, 5.0), (70.0, 55.0), (120.0, 15.0))),
}


@pytest.mark.parametrize(
    ("kind", "rates"),
    [
        ("constant", {0: 100, 1e6: 100}),
        ("steps", {0: 10, 59.9: 10, 60: 30, 95: 5, 1e6: 5}),
        ("ramp", {0: 10, 50: 10, 100: 60, 150: 110, 1000: 110}),
        ("sine", {0: 50, 17.5: 130, 52.5: 0, 70: 50}),
        ("diurnal", {0: 20, 75: 55, 150: 90, 300: 20}),
        ("trace", {0: 5, 20: 5, 45: 30, 70: 55, 95: 35, 120: 15, 999: 15}),
    ],
)
def test_each_kind_follows_its_curve(kind: str, rates: dict[float, float]) -> None:
    workload = Workload(KINDS[kind], seed=1)
    assert {t: workload.mean_per_s(t) for t in rates} == pytest.approx(rates)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_area_below_the_rate(kind: str) -> None:
    workload = Workload(KINDS[kind], seed=1)
    times = np.linspace(3.0, 207.0, 20_401)
    middle = (times[1:] + times[:-1]) / 2
    area = sum(workload.mean_per_s(float(t)) for t in middle) * (times[1] - times[0])
    assert workload.rows_between(3.0, 207.0) == pytest.approx(area, rel=1e-4)


def test_spikes_multiply_any_kind_and_each_other() -> None:
    spikes = (Spike(at_s=15.0, for_s=10.0, factor=3.0), Spike(at_s=20.0, for_s=10.0, factor=2.0))
    workload = Workload(WorkloadSpec(rate_per_s=10.0, spikes=spikes), seed=1)
    assert [workload.mean_per_s(t) for t in (14.9, 15.0, 20.0, 25.0, 30.0)] == [10, 30, 60, 20, 10]
    assert workload.rows_between(0.0, 40.0) == pytest.approx(150 + 150 + 300 + 100 + 100)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    cuts=st.lists(st.floats(0.0, 250.0), min_size=2, max_size=12),
    seed=st.integers(0, 5),
)
def test_noise_does_not_depend_on_how_time_is_cut(kind: str, cuts: list[float], seed: int) -> None:
    base = KINDS[kind]
    spec = WorkloadSpec(
        **{name: getattr(base, name) for name in base.__slots__ if name not in ("noise", "spikes")},
        noise=NOISE,
        spikes=(Spike(33.0, 50.0, 1.5),),
    )
    times = sorted(cuts)
    whole = Workload(spec, seed).rows_between(times[0], times[-1])
    workload = Workload(spec, seed)
    parts = [workload.rows_between(a, b) for a, b in reversed(list(pairwise(times)))]
    assert math.fsum(parts) == pytest.approx(whole, rel=1e-9, abs=1e-6)


def test_noise_holds_for_an_interval_and_differs_between_seeds() -> None:
    spec = WorkloadSpec(rate_per_s=100.0, noise=NOISE)
    workload = Workload(spec, seed=1, interval_s=10.0)
    first, second = workload.rows_between(0.0, 5.0), workload.rows_between(5.0, 10.0)
    assert first == pytest.approx(second)
    assert first != pytest.approx(workload.rows_between(10.0, 15.0))
    assert first != pytest.approx(Workload(spec, seed=2).rows_between(0.0, 5.0))
    assert workload.mean_per_s(3.0) == 100.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (WorkloadSpec(rate_per_s=-1.0), "rate_per_s must be 0 or more, not -1"),
        (WorkloadSpec(rate_per_s=math.nan), "rate_per_s must be 0 or more, not nan"),
        (WorkloadSpec(kind="steps"), "steps is empty"),
        (WorkloadSpec(kind="trace"), "trace is empty"),
        (WorkloadSpec(kind="trace", trace=((0.0, 1.0), (0.0, 2.0))), "each time once"),
        (WorkloadSpec(kind="trace", trace=((5.0, 1.0), (2.0, 2.0))), "sort the points by time"),
        (WorkloadSpec(kind="trace", trace=((0.0, math.nan),)), "times and rates must be 0 or more"),
        (WorkloadSpec(kind="steps", steps=((0.0, -5.0),)), "times and rates must be 0 or more"),
        (WorkloadSpec(kind="ramp", start_s=5.0, end_s=5.0), "must end after it starts"),
        (WorkloadSpec(kind="sine", period_s=0.0), "period_s must be above 0, not 0"),
        (WorkloadSpec(kind="diurnal", rate_per_s=9.0, to_per_s=1.0), "set to_per_s above rate_per_s"),
        (WorkloadSpec(kind="square"), "unknown kind of workload 'square'"),  # type: ignore[arg-type]
        (WorkloadSpec(spikes=(Spike(-1.0, 5.0, 2.0),)), "spike's times must be 0 or more"),
        (WorkloadSpec(spikes=(Spike(1.0, 5.0, -2.0),)), "spike's factor must be 0 or more, not -2"),
    ],
)
def test_an_impossible_load_is_refused(spec: WorkloadSpec, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Workload(spec, seed=1)
    assert caught.value.where == "workload"
