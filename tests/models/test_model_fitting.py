"""The model is fitted to a simulated application, which shares no code with it, and tried where it was not fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, TRIGGER_S, Knob, Patch
from homeostat.core.events import Observed
from homeostat.core.observation import Array
from homeostat.lab.scenario_model import from_scenario
from homeostat.models.batch_replay import BatchModel
from homeostat.models.model_json import from_json, to_json
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import FaultSpec, Noise, Scenario
from homeostat.store import codec
from support.words_model import words_model, words_scenario

STATE = Knob(STATE_PARTITIONS, "main")

TRIGGER = Knob(TRIGGER_S, "main")


def real_seconds(words: Scenario, seeds: tuple[int, ...] = (7, 8)) -> Array:
    quiet = replace(words, workload=replace(words.workload, noise=Noise()))
    events = [event for seed in seeds for event in Microbatch(quiet, seed).wait(300.0)]
    return np.array([e.observation.flows[0].seconds for e in events if isinstance(e, Observed)][5:])


ELSEWHERE = (
    (2_000.0, 6, 24, 10.0),
    (2_000.0, 10, 24, 10.0),
    (1_200.0, 4, 24, 10.0),
    (3_500.0, 12, 24, 10.0),
    (2_000.0, 8, 48, 10.0),
    (2_000.0, 8, 16, 10.0),
    (1_500.0, 6, 24, 5.0),
    (2_500.0, 12, 36, 20.0),
)


def test_batches_take_as_long_as_predicted_in_configurations_never_seen() -> None:
    """The simulator keeps state where it was, which the model knows nothing of: not every one is as close."""
    errors = []
    for rate_per_s, executors, partitions, trigger_s in ELSEWHERE:
        model = words_model()
        cut = dict.fromkeys(model.partition_knobs(), partitions)
        then = model.configuration.patched(Patch({**cut, EXECUTORS_KNOB: executors, TRIGGER: trigger_s}))
        predicted = model.predict(then, rate_per_s).batch_s
        assert predicted is not None
        words = words_scenario(
            rate_per_s, executors=executors, partitions=partitions, trigger_s=trigger_s, varied=False
        )
        errors.append(abs(predicted.middle / float(np.median(real_seconds(words))) - 1))
    assert float(np.median(errors)) <= 0.1
    assert max(errors) <= 0.2


def test_the_cost_of_state_is_distinguished_from_that_of_rows() -> None:
    performance = words_model().performance
    assert isinstance(performance, BatchModel)
    count = next(stage for stage in performance.stages if stage.name == "count")
    assert count.keys.keys == pytest.approx(20_000, rel=0.1)
    assert count.rows_per_row == pytest.approx(3.0)
    assert count.cost.slowing is None


def test_a_slow_executor_is_kept_apart_from_what_tasks_cost() -> None:
    fault = FaultSpec("slow-instance", at_s=0.0, component="app", instance=0, factor=3.0)
    performance = from_scenario(words_scenario(1_200.0, faults=(fault,))).performance
    healthy = from_scenario(words_scenario(1_200.0)).performance
    assert isinstance(performance, BatchModel)
    assert isinstance(healthy, BatchModel)
    assert len(performance.slow) == 1
    assert performance.slow[0] == pytest.approx(3.0, rel=0.2)
    assert healthy.slow == ()
    setup = replace(healthy.setup, executors=12)
    cured = replace(performance, slow=())
    assert cured.expected_s(9_600, setup) == pytest.approx(healthy.expected_s(9_600, setup), rel=0.15)


def test_a_model_survives_being_written_down() -> None:
    model = words_model()
    again = from_json(codec.load(codec.dump(to_json(model))))
    assert again is not None
    then = model.configuration.patched(Patch({EXECUTORS_KNOB: 9}))
    first, second = (m.predict(then, 2_500.0) for m in (model, again))
    assert first.batch_s is not None
    assert second.batch_s is not None
    assert second.batch_s.middle == pytest.approx(first.batch_s.middle, rel=1e-3)
    assert second.unknown == first.unknown
