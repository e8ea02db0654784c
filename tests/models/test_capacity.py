"""What each component has to take and what it can take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.observation import NAN, Array, TaskSample
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.models.capacity import (
    backlog_rows,
    level,
    loads,
    measured_capacities,
    nothing_arrives,
    peak,
    replays,
    selectivities,
    speed_up,
)
from homeostat.testing import blanked, instances, observations, view_of


def diamond() -> Topology:
    def component(name: str, *inputs: str) -> Component:
        return Component(name, "operator" if inputs else "source", Knob(PARALLELISM, name), inputs)

    shape = (component("lines"), component("words", "lines"), component("links", "lines"))
    return Topology((*shape, component("store", "words", "links")))


def chain(
    arrival_per_s: float | Sequence[float] | Array = 100.0,
    *,
    count: int = 10,
    split: TaskSample | None = None,
    store: TaskSample | None = None,
    pending_rows: float = 0.0,
) -> View:
    """lines (1,000/s) → split (2 × 100/s) → store (1 × 150/s), unless given; 10 s intervals."""
    tasks = {
        "lines": instances(1000.0, 1.0),
        "split": split or instances([500.0, 500.0], 5.0),
        "store": store or instances(1000.0, 1000.0 / 150.0),
    }
    return view_of(observations(count, tasks, arrival_per_s=arrival_per_s, pending_rows=pending_rows))


def test_what_is_offered_follows_selectivity_down_both_branches() -> None:
    tasks = {
        "lines": instances(1000.0, 1.0),
        "words": instances(1000.0, 5.0, rows_out=3000.0),
        "links": instances(1000.0, 2.0, rows_out=500.0),
        "store": instances(3500.0, 7.0),
    }
    view = view_of(observations(8, tasks, arrival_per_s=400.0), topology=diamond())

    assert selectivities(view) == pytest.approx({"lines": 1.0, "words": 3.0, "links": 0.5, "store": 1.0})
    offered = {name: float(load.offered_per_s[-1]) for name, load in loads(view).items()}
    assert offered == pytest.approx({"lines": 400.0, "words": 400.0, "links": 400.0, "store": 1400.0})


def test_what_is_offered_is_unknown_behind_an_unknown_selectivity() -> None:
    tasks = {
        "lines": instances(1000.0, 1.0),
        "split": instances(500.0, 5.0, rows_out=NAN),
        "store": instances(1.0, 1.0),
    }
    load_by_component = loads(view_of(observations(8, tasks, arrival_per_s=100.0)))

    assert load_by_component["split"].is_known
    assert not load_by_component["store"].is_known


def test_the_busiest_instance_bounds_the_capacity() -> None:
    load = loads(chain(split=instances([750.0, 250.0], [7.5, 2.5])))["split"]

    assert load.capacity_per_s == pytest.approx(1000.0 / 7.5)
    assert load.even_per_s == pytest.approx(200.0)
    assert load.imbalance == pytest.approx(1.5)


def test_a_slow_instance_bounds_the_capacity_too() -> None:
    load = loads(chain(split=instances([250.0] * 4, [10.0, 2.5, 2.5, 2.5])))["split"]

    assert load.capacity_per_s == pytest.approx(100.0)
    assert load.even_per_s == pytest.approx(400.0)
    assert load.imbalance == pytest.approx(1.0)


def test_rows_left_in_a_queue_count_as_load_before_it_is_full() -> None:
    def tasks(number: int) -> Mapping[str, TaskSample]:
        waiting = [500.0 * (number + 1), 0.0]
        return {"lines": instances(2000.0, 1.0), "split": instances([1000.0, 500.0], [10.0, 5.0], pending_rows=waiting)}

    load = loads(view_of(observations(10, tasks, arrival_per_s=200.0)))["split"]

    assert load.imbalance == pytest.approx(1.5)
    assert load.capacity_per_s == pytest.approx(2000.0 / 15.0)


def test_even_instances_have_no_imbalance() -> None:
    load = loads(chain())["split"]

    assert load.imbalance == 1.0
    assert load.capacity_per_s == pytest.approx(load.even_per_s)
    assert load.instances == 2
    assert load.complete


def test_a_fifth_of_the_instances_missing_does_not_bias_capacity() -> None:
    rng = np.random.default_rng(5)

    def tasks(number: int) -> Mapping[str, TaskSample]:
        is_missing = rng.permutation(10) < 2
        return {
            "lines": instances(1000.0, 1.0),
            "split": instances(np.where(is_missing, NAN, 100.0), np.where(is_missing, NAN, 2.0)),
        }

    load = loads(view_of(observations(30, tasks, arrival_per_s=100.0)))["split"]

    assert load.capacity_per_s == pytest.approx(500.0)
    assert load.even_per_s == pytest.approx(500.0)
    assert load.imbalance == pytest.approx(1.0)
    assert not load.complete


def test_too_few_instances_measured_say_nothing() -> None:
    load = loads(chain(split=instances([500.0, NAN, NAN], [5.0, NAN, NAN])))["split"]

    assert not load.is_known
    assert math.isnan(load.capacity_per_s)


def test_one_missing_metric_makes_all_loads_incomplete() -> None:
    tasks = {"lines": instances(1000.0, 1.0), "split": instances([500.0, 500.0], 5.0)}
    observed = observations(10, tasks, arrival_per_s=100.0)

    load_by_component = loads(view_of(blanked(observed, "rows", component="lines", last=1)))

    assert not any(load.complete for load in load_by_component.values())


def test_the_headroom_is_what_the_noise_asks_for() -> None:
    rng = np.random.default_rng(2)

    def target(sigma: float) -> float:
        return loads(chain(100.0 * np.exp(rng.normal(0.0, sigma, 200)), count=200))["split"].target

    assert target(0.0) == 1.0
    assert 1.0 > target(0.05) > target(0.15) > 0.5
    assert target(0.15) == pytest.approx(math.exp(-2.5 * 0.15), rel=0.15)
    assert target(1.0) == 0.5


def test_few_observations_do_not_make_the_noise_larger_than_they_vary() -> None:
    """The differences of eight values tell of more than twice the noise that there is."""
    logs = np.random.default_rng(23).normal(0.0, 0.02, 8)
    load = loads(chain(100.0 * np.exp(logs), count=8))["split"]

    assert load.noise.sigma > 0.04
    assert load.target == pytest.approx(math.exp(-2.5 * float(np.std(logs, ddof=1))))


def test_a_level_that_moves_is_no_noise() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0.0, 0.02, 60)
    steady, moving = (
        loads(chain(100.0 * np.exp(logs), count=60))["split"] for logs in (noise, noise + np.linspace(0, 1, 60))
    )

    assert moving.target == pytest.approx(steady.target, rel=0.02)


def test_an_engine_may_say_that_its_sources_keep_nothing() -> None:
    view = chain()

    assert replays(view)
    assert not replays(replace(view, capabilities=replace(view.capabilities, replays=False)))


@pytest.mark.parametrize(
    ("pressured_s", "pending_rows", "waits"),
    [(5.0, 0.0, False), (5.0, 300.0, True), (0.0, 0.0, True), (0.4, 0.0, True)],
)
def test_a_source_held_back_with_nothing_waiting_does_not_replay(
    pressured_s: float, pending_rows: float, waits: bool
) -> None:
    view = chain(split=instances([500.0, 500.0], 5.0, pressured_s=pressured_s), pending_rows=pending_rows)

    assert replays(view) is waits


def test_the_application_is_as_fast_as_its_next_bottleneck() -> None:
    """lines has room for 5 × its load, split for 0.5 ×, store for 0.75 ×."""
    view = chain(200.0, split=instances(1000.0, 10.0), store=instances(1000.0, 1000.0 / 150.0))

    assert speed_up(view, {"split": 1.2}) == pytest.approx(math.log(1.2))
    assert speed_up(view, {"split": 4.0}) == pytest.approx(math.log(0.75 / 0.5))
    assert speed_up(view, {"split": 4.0, "store": 2.0}) == pytest.approx(math.log(1.5 / 0.5))
    assert speed_up(view, {"split": 100.0, "store": 100.0}) == pytest.approx(math.log(5.0 / 0.5))
    assert speed_up(view, {"store": 10.0}) == pytest.approx(0.0)
    assert speed_up(view, {"split": 0.5}) == pytest.approx(math.log(0.5))


def sixty_partitions(executors: int) -> View:
    """Six seconds of one-second tasks in as many waves as the slots ask for, and two seconds beside them."""
    waves = math.ceil(60 / executors)
    tasks = {"lines": instances([100.0] * 4, 0.1, finish_s=0.1), "count": instances([10.0] * 60, 1.0, finish_s=waves)}
    flow = {"arrival_per_s": 60.0, "rows": 600.0, "seconds": waves + 2.1, "trigger_s": 10.0}
    return view_of(observations(8, tasks, executors=executors, **flow))


def test_a_batch_speeds_up_only_in_its_tasks() -> None:
    view = sixty_partitions(10)

    assert speed_up(view, {"count": 1.1}) == pytest.approx(0.0)
    assert speed_up(view, {"count": 1.2}) == pytest.approx(math.log(8.1 / (2.0 + 0.1 + 5.0)))


def test_the_capacity_of_batches_leaves_room_for_what_is_fixed() -> None:
    """Ten seconds less two fixed ones, for rows of which 600 take 6.1 s."""
    load = loads(sixty_partitions(10))["count"]

    assert load.capacity_per_s == pytest.approx((10.0 - 2.0) / 6.1 * 600.0 / 10.0)
    assert load.instances == 10


def test_capacities_of_other_numbers_of_instances_are_remembered() -> None:
    before = chain(split=instances([300.0, 300.0, 400.0], [3.0, 3.0, 4.0]), count=5)
    failed = chain(split=instances([100.0] * 4, 10.0), count=5)
    seldom = chain(split=instances([200.0] * 5, 10.0), count=3)
    now = chain(count=5)
    history = (
        *(replace(d, epoch=0) for d in before.history),
        *(replace(d, epoch=-1) for d in failed.history),
        *(replace(d, epoch=0) for d in seldom.history),
        *now.history,
    )

    measured = measured_capacities(replace(now, history=history), "split")

    assert measured == pytest.approx({3: 250.0, 2: 200.0})


def test_levels_and_peaks_pass_over_what_is_unknown() -> None:
    assert level(np.array([1.0, 1.0, NAN, 4.0, 4.0, NAN]), last=2) == pytest.approx(4.0)
    assert math.isnan(level(np.array([NAN, 0.0])))
    assert peak(np.array([*[10.0] * 90, *[100.0] * 10, NAN]), last=100) == pytest.approx(100.0)
    assert peak(np.array([*[10.0] * 98, *[100.0] * 2]), last=100) == pytest.approx(10.0)


def test_nothing_arrives_only_if_that_is_known() -> None:
    assert nothing_arrives(chain(0.0))
    assert not nothing_arrives(chain([0.0] * 9 + [1.0]))
    assert not nothing_arrives(chain([0.0] * 9 + [NAN]))


def test_the_backlog_is_the_latest_known() -> None:
    view = chain(pending_rows=70.0)
    late = tuple(replace(d, pending_rows=NAN) for d in view.history)

    assert backlog_rows(view) == 70.0
    assert backlog_rows(replace(view, history=(*view.history[:-1], late[-1]))) == 70.0
    assert math.isnan(backlog_rows(replace(view, history=late)))
