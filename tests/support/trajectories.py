"""A shipped scenario under a policy, and the sizes it went through."""

from __future__ import annotations

from homeostat.core.policy_definition import Policy
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import RunResult, simulate


def run(name: str, policy: Policy) -> RunResult:
    return simulate(catalogue.load(name), policy)


def path(result: RunResult, *components: str) -> list[tuple[float, ...]]:
    return [tuple(action.parallelism[name] for name in components) for action in result.trajectory]
