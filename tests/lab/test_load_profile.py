"""How many rows by when, which words, and the profile as text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.lab import load_profile
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import Noise, Spike, WorkloadSpec

STEADY = WorkloadSpec("constant", rate_per_s=100.0)
WORKLOADS = (
    STEADY,
    WorkloadSpec("steps", steps=((0.0, 50.0), (10.0, 200.0))),
    WorkloadSpec("ramp", rate_per_s=10.0, to_per_s=90.0, start_s=5.0, end_s=25.0),
    WorkloadSpec("sine", rate_per_s=50.0, amplitude_per_s=60.0, period_s=30.0),
    WorkloadSpec("trace", trace=((0.0, 5.0), (7.0, 80.0), (20.0, 0.0))),
    WorkloadSpec("constant", rate_per_s=70.0, noise=Noise(0.4, 0.5), spikes=(Spike(3.0, 15.0, 3.0),)),
)
LOADS = st.lists(st.tuples(st.integers(0, 60), st.floats(0, 5)), max_size=4, unique_by=lambda step: step[0]).map(
    lambda steps: tuple(sorted((float(from_s), factor) for from_s, factor in steps))
)


def test_rows_follow_the_workload() -> None:
    steps = Profile(WORKLOADS[1])
    assert [steps.rows_until(t_s) for t_s in (-5.0, 0.0, 10.0, 12.0)] == [0, 0, 500, 900]


def test_a_load_multiplies_what_arrives_from_then_on() -> None:
    steady = Profile(STEADY)
    load = ((10.0, 2.0), (20.0, 0.5))
    assert [steady.rows_until(t_s, load) for t_s in (10.0, 20.0, 30.0)] == [1000, 3000, 3500]


@given(st.sampled_from(WORKLOADS), LOADS, st.lists(st.integers(0, 90_000), min_size=2, max_size=20))
def test_rows_never_go_back(workload: WorkloadSpec, load: load_profile.Load, times_ms: list[int]) -> None:
    source = Profile(workload)
    rows = [source.rows_until(ms / 1000, load) for ms in sorted(times_ms)]
    assert all(earlier <= later for earlier, later in pairwise(rows))


@given(st.sampled_from(WORKLOADS), LOADS, st.floats(0, 30), st.floats(0, 30), st.floats(0, 4))
def test_a_later_load_step_leaves_the_past_alone(
    workload: WorkloadSpec, load: load_profile.Load, before_s: float, more_s: float, factor: float
) -> None:
    source = Profile(workload)
    past_steps = tuple(step for step in load if step[0] < before_s)
    changed = (*past_steps, (before_s + more_s, factor))
    assert source.rows_until(before_s, past_steps) == source.rows_until(before_s, changed)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_row_arrives_when_the_rows_pass_its_number(workload: WorkloadSpec) -> None:
    source, load = Profile(workload), ((4.0, 1.7),)
    last = source.rows_until(30.0, load) - 1
    for row in (0, last // 2, last):
        arrived_s = source.arrival_s(row, 30.0, load)
        assert source.rows_until(arrived_s, load) > row >= source.rows_until(arrived_s - 0.001, load)


def test_noise_does_not_depend_on_when_one_asks() -> None:
    often, once = Profile(WORKLOADS[-1]), Profile(WORKLOADS[-1])
    for t_s in range(100):
        often.rows_until(float(t_s))
    assert often.rows_until(123.0) == once.rows_until(123.0)


def test_words_depend_on_seed_and_row_alone() -> None:
    source = Profile(STEADY, keys=20)
    assert list(source.words(0, 100)[30:60]) == list(source.words(30, 60))
    assert list(source.words(0, 100)) != list(Profile(STEADY, keys=20, seed=2).words(0, 100))
    assert list(source.words(0, 5)) == ["word-4", "word-9", "word-0", "word-1", "word-4"]


def test_words_follow_zipf() -> None:
    counts = Profile(STEADY, keys=100, zipf=1.0).expected_counts(100_000)
    harmonic = sum(1 / rank for rank in range(1, 101))
    assert counts["word-0"] / 100_000 == pytest.approx(1 / harmonic, rel=0.05)
    assert counts["word-0"] / counts["word-9"] == pytest.approx(10, rel=0.1)


def test_a_hot_word_has_its_share_from_its_row_on() -> None:
    source = Profile(STEADY, keys=10, hot=((1000, 0.5), (11_000, 0.9)))
    assert load_profile.HOT_WORD not in source.words(0, 1000)
    for start, share in ((1000, 0.5), (11_000, 0.9)):
        assert np.mean(source.words(start, start + 10_000) == load_profile.HOT_WORD) == pytest.approx(share, abs=0.02)


def test_counts_are_those_of_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_profile, "BLOCK_ROWS", 64)
    source = Profile(STEADY, keys=7, hot=((50, 0.3),))
    words, counts = np.unique(source.words(0, 1000), return_counts=True)
    assert source.expected_counts(1000) == dict(zip(words.tolist(), counts.tolist(), strict=True))
    assert source.expected_counts(0) == {}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_text_gives_the_same_profile_again(workload: WorkloadSpec) -> None:
    source = Profile(workload, keys=5, zipf=0.5, hot=((10, 0.5),), seed=7)
    assert Profile.from_json(source.to_json()) == source


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"workload": {"kind": "constant", "rate": 5}}', '{"workload": {}, "colour": 1}'],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a profile"):
        Profile.from_json(text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"keys": 0}, "keys"),
        ({"zipf": -1.0}, "zipf"),
        ({"hot": ((0, 1.5),)}, "share"),
        ({"hot": ((9, 0.1), (3, 0.2))}, "sort"),
        ({"workload": WorkloadSpec("constant", rate_per_s=-1.0)}, "rate_per_s"),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Profile(**{"workload": STEADY, **values})  # type: ignore[arg-type]
