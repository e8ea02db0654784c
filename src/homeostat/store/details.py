"""The figures behind a record that its sentence leaves out, as text."""

from __future__ import annotations

import math

from homeostat.core.causes import cause_of
from homeostat.core.records import (
    ActionContent,
    ChangeContent,
    DiagnosisContent,
    FindingContent,
    OutcomeContent,
    ReceiptContent,
    Record,
    RejectionContent,
    SymptomContent,
)
from homeostat.core.sentences import verdict_sentence
from homeostat.core.wording import SEPARATOR, listing, number, one_line, settings, span, words

# A factor of e^700 is the largest that a float can hold.
_LARGEST_EXPONENT = 700.0


def headline(record: Record) -> str:
    """The record's sentence. If there is none, because another program wrote the log, a sentence made from its
    content.
    """
    return one_line(record.text) or _from_content(record) or _extra(record)


def details(record: Record) -> list[str]:
    """What the sentence leaves out, one line for each group of figures."""
    content = record.content
    match content:
        case SymptomContent():
            lines = [_unless_in(record, content.symptom, "severity", content.severity), _figures(content)]
        case DiagnosisContent():
            name = _unless_in(record, content.cause, "probability", content.probability)
            lines = [name, _correction(content), _figures(content), _help(content)]
        case OutcomeContent():
            lines = judgement(content)
        case RejectionContent():
            lines = []
        case ActionContent():
            lines = [_settings(content), *parts(content), *steps(content)]
        case ChangeContent():
            lines = [_worth(content), *parts(content)]
        case _:
            lines = []
    return [line for line in (*lines, _extra(record)) if line]


def reason(record: Record) -> str:
    """Why a proposal was rejected or only advised."""
    content = record.content
    rejection = content.reason if isinstance(content, RejectionContent) else ""
    return one_line(rejection) or one_line(record.text) or "no reason given"


def steps(action: ActionContent) -> list[str]:
    count = len(action.steps)
    return [f"step {place} of {count}: {one_line(step)}" for place, step in enumerate(action.steps, 1)]


def receipt_line(record: Record, receipt: ReceiptContent, action: Record) -> str:
    after = f"after {span(record.at_s - action.at_s)}" if record.at_s > action.at_s else "at once"
    effect = f"took effect {after}" if receipt.applied else f"had no effect {after}"
    return ": ".join(filter(None, (f"{effect} ({one_line(record.id)})", one_line(receipt.detail))))


def prediction(change: ChangeContent) -> str:
    """What an action or a proposal is expected to do."""
    predicted = change.prediction
    if predicted is None:
        return ""
    touch_text = f"touches {', '.join(map(one_line, predicted.touched))}" if predicted.touched else ""
    return SEPARATOR.join(filter(None, (_gain(predicted.gain), one_line(predicted.text), touch_text)))


def parts(change: ChangeContent) -> list[str]:
    """The remedies of a plan, each with its cause and its own prediction, and what the plan does without."""
    lines = []
    for place, part in enumerate(change.parts, 1):
        knobs = settings(dict(part.patch), {})
        knobs += [f"replace {', '.join(map(one_line, part.retire))}"] if part.retire else []
        for_what = f"{one_line(part.cause)} at {one_line(part.component)}" if part.component else one_line(part.cause)
        predicted = "" if part.prediction is None else _gain(part.prediction.gain)
        head = f"part {place} of {len(change.parts)}: {one_line(part.action_kind)} for {for_what}"
        lines.append(SEPARATOR.join(filter(None, (f"{head}: {', '.join(knobs)}", predicted))))
    return [*lines, *map(one_line, change.left_out)]


def part_verdicts(outcome: OutcomeContent) -> list[str]:
    return [
        ": ".join(
            filter(
                None,
                (f"{one_line(p.action_kind)} for {one_line(p.cause)}", one_line(p.verdict), one_line(p.reason)),
            )
        )
        for p in outcome.parts
    ]


def judgement(outcome: OutcomeContent) -> list[str]:
    """The outcome of an action, compared with its prediction."""
    observed, predicted, error = outcome.observed_gain, outcome.predicted_gain, outcome.standard_error
    comparison = ""
    if not (math.isnan(observed) and math.isnan(predicted)):
        margin = "" if math.isnan(error) else f" ± {number(error)}"
        share = f" ({observed / predicted:.0%} of it)" if predicted > 0 and math.isfinite(observed / predicted) else ""
        comparison = f"observed gain {number(observed)}{margin}, {number(predicted)} predicted{share}"
    lines = (comparison, _model_error(outcome), _measurements(outcome), *part_verdicts(outcome))
    return [line for line in lines if line]


def _from_content(record: Record) -> str:
    content = record.content
    match content:
        case SymptomContent():
            return _name_and_figure(content.symptom, "severity", content.severity)
        case DiagnosisContent():
            return _name_and_figure(content.cause, "probability", content.probability)
        case ChangeContent():
            return _change(content)
        case OutcomeContent() if content.verdict:
            return one_line(verdict_sentence(content.action, content.verdict, content.reason))
        case RejectionContent():
            return one_line(content.reason)
    return ""


def _name_and_figure(name: str, measure: str, value: float) -> str:
    return ", ".join(filter(None, (one_line(name), "" if math.isnan(value) else f"{measure} {number(value)}")))


def _unless_in(record: Record, name: str, measure: str, value: float) -> str:
    """The name and its measure, unless the record's sentence says them."""
    name_and_measure = _name_and_figure(name, measure, value)
    return "" if name_and_measure in record.text else name_and_measure


def _correction(diagnosis: DiagnosisContent) -> str:
    """How the outcomes of earlier actions changed the probability, if the change is visible."""
    before, now = f"{diagnosis.before_outcomes:.2f}", f"{diagnosis.probability:.2f}"
    if math.isnan(diagnosis.before_outcomes) or before == now:
        return ""
    return f"probability {before} before the outcomes of earlier actions, {now} with them"


def _figures(content: FindingContent) -> str:
    figures = dict(content.figures)
    if content.workers and "workers" not in figures:
        figures["workers"] = ", ".join(content.workers)
    return listing(figures)


def _help(diagnosis: DiagnosisContent) -> str:
    """Whether more workers would help, unless the diagnosis leads to more workers anyway."""
    cause = cause_of(diagnosis.cause)
    silent = diagnosis.over or cause.workers_help or cause.harmless or cause.state_risk or not cause.fault
    return "" if silent else "more workers would not help"


def _worth(change: ChangeContent) -> str:
    figures = {"benefit": change.benefit, "cost": change.cost}
    return listing({name: value for name, value in figures.items() if not math.isnan(value)})


def _change(change: ChangeContent) -> str:
    return ": ".join(filter(None, (one_line(change.action_kind), _settings(change) or one_line(change.message))))


def _settings(change: ChangeContent) -> str:
    """Each knob with its value before, where that is known, and after."""
    previous = change.previous if isinstance(change, ActionContent) else {}
    parts = settings(dict(change.patch), dict(previous))
    parts += [f"replace {', '.join(map(one_line, change.retire))}"] if change.retire else []
    return ", ".join(parts)


def _gain(gain: float) -> str:
    if math.isnan(gain):
        return ""
    factor = math.exp(min(-gain, _LARGEST_EXPONENT))
    return f"gain {number(gain)}: batch time × {number(factor)} at equal load"


def _model_error(outcome: OutcomeContent) -> str:
    """How far the model has been off for this component, including this outcome."""
    if math.isnan(outcome.model_error):
        return ""
    return f"past predictions about it were off by {math.expm1(min(outcome.model_error, _LARGEST_EXPONENT)):.0%}"


def _measurements(outcome: OutcomeContent) -> str:
    if not (outcome.before or outcome.after):
        return ""
    return f"judged by {words(outcome.before)} measurements before it and {words(outcome.after)} after"


def _extra(record: Record) -> str:
    """Keys that this version does not know."""
    return listing(dict(getattr(record.content, "extra", {})))
