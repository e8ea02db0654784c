"""The settings that do best on the tuning traces: the same number of draws for every policy, the defaults first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from homeostat.core.policy_definition import Policy
from homeostat.policies import registry

# The cost of a second of violation, in seconds of all the instances that the oracle has on average: violations for 1 %
# of the time count as 20 % more cost. A choice: `violation_cost` in the settings of the planner has the same unit.
VIOLATION_WEIGHT = 20.0
_SEED = 20_261_118

# The values to draw from. For the other policies, these are values around the recommendations of their documentation;
# for ours, the settings that decide how much headroom there is and how soon the loop acts.
SPACES: dict[str, dict[str, Sequence[Any]]] = {
    "provisioning": {
        "planning.violation_cost": (0.0, 5.0, 20.0, 50.0),
        "loop.settle": ("30 s", "60 s", "120 s"),
        "guards.confirm": ("120 s", "300 s", "600 s"),
        "guards.cooldown": ("10 s", "30 s", "60 s"),
        "guards.cooldown_shrink": ("120 s", "300 s"),
    },
    "ds2": {
        "interval_s": (10.0, 30.0, 60.0, 120.0),
        "activation_intervals": (1, 2, 3),
        "headroom": (0.0, 0.1, 0.2, 0.3, 0.5),
        "min_shrink": (1, 2, 3),
        "warm_up_intervals": (0, 1, 2),
        "target_rate_ratio": (1.05, 1.2, math.inf),
    },
    "conttune": {
        "interval_s": (10.0, 30.0, 60.0, 120.0),
        "alpha": (0, 3, 6),
        "back_pressure": (0.1, 0.3, 0.5),
        "low_use": (0.5, 0.6, 0.7, 0.8),
        "headroom": (0.0, 0.1, 0.2, 0.3, 0.5),
    },
    "demeter": {
        "evaluation_s": (60.0, 120.0, 300.0, 600.0),
        "buffer": (1.0, 1.05, 1.1, 1.2),
        "segment": (0.0, 0.05, 0.1, 0.3),
        "step": (1, 2, 4),
        "least_share": (0.05, 1.0 / 3.0),
        "recovery_s": (120.0, 180.0, 600.0),
        "spare": (1.0, 1.1, 1.25),
    },
    "flink": {
        "cadence_s": (30.0, 60.0),
        "stabilisation_s": (60.0, 120.0, 300.0),
        "window_s": (60.0, 180.0, 300.0, 900.0),
        "target_utilisation": (0.5, 0.6, 0.7, 0.8),
        "boundary": (0.1, 0.2, 0.3),
        "catch_up_s": (600.0, 1800.0),
        "restart_s": (10.0, 60.0, 300.0),
        "shrink_delay_s": (300.0, 900.0, 3600.0),
        "align": (True, False),
    },
    "hpa": {
        "target_utilisation": (0.5, 0.6, 0.7, 0.8),
        "tolerance": (0.05, 0.1, 0.2),
        "stabilise_down_s": (60.0, 300.0, 900.0),
        "metric_s": (30.0, 60.0, 120.0),
    },
    "dstream": {
        "interval_s": (30.0, 60.0, 120.0),
        "grow_at": (0.6, 0.7, 0.8, 0.9),
        "shrink_at": (0.2, 0.3, 0.4, 0.5),
    },
    "spark-dynamic-allocation": {"backlog_s": (1.0, 2.0, 5.0), "idle_s": (30.0, 60.0, 300.0)},
    "heron": {"cadence_s": (30.0, 60.0), "settle_s": (60.0, 180.0), "window_s": (120.0, 300.0)},
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with settings of its own. `label` names it in the results."""

    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuned: bool = False

    @property
    def label(self) -> str:
        return f"{self.policy} (tuned)" if self.tuned else self.policy

    def build(self, peak_per_s: float) -> Policy:
        if self.policy in registry.peer_names():
            return registry.build(self.policy, scenario_peak_per_s=peak_per_s, peer_settings=self.settings)
        return registry.build(self.policy, _tables(self.settings))


def draws(policy: str, budget: int) -> list[Contender]:
    """Up to `budget` different settings, the same for every call; the defaults are the first."""
    space, chance = SPACES.get(policy, {}), np.random.default_rng(_SEED)
    contenders: dict[str, Contender] = {"": Contender(policy)}
    for _ in range(20 * budget if space else 0):
        if len(contenders) >= budget:
            break
        settings = {name: values[int(chance.integers(len(values)))] for name, values in space.items()}
        contenders.setdefault(repr(settings), Contender(policy, settings))
    return list(contenders.values())[:budget]


def loss(run: Mapping[str, Any]) -> float:
    """Cost and violations together, as multiples of the oracle's cost."""
    return float(run["cost_over_oracle"] + VIOLATION_WEIGHT * run["violation_s"] / run["duration_s"])


def _tables(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`{"loop.settle": 30}` as the tables of a settings file."""
    tables: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        table, _, key = name.partition(".")
        tables.setdefault(table, {})[key] = value
    return tables
