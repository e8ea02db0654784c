from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from homeostat.core import receiving
from homeostat.core.earlier import Earlier
from homeostat.core.traffic import Traffic
from homeostat.lab.bench.endurance import Sample, measure, trend, trends
from homeostat.lab.bench.steady_query import SteadyQuery
from homeostat.policies import registry
from homeostat.runtime.manager import Manager
from homeostat.store.in_memory import MemoryStore


def sample(day: float, memory_mb: float) -> Sample:
    return Sample(day, memory_mb, 50.0, 10.0, 12.0, 100, 2, 9, 0.1)


def test_a_line_in_noise_is_distinguished_from_noise_alone() -> None:
    dice = random.Random(1)
    days = [number / 4 for number in range(4, 120)]
    flat = trend(days, [100 + dice.gauss(0, 1) for _ in days])
    assert flat.within_noise
    rising = trend(days, [100 + 0.3 * day + dice.gauss(0, 1) for day in days])
    assert not rising.within_noise
    assert rising.low < 0.3 < rising.high


def test_values_that_follow_each_other_closely_count_as_fewer() -> None:
    dice = random.Random(2)
    days, value, walk = [number / 4 for number in range(100)], 0.0, []
    for _ in days:
        value = 0.9 * value + dice.gauss(0, 1)
        walk.append(value)
    independent = [dice.gauss(0, 2.3) for _ in days]
    width = [slope.high - slope.low for slope in (trend(days, walk), trend(days, independent))]
    assert width[0] > 2 * width[1]


def test_without_enough_values_nothing_is_said_to_grow() -> None:
    assert math.isnan(trend([1.0, 2.0], [1.0, 9.0]).per_day)
    assert trend([1.0, 2.0], [1.0, 9.0]).within_noise


def test_the_first_day_does_not_count() -> None:
    samples = [sample(0.25, 10.0), sample(0.5, 50.0), *(sample(1 + number, 80.0) for number in range(5))]
    assert trends(samples)["resident_mb"]["growth_a_day"] == pytest.approx(0.0)


@pytest.mark.slow
def test_a_short_life_through_the_real_store_and_the_real_service() -> None:
    result = measure(days=0.5, queries=2, batch_s=600.0, warm_up_s=1_800.0, tell=lambda line: None)
    assert [each["day"] for each in result["samples"]] == [0.25, 0.5]
    assert result["batches"] == 2 * (72 + 45)
    last = result["samples"][-1]
    assert last["store_mb"] > 0
    assert last["blocks"] > 0
    assert result["threads"][1] < 20
    assert result["files"][1] < 50


def test_what_the_loop_remembers_does_not_grow_once_its_windows_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """With smaller windows, so that they are full soon. Counts entries, not memory. The known traffic takes two weeks
    to fill its window, and the earlier observations have a bound of their own (tests/core/test_earlier.py): both are
    left out."""
    for name, most in {"HISTORY_KEPT": 40, "WINDOW_KEPT": 20, "RUNS_KEPT": 3}.items():
        monkeypatch.setattr(receiving, name, most)
    policy = registry.build("provisioning", {"loop": {"cadence": "1 h", "window": "1 h"}, "planning": {"ahead": False}})
    manager = Manager(SteadyQuery(1, 0.0), policy, MemoryStore(), "app/query")
    manager.start()
    sizes: list[int] = []
    actions = 0
    for batch in range(1, 4 * 72 + 1):
        actions += sum(record.kind == "action" for record in manager.advance(600.0 * batch).records)
        if batch % 72 == 0:
            sizes.append(entries(replace(manager.state, traffic=Traffic(), earlier=Earlier())))
    assert actions > 3
    first_day, second_day = sizes[:2], sizes[2:]
    assert max(second_day) < max(first_day) + 72, "less than one entry for each batch"


def entries(value: object) -> int:
    """The entries of all collections in a value."""
    if isinstance(value, Mapping):
        return sum(1 + entries(key) + entries(item) for key, item in value.items())
    if isinstance(value, (tuple, list, set, frozenset)):
        return sum(1 + entries(item) for item in value)
    if dataclasses.is_dataclass(value):
        return sum(entries(getattr(value, field.name)) for field in dataclasses.fields(value))
    return 0
