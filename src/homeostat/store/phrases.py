"""What each kind of record says, read from its body. A key that nothing here knows is still shown."""

from __future__ import annotations

import math
from collections.abc import Mapping

from homeostat.core.record_json import JSON
from homeostat.core.records import ACTION, ADVICE, DIAGNOSIS, OUTCOME, PROPOSAL, RECEIPT, REJECTION, SYMPTOM, Record
from homeostat.core.wording import SEPARATOR, listing, number, one_line, settings, span, words

_GAINS = ("observed_gain", "predicted_gain", "standard_error")
_TOLD = {
    SYMPTOM: ("kind", "severity", "evidence"),
    DIAGNOSIS: ("cause", "probability", "evidence"),
    PROPOSAL: ("kind", "patch", "from", "prediction"),
    ACTION: ("kind", "patch", "from", "prediction", "steps"),
    RECEIPT: ("action", "applied", "detail"),
    OUTCOME: ("action", "verdict", "reason", "before", "after", "model_error", *_GAINS),
    REJECTION: ("reason",),
    ADVICE: ("reason",),
}
_STEP_NAMES = ("step", "kind", "type", "name")


def headline(record: Record) -> str:
    """The record in a few words, from its body; its text, if that says nothing."""
    phrase = _HEADLINES[record.kind](record.body) if record.kind in _HEADLINES else ""
    return phrase or one_line(record.text) or listing(record.body)


def evidence(record: Record) -> list[str]:
    """The numbers a symptom or a diagnosis rests on."""
    return [*_facts(record.body.get("evidence")), *rest(record)]


def rest(record: Record) -> list[str]:
    """Whatever of the body has not been told elsewhere."""
    told = _TOLD.get(record.kind, ())
    untold = {key: value for key, value in record.body.items() if key not in told}
    return [listing(untold)] if untold else []


def reason(record: Record) -> str:
    """Why a proposal was rejected or only advised."""
    why = words(record.body["reason"]) if record.body.get("reason") else one_line(record.text)
    return SEPARATOR.join([why or "no reason given", *rest(record)])


def steps(action: Record) -> list[str]:
    listed = action.body.get("steps")
    if not isinstance(listed, list):
        return _facts(listed)
    told = [_step(step, _mapping(action.body.get("from"))) for step in listed]
    return [f"step {place} of {len(told)}: {step}" for place, step in enumerate(told, 1)]


def receipt(record: Record, action: Record) -> list[str]:
    after = f"after {span(record.at_s - action.at_s)}" if record.at_s > action.at_s else "at once"
    effect = f"took effect {after}" if record.body.get("applied") is True else f"had no effect {after}"
    detail = _facts(record.body.get("detail")) or [one_line(record.text)]
    return [": ".join(filter(None, [f"{effect} ({one_line(record.id)})", *detail])), *rest(record)]


def prediction(maker: Record) -> str:
    """What an action or a proposal says it will do."""
    predicted = maker.body.get("prediction")
    if not isinstance(predicted, dict):
        return "" if predicted is None else words(predicted)
    others = {key: value for key, value in predicted.items() if key not in ("gain", "text")}
    text = words(predicted["text"]) if predicted.get("text") else ""
    return SEPARATOR.join(filter(None, (_gain(predicted.get("gain")), text, listing(others))))


def judgement(outcome: Record) -> list[str]:
    """What came of an action, against what it had predicted."""
    observed, predicted, error = (_real(outcome.body.get(key)) for key in _GAINS)
    compared = ""
    if not (math.isnan(observed) and math.isnan(predicted)):
        margin = "" if math.isnan(error) else f" ± {number(error)}"
        compared = f"observed gain {number(observed)}{margin} against {number(predicted)} predicted"
        if math.isfinite(observed) and math.isfinite(predicted) and predicted != 0:
            compared += f" ({observed / predicted * 100:.0f} % of it)"
    why = _facts(outcome.body.get("reason"))
    return [line for line in (compared, _trusted(outcome.body), _sample(outcome.body), *why, *rest(outcome)) if line]


def _trusted(body: Mapping[str, JSON]) -> str:
    """How far the model has been off about this component, up to and with this judgement."""
    error = _real(body.get("model_error"))
    return "" if math.isnan(error) else f"predictions about it have been off by {math.expm1(min(error, 700.0)):.0%}"


def _symptom(body: Mapping[str, JSON]) -> str:
    severity = _real(body.get("severity"))
    kind = words(body["kind"]) if body.get("kind") else ""
    return ", ".join(filter(None, (kind, "" if math.isnan(severity) else f"severity {number(severity)}")))


def _diagnosis(body: Mapping[str, JSON]) -> str:
    if not body.get("cause"):
        return ""
    probability = _real(body.get("probability"))
    return words(body["cause"]) + ("" if math.isnan(probability) else f", probability {number(probability)}")


def _change(body: Mapping[str, JSON]) -> str:
    patch = ", ".join(settings(_mapping(body.get("patch")), _mapping(body.get("from"))))
    kind = words(body["kind"]) if body.get("kind") else ""
    return ": ".join(filter(None, (kind, patch)))


def _verdict(body: Mapping[str, JSON]) -> str:
    if not body.get("verdict"):
        return ""
    of = f" ({words(body['action'])})" if body.get("action") else ""
    return words(body["verdict"]) + of


def _sample(body: Mapping[str, JSON]) -> str:
    before, after = (words(body.get(key, 0)) for key in ("before", "after"))
    known = body.get("before") or body.get("after")
    return f"judged on {before} measurements before it and {after} after" if known else ""


def _reason(body: Mapping[str, JSON]) -> str:
    return words(body["reason"]) if body.get("reason") else ""


_HEADLINES = {
    SYMPTOM: _symptom,
    DIAGNOSIS: _diagnosis,
    PROPOSAL: _change,
    ACTION: _change,
    OUTCOME: _verdict,
    REJECTION: _reason,
}


def _step(step: JSON, before: Mapping[str, JSON]) -> str:
    """A step is a text, or a mapping with its name and the knobs it sets, nested or not."""
    if not isinstance(step, dict):
        return words(step)
    names = [words(step[key]) for key in _STEP_NAMES if key in step]
    changes = []
    for key, value in step.items():
        if isinstance(value, dict) and key != "values":
            names.append(one_line(key.replace("_", " ")))
            changes += settings(value, before)
        elif key not in _STEP_NAMES:
            changes += settings({key: value}, before)
    return " ".join(filter(None, (*names, ", ".join(changes))))


def _gain(gain: JSON) -> str:
    value = _real(gain)
    if math.isnan(value):
        return ""
    return f"gain {number(value)}: batch time × {number(math.exp(min(-value, 700.0)))} at equal load"


def _facts(value: JSON) -> list[str]:
    if value is None or value in ("", {}, []):
        return []
    return [listing(value) if isinstance(value, dict) else words(value)]


def _mapping(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}


def _real(value: JSON) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if isinstance(value, float) or abs(value) < 1e300 else math.nan
