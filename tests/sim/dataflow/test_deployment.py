"""Commands and faults change what is deployed."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import PARALLELISM, SPREAD, Knob, Patch
from homeostat.core.errors import ConfigError
from homeostat.sim.dataflow.deployment import Deployment
from homeostat.sim.random_streams import Ar1, stream
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, Noise

COMPONENTS = (ComponentSpec("lines", "source"), ComponentSpec("count", inputs=("lines",), parallelism=2, keyed=True))
COUNT, SPREAD_OF_COUNT = Knob(PARALLELISM, "count"), Knob(SPREAD, "count")


def deployment(*faults: FaultSpec) -> Deployment:
    noise = {spec.name: Ar1(Noise(), stream(1, spec.name)) for spec in COMPONENTS}
    return Deployment(COMPONENTS, DataflowSpec(redeploy_s=30.0, replace_s=10.0), faults, noise)


def test_another_parallelism_is_an_outage_until_it_is_finished() -> None:
    deployed = deployment()
    seconds = deployed.begin(deployed.configuration.patched(Patch({COUNT: 3})), 0.0)
    assert (seconds, deployed.down, deployed.configuration.values[COUNT]) == (30.0, True, 2)
    deployed.finish(seconds)
    assert (deployed.down, deployed.configuration.values[COUNT]) == (False, 3)
    assert len(deployed.fluid.stages["count"].queue) == 3


def test_an_abandoned_change_leaves_what_was_there() -> None:
    deployed = deployment()
    before = deployed.configuration
    deployed.begin(before.patched(Patch({COUNT: 3})), 0.0)
    deployed.abandon(5.0)
    assert (deployed.down, deployed.configuration) == (False, before)


def test_a_live_knob_takes_effect_at_once() -> None:
    deployed = deployment()
    assert deployed.begin(deployed.configuration.patched(Patch({SPREAD_OF_COUNT: 2})), 0.0) == 0.0
    assert deployed.configuration.values[SPREAD_OF_COUNT] == 2


def test_a_replaced_process_is_healthy_again() -> None:
    deployed = deployment(FaultSpec("slow-instance", component="count", instance=1))
    (slow,) = deployed.faulty_workers(0.0)
    seconds = deployed.begin(deployed.configuration.patched(Patch(retire=frozenset({slow}))), 0.0)
    deployed.finish(seconds)
    assert (seconds, deployed.faulty_workers(seconds)) == (10.0, frozenset())


def test_a_fault_of_an_instance_needs_its_component() -> None:
    with pytest.raises(ConfigError, match="a crash fault needs a component"):
        deployment(FaultSpec("crash"))
