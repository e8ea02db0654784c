"""Rules for what a plug-in yields. A finding that breaks them is reported and left out before it can do harm."""

from __future__ import annotations

import math
from numbers import Real

from homeostat.core.actions import ALERT
from homeostat.core.configuration import Knob
from homeostat.core.evidence import Evidence
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.topology import Topology


def flaw(finding: object, expected: type, topology: Topology) -> str:
    """Return what is wrong with a finding; empty if nothing is."""
    if not isinstance(finding, expected):
        return f"it yields {type(finding).__name__} instead of {expected.__name__}"
    match finding:
        case Symptom():
            return _symptom(finding, topology)
        case Diagnosis():
            return _diagnosis(finding, topology)
        case Proposal():
            return _proposal(finding, topology)
    return ""


def _symptom(symptom: Symptom, topology: Topology) -> str:
    return (
        _name_problem(symptom.kind, "kind")
        or _place(symptom.component, topology)
        or _share(symptom.severity, "severity")
        or _evidence(symptom.evidence)
    )


def _diagnosis(diagnosis: Diagnosis, topology: Topology) -> str:
    return (
        _name_problem(diagnosis.cause, "cause")
        or _place(diagnosis.component, topology)
        or _share(diagnosis.probability, "probability")
        or _evidence(diagnosis.evidence)
    )


def _proposal(proposal: Proposal, topology: Topology) -> str:
    if not proposal.because:
        return f"{proposal.kind} does not name the diagnosis that it is for"
    numbers = {"benefit": proposal.benefit, "cost": proposal.cost}
    if proposal.prediction is not None:
        numbers["predicted gain"] = proposal.prediction.gain
    unreal = [name for name, value in numbers.items() if not _is_number(value) or not math.isfinite(value)]
    if unreal:
        return f"the {unreal[0]} of {proposal.kind} is {numbers[unreal[0]]!r}"
    for knob, value in proposal.patch.values.items():
        key: object = knob
        if not isinstance(key, Knob) or not _is_number(value) or math.isnan(value):
            return f"{proposal.kind} sets {knob!s} to {value!r}"
    if proposal.kind == ALERT and (proposal.patch or not proposal.message):
        return "an alert needs a message and no patch"
    return _name_problem(proposal.kind, "kind") or _place(proposal.component, topology)


def _name_problem(name: object, what: str) -> str:
    return "" if isinstance(name, str) and name else f"its {what} is {name!r}"


def _place(component: str, topology: Topology) -> str:
    return "" if not component or component in topology else f"there is no component {component!r}"


def _share(value: object, what: str) -> str:
    good = _is_number(value) and 0.0 <= float(value) <= 1.0  # type: ignore[arg-type]
    return "" if good else f"its {what} {value!r} is not between 0 and 1"


def _evidence(evidence: object) -> str:
    if not isinstance(evidence, Evidence):
        return f"its evidence is a {type(evidence).__name__}, not an Evidence"
    figures, _ = evidence.figures(), evidence.summary()  # an error in them is reported like any other
    odd = [name for name, value in figures.items() if not (isinstance(value, str) or _is_number(value))]
    return f"its evidence {odd[0]!r} is neither a number nor text" if odd else ""


def _is_number(value: object) -> bool:
    return isinstance(value, Real)
