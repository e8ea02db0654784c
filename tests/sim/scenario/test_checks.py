"""Contradictions in a scenario are refused with their place and a fix."""

from __future__ import annotations

import pytest

from homeostat.core.errors import ConfigError
from homeostat.sim.scenario import catalogue

BASE = """
name = "s"
title = "t"
engine = "{engine}"
duration = "{duration}"

[[component]]
name = "lines"
kind = "source"
rate = "100/s"

[[component]]
name = "count"
inputs = ["lines"]
rate = "100/s"
{more}

[workload]
kind = "constant"
rate = "10/s"
"""


def refusal(more: str, engine: str = "microbatch", duration: str = "10 min") -> str:
    with pytest.raises(ConfigError) as refused:
        catalogue.loads(BASE.format(engine=engine, duration=duration, more=more), "s.toml")
    return refused.value.line


def test_the_base_is_accepted() -> None:
    assert catalogue.loads(BASE.format(engine="dataflow", duration="1 min", more=""), "s.toml").name == "s"


@pytest.mark.parametrize(
    ("engine", "more", "message"),
    [
        ("microbatch", "[dataflow]", "[dataflow] contradicts engine = 'microbatch'"),
        ("dataflow", '[dataflow]\ntick = "10 s"\nstep = "3 s"', "'tick' (10 s) is not a multiple of 'step' (3 s)"),
        ("microbatch", "[microbatch]\nexecutors = 9\nmax_executors = 3", "'executors' is 9, but at most 3 are allowed"),
        ("microbatch", '[microbatch]\ntrigger = "0.1 ms"', "'trigger' is shorter than 1 ms"),
    ],
)
def test_a_contradiction_is_named(engine: str, more: str, message: str) -> None:
    line = refusal(more, engine)
    assert message in line
    assert line.startswith("s.toml:")


def test_a_run_that_would_never_end_is_refused() -> None:
    assert "the run would take" in refusal("", "dataflow", duration="10000 d")


@pytest.mark.parametrize(
    ("engine", "fault", "message"),
    [
        ("dataflow", 'kind = "slow-sink"', "a slow-sink fault has no effect with engine = 'dataflow'"),
        ("microbatch", 'kind = "outside-system"', "a fault of kind 'outside-system' needs 'task' or 'row'"),
        ("microbatch", 'kind = "stuck-task"\ncomponent = "count"', "a stuck-task fault needs 'until'"),
        ("microbatch", 'kind = "stalled-watermark"', "a stalled-watermark fault needs a stateful component"),
        ("microbatch", 'kind = "slow-fetch"\nrow = "1 ms"\ncomponent = "count"', "a slow-fetch fault needs a source"),
        ("microbatch", 'kind = "contention"\nhost = "host-9"', "unknown host 'host-9'"),
        ("microbatch", 'kind = "memory"\ncomponent = "cuont"', "unknown component 'cuont'"),
        ("microbatch", 'kind = "contention"\nshare = "100 %"', "'share' must be"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused(engine: str, fault: str, message: str) -> None:
    assert message in refusal(f"[[fault]]\n{fault}", engine)
