"""What events do to the state of the loop."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.cycle import step
from homeostat.core.events import EngineChanged, Observed, Receipt, UnderWay
from homeostat.core.loop_state import RUNS_KEPT, WINDOW_TASKS_KEPT, State
from homeostat.core.objective import Objective
from homeostat.testing import instances, observations, play
from support.growing_loop import ENGINE, OBSERVED, SPLIT, policy


def test_the_log_says_in_words_what_the_engine_runs() -> None:
    (text,) = play(policy(), ENGINE, OBSERVED[:1]).texts("engine")
    assert text == "the engine runs with parallelism.lines 1, parallelism.split 2, spread.split 1 (start)"


def test_an_observation_without_a_time_is_a_failure_of_the_sensor() -> None:
    timeless = [
        replace(OBSERVED[1], span_s=0.0),
        replace(OBSERVED[2], span_s=math.nan),
        replace(OBSERVED[3], at_s=math.inf),
    ]
    for bad in timeless:
        played = play(policy(), ENGINE, [OBSERVED[0], replace(bad, batch=7)])
        assert len(played.texts("failure")) == 1
        assert played.state.history[-1].batch == 0


def test_an_observation_that_comes_twice_counts_once() -> None:
    state, _, _ = step(policy(), State(mode="observe", objective=Objective()), [Observed(OBSERVED[0])] * 3, 10.0)
    assert len(state.history) == 1
    state, _, trace = step(policy(), state, [Observed(OBSERVED[0])], 20.0)
    assert len(state.history) == 1
    assert trace.conditions == ("no new observation",)


def test_only_the_newest_runs_are_remembered() -> None:
    steady, restarting = replace(OBSERVED[0], run="steady"), OBSERVED[1]
    state = State(mode="observe")
    for number in range(3 * RUNS_KEPT):
        events = [
            Observed(replace(steady, batch=number, at_s=10.0 * number + 5.0)),
            Observed(replace(restarting, run=f"run-{number}", at_s=10.0 * number + 9.0)),
        ]
        state, _, _ = step(policy(), state, events, 10.0 * number + 10.0)
    assert len(state.last_batches) == RUNS_KEPT
    assert state.last_batches["steady"] == 3 * RUNS_KEPT - 1
    assert state.warm <= state.last_batches.keys()
    assert state.warm >= {"steady", f"run-{3 * RUNS_KEPT - 1}"}


def test_the_window_holds_fewer_observations_of_huge_stages() -> None:
    tasks = {"split": instances([1.0] * (WINDOW_TASKS_KEPT // 20), 0.1)}
    state = State(mode="observe", epoch=1)
    for observation in observations(40, tasks):
        state, _, _ = step(policy(), state, [Observed(observation)], observation.at_s)
    assert len(state.window) == 21
    assert len(state.history) == 40


def test_a_batch_under_way_is_forgotten_when_it_ends_or_had_ended_before() -> None:
    running = UnderWay("", OBSERVED[1].batch, 10.0, 15.0)
    state, _, _ = step(policy(), State(), [Observed(OBSERVED[0]), running], 15.0)
    assert state.under_way == running
    state, _, _ = step(policy(), state, [Observed(OBSERVED[1])], 20.0)
    assert state.under_way is None
    state, _, _ = step(policy(), state, [running], 21.0)
    assert state.under_way is None


def test_a_change_of_the_engine_begins_a_new_epoch_without_the_old_measurements() -> None:
    played = play(policy(), ENGINE, OBSERVED[:1], mode="observe")
    values = {**ENGINE.configuration.values, SPLIT: 7}
    changed = replace(ENGINE.configuration, values=values)
    event = EngineChanged(ENGINE.topology, changed, ENGINE.capabilities, 11.0, "restarted")

    state, _, _ = step(policy(), played.state, [event], 11.0)

    assert (state.epoch, state.window, state.observed[SPLIT]) == (played.state.epoch + 1, (), 7)


def test_a_receipt_that_nobody_waits_for_counts_only_if_the_engine_runs_something_else() -> None:
    played = play(policy(), ENGINE, OBSERVED[:1], mode="observe")

    same, _, _ = step(policy(), played.state, [Receipt("a-9", 11.0, ENGINE.configuration)], 11.0)

    assert same.epoch == played.state.epoch


@pytest.mark.parametrize(("grown", "seconds", "counts"), [(True, 28.0, True), (True, 9.0, False), (False, 28.0, False)])
def test_a_late_batch_that_saw_executors_come_counts_and_no_other_does(
    grown: bool, seconds: float, counts: bool
) -> None:
    """It began before the change took effect and ended after it."""
    tasks = {"split": instances([100.0] * 4, 7.0, finish_s=[7.0, 14.0, 21.0, 28.0])}
    (observation,) = observations(
        1, tasks, span_s=30.0, executors=4, rows=400.0, seconds=seconds, trigger_s=10.0, arrival_per_s=40.0
    )
    state = State(mode="observe", epoch=2, epoch_since_s=5.0, grown=grown, warm=frozenset({observation.run}))
    state, _, _ = step(policy(), state, [Observed(observation)], observation.at_s)
    assert [digest.epoch == 2 for digest in state.history] == [counts]
    assert len(state.window) == counts
    if counts:
        assert state.history[-1].components["split"].span_s == 7.0
