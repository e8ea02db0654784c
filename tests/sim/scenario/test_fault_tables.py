"""Every kind of fault can be written in a scenario file and runs."""

from __future__ import annotations

from typing import get_args

import pytest

from homeostat.core.events import Observed
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import FaultKind

SCENARIO = """
title = "a word count"
engine = "microbatch"
duration = "10 min"

[microbatch]
executors = 4

[[component]]
name = "lines"
kind = "source"
parallelism = 2
rate = "100/s"

[[component]]
name = "count"
inputs = ["lines"]
parallelism = 4
rate = "100/s"
keyed = true
stateful = true

[workload]
kind = "constant"
rate = "10/s"

[[fault]]
kind = "{kind}"
at = "1 min"
until = "5 min"
{keys}
"""
COUNT = 'component = "count"'
KEYS: dict[str, str] = {
    "slow-host": 'host = "host-1"\nfactor = 2.0',
    "hot-key": COUNT,
    "hash-imbalance": COUNT,
    "stuck-sink": COUNT,
    "slow-sink": 'time = "2 s"\nrow = "1 ms"\njob = true\ngrowth = 0.5',
    "slow-commit": 'time = "2 s"',
    "slow-scheduling": 'task = "100 ms"',
    "collecting": 'row = "1 ms"',
    "driver-memory": 'share = "90 %"',
    "small-files": 'rows = 10\nfile = "10 ms"',
    "slow-fetch": 'row = "1 ms"',
    "outside-system": f'{COUNT}\ntask = "1 s"',
    "slow-network": 'row = "1 ms"',
    "contention": 'host = "host-0"\nshare = "60 %"',
    "memory": "rows = 300",
    "spill": 'rows = 50\nrow = "1 ms"',
    "state-store": 'task = "100 ms"\nrow = "0.01 ms"',
    "growing-state": "growth = 2.0",
    "rising-cost": "growth = 2.0",
    "costly-keys": f"{COUNT}\nfactor = 3.0",
    "skewed-join": f"{COUNT}\ninstance = 1",
    "task-failures": 'share = "10 %"',
    "poison-row": f"{COUNT}\nattempts = 4",
    "stuck-task": COUNT,
    "dying-executors": 'every = "30 s"\nreason = "lost"',
}


@pytest.mark.parametrize("kind", get_args(FaultKind))
def test_a_scenario_with_this_fault_runs(kind: str) -> None:
    scenario = catalogue.loads(SCENARIO.format(kind=kind, keys=KEYS.get(kind, "")), "words.toml")
    (fault,) = scenario.faults
    assert (fault.kind, fault.at_s, fault.until_s) == (kind, 60.0, 300.0)
    batches = [event for event in Microbatch(scenario).wait(600.0) if isinstance(event, Observed)]
    assert batches[-1].observation.at_s > 590.0
