"""The components that a fault of tasks hits if it does not name one."""

from __future__ import annotations

from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec

SOURCE_FAULTS = ("slow-fetch", "small-files")
STATE_FAULTS = ("state-store", "growing-state", "stalled-watermark", "late-rows")
SHUFFLE_FAULTS = ("slow-network",)


def concerns(fault: FaultSpec, component: ComponentSpec) -> bool:
    """Whether a fault of tasks hits this component."""
    if fault.component:
        return fault.component == component.name
    if fault.kind in SOURCE_FAULTS:
        return component.kind == "source"
    if fault.kind in STATE_FAULTS:
        return component.stateful and component.kind == "operator"
    return fault.kind not in SHUFFLE_FAULTS or component.kind == "operator"
