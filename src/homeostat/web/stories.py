"""Decisions in sentences: what was wrong, what was done, and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.records import (
    ACTION,
    ADVICE,
    ALERT,
    DIAGNOSIS,
    FAILURE,
    OPERATOR,
    ORDER,
    OUTCOME,
    PROPOSAL,
    RECEIPT,
    REJECTION,
    SYMPTOM,
    ActionContent,
    AdviceContent,
    ChangeContent,
    DiagnosisContent,
    FindingContent,
    OutcomeContent,
    ProposalContent,
    Record,
)
from homeostat.core.wording import moment, settings
from homeostat.store import details
from homeostat.store.protocol import Store
from homeostat.web.texts import as_sentence, clip

TELLING = (ACTION, ADVICE, REJECTION, ALERT, OPERATOR, FAILURE)
LONGEST_DETAIL = 1_000
MOST_STEPS = 12
MOST_ORDERS = 5
_STAGES = {
    SYMPTOM: "symptom",
    DIAGNOSIS: "diagnosis",
    PROPOSAL: "proposal",
    REJECTION: "rejected",
    ADVICE: "advised",
    ACTION: "action",
    RECEIPT: "effect",
    OUTCOME: "outcome",
    ALERT: "alert",
    OPERATOR: "operator",
    FAILURE: "failure",
}


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record as a line of a list. `text` is one sentence; every text is clipped and safe to show."""

    id: str
    kind: str
    stage: str
    at_s: float
    when: str
    component: str
    text: str


@dataclass(frozen=True, slots=True)
class StoryStep(RecordLine):
    """One record of a decision with the figures behind it."""

    details: tuple[str, ...]
    probability: float | None


@dataclass(frozen=True, slots=True)
class Story(RecordLine):
    """A decision. `problem` says what was wrong, `done` what was done, and `result` what the result was. `problem` and
    `result` can be empty. `steps` are all records behind it, from symptom to outcome.
    """

    problem: str
    done: str
    result: str
    verdict: str
    steps: tuple[StoryStep, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class StoryPage:
    """`next` is the offset of the next page, None at the end."""

    stories: tuple[Story, ...]
    next: int | None


def stories(store: Store, run: str, offset: int, limit: int) -> StoryPage:
    """One page of decisions, the newest first."""
    after = offset + limit
    records = store.records(run, kinds=TELLING, limit=after + 1, newest_first=True)
    page = tuple(story(store, run, record) for record in records[offset:after])
    return StoryPage(page, after if len(records) > after else None)


def story(store: Store, run: str, focus: Record) -> Story:
    chain = [record for record in store.chain(run, focus.id) if not _is_ending(record)]
    outcome = next((record for record in chain if record.kind == OUTCOME), None)
    verdict = outcome.content_as(OutcomeContent) if outcome is not None else None
    return Story(
        *_columns(focus),
        _problem(focus, chain),
        _action_text(focus),
        _sentence(outcome) if outcome is not None else _pending(focus, chain),
        clip(verdict.verdict) if verdict is not None else "",
        tuple(_step(record) for record in chain[:MOST_STEPS]),
        max(0, len(chain) - MOST_STEPS),
    )


def unanswered_orders(store: Store, run: str) -> tuple[RecordLine, ...]:
    """The newest commands that no manager has answered."""
    orders = store.records(run, kinds=(ORDER,), limit=MOST_ORDERS, newest_first=True)
    return tuple(line(order) for order in orders if len(store.chain(run, order.id)) == 1)


def line(record: Record) -> RecordLine:
    return RecordLine(*_columns(record))


def _columns(record: Record) -> tuple[str, str, str, float, str, str, str]:
    """The fields of a RecordLine."""
    return (
        clip(record.id),
        clip(record.kind),
        _STAGES.get(record.kind, clip(record.kind)),
        record.at_s,
        moment(record.at_s),
        clip(record.component),
        clip(record.text) or clip(details.headline(record)),
    )


def _problem(focus: Record, chain: Sequence[Record]) -> str:
    """The diagnosis behind the decision; without one, the symptom."""
    earlier = [record for record in chain if record.at_s <= focus.at_s and record.id != focus.id]
    for kind in (DIAGNOSIS, SYMPTOM):
        of_kind = [record for record in earlier if record.kind == kind]
        if of_kind:
            return _sentence(of_kind[-1])
    return ""


def _action_text(focus: Record) -> str:
    """An action with its settings before and after; of any other record its own sentence."""
    action = focus.content_as(ActionContent)
    changes = settings(dict(action.patch), dict(action.previous)) if action is not None else []
    if action is None or not changes:
        return _sentence(focus)
    replacements = [f"replace {worker}" for worker in action.retire]
    return as_sentence(clip(f"{action.action_kind}: {', '.join([*changes, *replacements])}"))


def _pending(focus: Record, chain: Sequence[Record]) -> str:
    if focus.kind != ACTION:
        return ""
    receipt = next((record for record in chain if record.kind == RECEIPT), None)
    if receipt is None:
        return "No effect has been observed yet."
    return f"{_sentence(receipt)} It has not been judged yet."


def _sentence(record: Record) -> str:
    """A name of a person or a component at the start keeps its own letters."""
    text = line(record).text
    is_sentence = record.kind == OPERATOR or (record.component and text.startswith(record.component))
    return f"{text.rstrip('.')}." if is_sentence else as_sentence(text)


def _is_ending(record: Record) -> bool:
    content = record.content
    return isinstance(content, FindingContent) and content.over


def _step(record: Record) -> StoryStep:
    lines = tuple(clip(each, LONGEST_DETAIL) for each in _details(record) if each)
    return StoryStep(*_columns(record), lines, _probability(record))


def _details(record: Record) -> list[str]:
    """The prediction of an action comes first, because the outcome is judged against it."""
    change = record.content_as(ChangeContent)
    predicted = [details.prediction(change)] if change is not None else []
    because = [details.reason(record)] if record.kind == REJECTION else []
    return [*predicted, *because, *details.details(record)]


def _probability(record: Record) -> float | None:
    content = record.content
    if not isinstance(content, DiagnosisContent | ProposalContent | AdviceContent | ActionContent):
        return None
    return content.probability if 0 <= content.probability <= 1 and math.isfinite(content.probability) else None
