"""Homeostat: self-regulating stream processing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeostat._version import __version__

if TYPE_CHECKING:
    from homeostat.api_objectives import CatchUp, Cost, Lag, Latency, ModelError, Provisioning, Throughput
    from homeostat.keyed_state.operator import keyed
    from homeostat.keyed_state.state import State
    from homeostat.keyed_state.synopses import Distinct, HeavyHitters, Quantiles
    from homeostat.keyed_state.variables import Count, Counts, List, Map, Value
    from homeostat.runtime.attach import attach
    from homeostat.spark.kafka_sink import kafka_sink
    from homeostat.spark.pipeline import Context, pipeline

__all__ = [
    "CatchUp",
    "Context",
    "Cost",
    "Count",
    "Counts",
    "Distinct",
    "HeavyHitters",
    "Lag",
    "Latency",
    "List",
    "Map",
    "ModelError",
    "Provisioning",
    "Quantiles",
    "State",
    "Throughput",
    "Value",
    "__version__",
    "attach",
    "kafka_sink",
    "keyed",
    "pipeline",
]

_HOMES = {
    "Context": "homeostat.spark.pipeline",
    "kafka_sink": "homeostat.spark.kafka_sink",
    "keyed": "homeostat.keyed_state.operator",
    "pipeline": "homeostat.spark.pipeline",
    "attach": "homeostat.runtime.attach",
    "State": "homeostat.keyed_state.state",
    **dict.fromkeys(("Count", "Counts", "List", "Map", "Value"), "homeostat.keyed_state.variables"),
    **dict.fromkeys(("Distinct", "HeavyHitters", "Quantiles"), "homeostat.keyed_state.synopses"),
}


def __getattr__(name: str) -> Any:
    """Loaded when first used, so that commands that need no Spark stay quick."""
    if name not in __all__:
        raise AttributeError(f"module 'homeostat' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "homeostat.api_objectives")), name)
