"""Rules of other systems as policies, for comparison, re-implemented from their sources and papers."""

from __future__ import annotations

from collections.abc import Callable

from homeostat.core.policy_definition import Policy
from homeostat.policies.peers.conttune import ContTuneSettings, conttune
from homeostat.policies.peers.demeter import DemeterSettings, demeter
from homeostat.policies.peers.ds2 import Ds2Settings, ds2
from homeostat.policies.peers.dstream import DStreamSettings, dstream
from homeostat.policies.peers.dynamic_allocation import DynamicAllocationSettings, spark_dynamic_allocation
from homeostat.policies.peers.flink import FlinkSettings, flink
from homeostat.policies.peers.heron import HeronSettings, heron
from homeostat.policies.peers.hpa import HpaSettings, hpa
from homeostat.policies.peers.static import StaticSettings, static

PEERS: dict[str, Callable[..., Policy]] = {
    "heron": heron,
    "ds2": ds2,
    "conttune": conttune,
    "demeter": demeter,
    "flink": flink,
    "hpa": hpa,
    "spark-dynamic-allocation": spark_dynamic_allocation,
    "dstream": dstream,
    "static": static,
}
PEER_SETTINGS: dict[str, type] = {
    "heron": HeronSettings,
    "ds2": Ds2Settings,
    "conttune": ContTuneSettings,
    "demeter": DemeterSettings,
    "flink": FlinkSettings,
    "hpa": HpaSettings,
    "spark-dynamic-allocation": DynamicAllocationSettings,
    "dstream": DStreamSettings,
    "static": StaticSettings,
}

__all__ = [
    "PEERS",
    "PEER_SETTINGS",
    "ContTuneSettings",
    "DStreamSettings",
    "DemeterSettings",
    "Ds2Settings",
    "DynamicAllocationSettings",
    "FlinkSettings",
    "HeronSettings",
    "HpaSettings",
    "StaticSettings",
    "conttune",
    "demeter",
    "ds2",
    "dstream",
    "flink",
    "heron",
    "hpa",
    "spark_dynamic_allocation",
    "static",
]
