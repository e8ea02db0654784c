"""What goes wrong, and when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.observation import FlowSample, Observation, TaskSample
from homeostat.sim.faults import Faults
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import FaultSpec

COMPONENTS = ("lines", "split", "count")


def task(instances: int) -> TaskSample:
    rows, run_s, rows_out, pending, pressured, finish = (np.full(instances, float(n)) for n in range(1, 7))
    return TaskSample(rows, run_s, rows_out, pending, pressured, finish, worker=np.arange(instances))


OBSERVATION = Observation(
    at_s=60.0,
    span_s=10.0,
    batch=5,
    flows=(FlowSample("lines", rows=100.0, arrival_per_s=10.0, pending_rows=7.0, phases_s={"commit": 2.0}),),
    tasks={"split": task(400), "count": task(400)},
)


def columns(sample: TaskSample) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.concatenate([sample.rows, sample.run_s, sample.rows_out, sample.pending_rows, sample.pressured_s])


def test_a_fault_is_active_from_its_start_until_before_its_end() -> None:
    fault = FaultSpec("hot-key", at_s=10.0, until_s=20.0, component="count", share=0.4)
    faults = Faults((fault,), COMPONENTS)
    assert [faults.active("hot-key", t) for t in (9.9, 10.0, 19.9, 20.0)] == [(), (fault,), (fault,), ()]
    assert faults.active("crash", 15.0) == ()
    assert [faults.next_change_s(t) for t in (0.0, 10.0, 20.0)] == [10.0, 20.0, float("inf")]


def test_key_faults_concern_the_component_they_name_or_all() -> None:
    faults = Faults(
        (
            FaultSpec("hot-key", component="count", share=0.4),
            FaultSpec("hot-key", at_s=50.0, component="count", share=0.7),
            FaultSpec("hash-imbalance", stride=4),
        )
    )
    assert [faults.hot_share("count", t) for t in (0.0, 50.0)] == [0.4, 0.7]
    assert faults.hot_share("split", 50.0) == 0.0
    assert faults.stride("count", 0.0) == faults.stride("split", 0.0) == 4


def test_slow_hosts_and_stuck_sinks() -> None:
    faults = Faults(
        (
            FaultSpec("slow-host", host="host-1", factor=3.0),
            FaultSpec("slow-host", at_s=10.0, host="host-1", factor=2.0),
            FaultSpec("stuck-sink", at_s=10.0, component="count"),
        )
    )
    assert [faults.host_factor("host-1", t) for t in (0.0, 10.0)] == [3.0, 6.0]
    assert faults.host_factor("host-0", 10.0) == 1.0
    assert [faults.sink_stuck(t) for t in (0.0, 10.0)] == [False, True]
    assert [faults.sink_stuck(10.0, sink) for sink in ("count", "other")] == [True, False]


def test_a_gap_loses_its_share_of_the_measurements_and_nothing_else() -> None:
    faults = Faults((FaultSpec("metric-gap", share=0.3),))
    observation = faults.garble(OBSERVATION, 60.0, stream(1, "metrics"))
    lost = np.isnan(columns(observation.tasks["count"]))
    assert lost.mean() == pytest.approx(0.3, abs=0.04)
    assert (columns(observation.tasks["count"])[~lost] == columns(OBSERVATION.tasks["count"])[~lost]).all()
    assert replace(observation, flows=(), tasks={}) == replace(OBSERVATION, flows=(), tasks={})
    assert (observation.tasks["count"].worker == OBSERVATION.tasks["count"].worker).all()
    assert not np.isnan(columns(OBSERVATION.tasks["count"])).any()


def test_a_whole_gap_hides_the_flows_too() -> None:
    observation = Faults((FaultSpec("metric-gap", share=1.0),)).garble(OBSERVATION, 60.0, stream(1))
    flow = observation.flows[0]
    assert np.isnan([flow.rows, flow.arrival_per_s, flow.pending_rows, flow.phases_s["commit"]]).all()
    assert flow.source == "lines"


def test_garbage_is_nonsense_in_every_way() -> None:
    observation = Faults((FaultSpec("garbage-metrics", share=1.0),)).garble(OBSERVATION, 60.0, stream(1))
    values = columns(observation.tasks["split"])
    assert np.isnan(values).any()
    assert np.isposinf(values).any()
    assert (values < 0).any()
    assert (values == 1e300).any()
    assert not np.isin(values, columns(OBSERVATION.tasks["split"])).any()


def test_a_gap_can_concern_one_component() -> None:
    observation = Faults((FaultSpec("metric-gap", share=1.0, component="count"),)).garble(OBSERVATION, 60.0, stream(1))
    assert np.isnan(columns(observation.tasks["count"])).all()
    assert observation.tasks["split"] is OBSERVATION.tasks["split"]
    assert observation.flows == OBSERVATION.flows


def test_measurements_are_untouched_while_nothing_is_wrong_with_them() -> None:
    faults = Faults((FaultSpec("metric-gap", at_s=100.0),))
    assert faults.garble(OBSERVATION, 60.0, stream(1)) is OBSERVATION
    assert [faults.garbles(t) for t in (60.0, 100.0)] == [False, True]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (FaultSpec("crash", at_s=-1.0), "at_s must be 0 or more, not -1"),
        (FaultSpec("crash", at_s=5.0, until_s=5.0), "until_s .5. must come after at_s .5."),
        (FaultSpec("slow-instance", factor=0.0), "factor must be above 0, not 0"),
        (FaultSpec("hot-key", share=1.5), "share must be between 0 and 1, not 1.5"),
        (FaultSpec("hot-key", share=float("nan")), "share must be between 0 and 1, not nan"),
        (FaultSpec("crash", instance=-1), "instance must be 0 or more, not -1"),
        (FaultSpec("hash-imbalance", stride=0), "stride must be 1 or more, not 0"),
        (FaultSpec("hot-key", component="cuont"), "unknown component 'cuont' .use one of lines, split, count."),
        (FaultSpec("slow-host"), "a slow-host fault needs a host"),
        (FaultSpec("slow-host", host="host-9"), "unknown host 'host-9' .use one of host-0, host-1."),
        (FaultSpec("earthquake"), "unknown kind of fault 'earthquake'"),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_fault_is_refused(fault: FaultSpec, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Faults((FaultSpec("stuck-sink"), fault), COMPONENTS, ("host-0", "host-1"))
    assert caught.value.where.startswith("fault 2")
