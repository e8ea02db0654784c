"""Values that no machine could simulate are refused with their line; many keys need little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.recorded_data import trace_file
from homeostat.sim.routing import heaviest_key, shares
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import ComponentSpec

DATAFLOW = """title = "t"
engine = "dataflow"
duration = "1 h"
[dataflow]
step = "1 s"
[workload]
kind = "sine"
rate = "800 /s"
amplitude = "300 /s"
period = "5 min"
[[component]]
name = "lines"
kind = "source"
rate = "1 k/s"
[[component]]
name = "count"
inputs = ["lines"]
rate = "200 /s"
selectivity = 0.5
keyed = true
keys = 1000
[[fault]]
kind = "slow-instance"
component = "count"
factor = 4.0
[[fault]]
kind = "hash-imbalance"
component = "count"
stride = 2
"""
MICROBATCH = """title = "t"
engine = "microbatch"
duration = "1 h"
[microbatch]
trigger = "10 s"
straggler_factor = 3.0
[workload]
kind = "constant"
rate = "800 /s"
[[component]]
name = "lines"
kind = "source"
rate = "1 k/s"
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (DATAFLOW, "keys = 1000", "keys = 1_000_000_000", "'keys' must be at most 10000000, not 1000000000"),
        (DATAFLOW, "keys = 1000", 'keys = "1 G"', "'keys' must be at most 10000000, not '1 G'"),
        (DATAFLOW, "stride = 2", "stride = 100000000000000000000000", "'stride' must be at most 1000000"),
        (DATAFLOW, "factor = 4.0", "factor = 1e308", "'factor' must be at most 1000000"),
        (DATAFLOW, "selectivity = 0.5", "selectivity = 1e308", "'selectivity' must be at most 1000000"),
        (DATAFLOW, 'rate = "200 /s"', 'rate = "5e-324 /s"', "'rate' must be at least 1e-09"),
        (DATAFLOW, 'rate = "800 /s"', 'rate = "1e300 /s"', "'rate' must be at most 1e+15"),
        (DATAFLOW, 'period = "5 min"', 'period = "5e-324 s"', "'period' must be at least 1e-06"),
        (DATAFLOW, 'step = "1 s"', 'step = "5e-324 s"', "'step' must be at least 1e-06"),
        (DATAFLOW, 'duration = "1 h"', 'duration = "1e300 s"', "'duration' must be at most 1e+12"),
        (
            DATAFLOW,
            'duration = "1 h"',
            'duration = "10000000 d"',
            "the run would take 8.6e+11 steps (at most 100,000,000 steps of 1 s are allowed)",
        ),
        (MICROBATCH, 'trigger = "10 s"', 'trigger = "1e-9 s"', "'trigger' is shorter than 1 ms"),
        (
            MICROBATCH,
            "straggler_factor = 3.0",
            "straggler_factor = 1e308",
            "'straggler_factor' must be at most 1000000",
        ),
    ],
)
def test_a_value_beyond_all_measure_is_refused_with_its_line(text: str, old: str, new: str, reason: str) -> None:
    line = text[: text.index(old)].count("\n") + 1
    catalogue.loads(text, "s.toml")
    with pytest.raises(ConfigError) as refused:
        catalogue.loads(text.replace(old, new, 1), "s.toml")
    assert refused.value.line.startswith(f"s.toml:{line}: {reason}")


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (trace_file.TraceOptions(scale=1e308), "correct it, or lower 'scale'"),
        (trace_file.TraceOptions(speedup=5e-324), "raise 'speedup'"),
    ],
)
def test_a_trace_blown_out_of_all_measure_is_refused(options: trace_file.TraceOptions, fix: str) -> None:
    with pytest.raises(ConfigError) as refused:
        trace_file.parse("timestamp,value\n0,1e9\n1,0\n3,1e9\n", "t.csv", options)
    assert refused.value.fix == fix


def test_the_memory_for_keys_does_not_grow_with_their_number_or_the_number_of_components() -> None:
    tracemalloc.start()
    try:
        for number in range(4):
            spec = ComponentSpec("count", keyed=True, keys=1_000_000 - number, zipf=0.1)
            assert shares(spec, 8, hot_share=0.3).sum() == pytest.approx(1.0)
            assert 0 < heaviest_key(spec) < 0.001
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8_000_000


def test_keys_in_several_blocks_are_dealt_like_keys_in_one() -> None:
    spec = ComponentSpec("count", keyed=True, keys=200_000, zipf=0.4)
    names = np.arange(1, spec.keys + 1, dtype=np.float64)
    assert heaviest_key(spec) == pytest.approx(1 / float((names**-0.4).sum()), rel=1e-12)
    assert shares(spec, 1).tolist() == [1.0]
    halves = shares(spec, 2, hot_share=0.5)
    assert halves.max() == pytest.approx(0.75, abs=0.01)


def test_a_hot_key_gets_all_where_the_others_are_never_used() -> None:
    spec = ComponentSpec("count", keyed=True, keys=10, zipf=100_000.0)
    assert sorted(shares(spec, 4, hot_share=0.5).tolist()) == [0.0, 0.0, 0.0, 1.0]
