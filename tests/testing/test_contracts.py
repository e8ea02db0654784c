"""Everything that ships keeps the contract of its protocol; and the checks find out what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeostat.core.engine import Engine
from homeostat.policies import registry
from homeostat.service.simulation import build_engine
from homeostat.sim.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Scenario, WorkloadSpec
from homeostat.testing import ENGINE_CHECKS, check_policy

_SHAPE = (
    ComponentSpec("lines", "source", parallelism=2, rate_per_s=400.0),
    ComponentSpec("split", inputs=("lines",), parallelism=3, rate_per_s=100.0),
    ComponentSpec("count", inputs=("split",), parallelism=4, rate_per_s=100.0, keyed=True),
)


def _scenario(engine: DataflowSpec | MicrobatchSpec) -> Scenario:
    return Scenario("contract", "a word count", engine, 3600.0, _SHAPE, WorkloadSpec("constant", 100.0))


ENGINES: dict[str, Callable[[], Engine]] = {
    "dataflow": lambda: build_engine(_scenario(DataflowSpec())),
    "microbatch": lambda: build_engine(_scenario(MicrobatchSpec(executors=4))),
}


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_keeps_its_contract(engine: str, check: Callable[[Callable[[], Engine]], None]) -> None:
    check(ENGINES[engine])


@pytest.mark.parametrize("name", registry.names())
def test_every_policy_and_all_its_parts_keep_their_contract(name: str) -> None:
    check_policy(registry.build(name, scenario_peak_per_s=400.0))
