"""Homeostat: self-regulating stream processing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeostat._version import __version__

if TYPE_CHECKING:
    from homeostat.objectives import Cost, Lag, Latency, ModelError, Provisioning, Throughput
    from homeostat.service.attach import attach
    from homeostat.spark.keyed import keyed
    from homeostat.spark.pipeline import Context, pipeline
    from homeostat.stateful.kinds import Count, Counts, List, Map, Value
    from homeostat.stateful.program import State
    from homeostat.stateful.synopses import Distinct, HeavyHitters, Quantiles

__all__ = [
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
    "keyed",
    "pipeline",
]

_HOMES = {
    "Context": "homeostat.spark.pipeline",
    "keyed": "homeostat.spark.keyed",
    "pipeline": "homeostat.spark.pipeline",
    "attach": "homeostat.service.attach",
    "State": "homeostat.stateful.program",
    **dict.fromkeys(("Count", "Counts", "List", "Map", "Value"), "homeostat.stateful.kinds"),
    **dict.fromkeys(("Distinct", "HeavyHitters", "Quantiles"), "homeostat.stateful.synopses"),
}


def __getattr__(name: str) -> Any:
    """Loaded when first used, so that commands that need no Spark stay quick."""
    if name not in __all__:
        raise AttributeError(f"module 'homeostat' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "homeostat.objectives")), name)
