"""What a policy does in a scenario: actions, times, outcomes, costs, and a digest of every finding.

Numbers are compared to nine digits, and rounded to six in the digests: the last digits of an exponential or a logarithm
depend on the processor.

`tests/recorded/trajectories.jsonl.gz` holds what the loop did when it was last recorded. A change that is meant to
leave decisions alone must reproduce it. After a change that is meant to alter them, look at what differs, then record
again: `PYTHONPATH=tests python -m support.reference_runs`, which takes some minutes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

from homeostat.cli import scenario_arguments
from homeostat.core.errors import HomeostatError
from homeostat.core.records import (
    ActionContent,
    AlertContent,
    BatchContent,
    DiagnosisContent,
    OutcomeContent,
    ProposalContent,
    ReceiptContent,
    Record,
    RejectionContent,
    SymptomContent,
    with_content,
)
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore
from support.paths import RECORDED

REFERENCE = RECORDED / "trajectories.jsonl.gz"


def reference_lines() -> Iterator[dict[str, Any]]:
    with gzip.open(REFERENCE, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def trajectory(scenario_name: str, policy_name: str, seed: int) -> dict[str, Any]:
    """The same fields as a line of the reference."""
    head = {"scenario": scenario_name, "policy": policy_name, "seed": seed}
    try:
        scenario = catalogue.load(scenario_name)
        policy = scenario_arguments.policy_for(scenario, policy_name, {}, scenario_name)
        store = MemoryStore()
        result = simulate(scenario, policy, seed=seed, store=store, run="r")
    except HomeostatError:
        return {**head, "refused": True}
    records = store.records("r")
    fields = {
        **head,
        "summary": _summary(result),
        "actions": _actions(records, result),
        "outcomes": _outcomes(records),
        "alerts": [
            {"at_s": record.at_s, "cause": alert.cause, "component": record.component}
            for record, alert in with_content(records, AlertContent)
        ],
        "records": len(records),
        "thoughts": _digest(records),
        "truth": _truth(result),
    }
    return json.loads(json.dumps(fields))  # type: ignore[no-any-return]


def differences(now: Any, reference: Any, place: str = "") -> list[str]:
    """Where the two differ. Unknown numbers are equal."""
    match now, reference:
        case dict(), dict() if now.keys() == reference.keys():
            return [each for key in now for each in differences(now[key], reference[key], f"{place}.{key}")]
        case list(), list() if len(now) == len(reference):
            pairs = enumerate(zip(now, reference, strict=True))
            return [each for n, pair in pairs for each in differences(*pair, f"{place}[{n}]")]
        case (int() | float(), int() | float()) if _close(now, reference):
            return []
    return [] if now == reference else [f"{place}: {now} instead of {reference}"]


def _close(now: float, reference: float) -> bool:
    return math.isclose(now, reference, rel_tol=1e-9) or (math.isnan(now) and math.isnan(reference))


def _rounded(value: Any) -> Any:
    """The same value with six significant digits in every number."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case tuple() | list():
            return [_rounded(each) for each in value]
    return value


def _summary(result: RunResult) -> dict[str, Any]:
    left_out = ("trajectory", "scenario", "policy", "seed")
    summary = {name: value for name, value in result.as_json().items() if name not in left_out}
    summary["violation_exact_s"] = sum(sample.span_s for sample in result.truth if not sample.healthy)
    summary["instance_seconds_exact"] = sum(sample.span_s * result._cost(sample.values) for sample in result.truth)
    summary["healthy_since_exact_s"] = result.healthy_since_s
    return summary


def _actions(records: list[Record], result: RunResult) -> list[dict[str, Any]]:
    effects = {action.id: action for action in result.trajectory}
    actions = []
    for record, content in with_content(records, ActionContent):
        effect = effects.get(record.id)
        actions.append(
            {
                "id": record.id,
                "at_s": record.at_s,
                "kind": content.action_kind,
                "cause": content.cause,
                "component": record.component,
                "patch": dict(sorted(content.patch.items())),
                "retire": list(content.retire),
                "probability": content.probability,
                "benefit": content.benefit,
                "cost": content.cost,
                "gain": content.prediction.gain if content.prediction else None,
                "desired": dict(sorted(content.desired.items())),
                "applied_s": effect.applied_s if effect else None,
                "parallelism": dict(effect.parallelism) if effect else None,
                "needless": effect.needless if effect else None,
            }
        )
    return actions


def _outcomes(records: list[Record]) -> list[dict[str, Any]]:
    numbers = ("observed_gain", "predicted_gain", "standard_error")
    return [
        {
            "at_s": record.at_s,
            "action": content.action,
            "verdict": content.verdict,
            **{name: getattr(content, name) for name in numbers},
            "before": content.before,
            "after": content.after,
            "model_error": _or_none(content.model_error),
        }
        for record, content in with_content(records, OutcomeContent)
    ]


def _digest(records: list[Record]) -> str:
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(_rounded(_finding(record))).encode())
    return digest.hexdigest()


def _finding(record: Record) -> tuple[Any, ...]:
    content = record.content
    match content:
        case SymptomContent():
            instances = list(content.instances) or None
            severity = _or_none(content.severity)
            symptom = (content.symptom, record.component, severity, None, instances)
            return (record.id, "s", record.at_s, *(symptom if not content.over else _end_of(record, None)))
        case DiagnosisContent():
            instances, workers = list(content.instances), list(content.workers)
            probability = _or_none(content.probability)
            diagnosis = (content.cause, record.component, probability, None, instances, workers)
            return (record.id, "d", record.at_s, *(diagnosis if not content.over else _end_of(record, None, None)))
        case ProposalContent():
            patch = sorted(content.patch.items())
            change = (content.action_kind, record.component, patch, content.benefit, content.cost)
            return (record.id, "p", record.at_s, *change)
        case RejectionContent():
            return (record.id, "r", record.at_s, record.component, content.action_kind or None)
        case ReceiptContent():
            return (record.id, "c", record.at_s, content.action, content.applied)
        case BatchContent():
            return (record.id, "b", record.at_s)
    return (record.id, record.kind[0], record.at_s)


def _end_of(record: Record, *rest: None) -> tuple[Any, ...]:
    """The reference names neither what ended nor how sure it was."""
    return (None, record.component, None, True, *rest)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _truth(result: RunResult) -> str:
    samples = [
        (
            sample.at_s,
            sample.span_s,
            sample.healthy,
            sorted((str(knob), value) for knob, value in sample.values.items()),
        )
        for sample in result.truth
    ]
    return hashlib.sha256(repr(_rounded(samples)).encode()).hexdigest()


def record_again() -> None:
    """Play every run of the reference again and keep what the loop does now."""
    lines = [trajectory(line["scenario"], line["policy"], line["seed"]) for line in reference_lines()]
    with gzip.GzipFile(REFERENCE, "wb", mtime=0) as file:
        for line in lines:
            file.write(json.dumps(line, sort_keys=True).encode() + b"\n")


if __name__ == "__main__":
    record_again()
