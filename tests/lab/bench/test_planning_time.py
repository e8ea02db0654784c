"""The large applications that plans are timed on."""

from __future__ import annotations

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.lab.bench import planning_time


def test_the_dataflow_is_a_chain_of_the_given_size() -> None:
    model = planning_time.dataflow(components=4, instances=10)
    assert len(model.topology.components) == 4
    assert len(model.topology.sources) == 1
    assert sum(model.configuration.values.values()) == 4 * 10


def test_the_batch_has_the_given_stages_on_shared_executors() -> None:
    model = planning_time.batches(stages=3, tasks=8)
    assert model.configuration[EXECUTORS_KNOB] == 3
    assert 8 in model.configuration.values.values()


def test_both_are_planned_and_timed() -> None:
    seconds = planning_time.seconds(1, components=4, instances=40)
    assert set(seconds) == {"dataflow", "microbatch"}
    assert min(seconds.values()) > 0
