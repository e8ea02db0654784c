"""The sentences of the log: one for each record, made from its content.

The sentence is stored with the record, so that the terminal, the dashboard and an alert show the same text.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeostat.core.causes import cause_of
from homeostat.core.configuration import Knob, Patch, Restart, SetLive, Step, Value
from homeostat.core.events import Operator
from homeostat.core.findings import Diagnosis, Outcome, Proposal, Symptom
from homeostat.core.symptoms import LOST_TIME, UNKNOWN, kind_and_subject
from homeostat.core.wording import knob_value, whole_span

APPLICATION = "the application"
_VERDICTS = {
    "helped": "{action} helped",
    "harmful": "{action} made things worse",
    "failed": "{action} did not help",
    "unclear": "Could not tell whether {action} helped",
    "untestable": "{action} changed too little to be judged",
    "confounded": "Could not tell whether {action} helped",
    "shrunk": "{action} saved resources",
    "superseded": "{action} was not judged",
    "right": "{action} was right",
    "not needed": "{action} was not needed",
}


def symptom_sentence(symptom: Symptom) -> str:
    where = symptom.component or APPLICATION
    evidence = symptom.evidence
    headline = evidence.headline.format(where=where) if evidence.headline else f"{symptom.kind} at {where}"
    summary = evidence.summary()
    return f"{headline}: {summary}" if summary else headline


def diagnosis_sentence(diagnosis: Diagnosis) -> str:
    sentence = cause_of(diagnosis.cause).sentence.format(where=diagnosis.component or APPLICATION)
    return f"{sentence} ({diagnosis.cause}, probability {diagnosis.probability:.2f})"


# What the log calls an ended symptom whose name has a subject, such as `lost-time:sink-bound`.
_ABOUT = {LOST_TIME: "time lost to {}", UNKNOWN: "the gap in the metrics of {}"}


def ended_sentence(name: str, lasted_s: float) -> str:
    kind, subject = kind_and_subject(name)
    what = _ABOUT[kind].format(subject) if subject and kind in _ABOUT else name
    return f"{what} ended after {whole_span(lasted_s)}"


def change_sentence(proposal: Proposal) -> str:
    """`scale-up: executors.app = 4`. A plan names each of its parts, and the remedies that it leaves out."""
    if not proposal.parts:
        return f"{proposal.kind}: {patch_words(proposal.patch) or proposal.message}"
    parts = "; ".join(f"{part.kind}: {patch_words(part.patch)}" for part in proposal.parts)
    return ". ".join([f"{proposal.kind}: {parts}", *proposal.left_out])


def patch_words(patch: Patch) -> str:
    parts = [set_words(knob, value) for knob, value in sorted(patch.values.items())]
    parts += [f"replace {worker}" for worker in sorted(patch.retire)]
    return ", ".join(parts)


def set_words(knob: Knob, value: Value) -> str:
    return f"{knob} = {knob_value(value)}"


def advice_sentence(proposal: Proposal) -> str:
    return f"Homeostat would {change_sentence(proposal)}"


def rejection_sentence(reason: str) -> str:
    return f"Waiting: {reason}"


def refusal_sentence(reason: str) -> str:
    return f"Not done: {reason}"


def receipt_sentence(action: str, applied: bool, detail: str = "") -> str:
    effect = f"{action} took effect" if applied else f"{action} did not take effect"
    return f"{effect}: {detail}" if detail and not applied else effect


def outcome_sentence(action: str, outcome: Outcome) -> str:
    return verdict_sentence(action, outcome.verdict, outcome.reason)


def part_sentence(part: Proposal, reason: str) -> str:
    """The sentence about a part of a plan whose outcome differs from that of the plan."""
    return f"Its part {part.kind} of {part.component or APPLICATION} turned out differently: {reason}" if reason else ""


def verdict_sentence(action: str, verdict: str, reason: str = "") -> str:
    sentence = _VERDICTS.get(verdict, "{action}: " + verdict).format(action=action)
    return f"{sentence}: {reason}" if reason else sentence


def engine_sentence(values: Iterable[tuple[str, Value]], reason: str) -> str:
    runs = ", ".join(f"{knob} {value:g}" for knob, value in values) or "no settings"
    return f"the engine runs with {runs} ({reason})"


def operator_sentence(event: Operator) -> str:
    why = f" ({event.why})" if event.why else ""
    return f"{event.by}: {event.command} {event.target}".rstrip() + why


def failure_sentence(where: str, error: str) -> str:
    return f"{where} failed and was skipped: {error}"


def own_failure_sentence(where: str, error: str) -> str:
    return f"A part of Homeostat failed, {where}: {error}"


def step_words(step: Step) -> str:
    if isinstance(step, SetLive | Restart):
        changes = ", ".join(f"{knob} = {value:g}" for knob, value in sorted(step.values.items()))
        return f"{'set' if isinstance(step, SetLive) else 'restart with'} {changes}"
    return "replace " + ", ".join(sorted(step.workers))
