"""The log of everything that was seen, decided and done: one record per event, one dataclass for each kind's content.

Whoever reads the log reads fields of these classes. The keys under which they are stored are known only here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

from homeostat.core.change_parts import PartContent, PartOutcomeContent, PredictionContent, Values
from homeostat.core.configuration import Configuration, Knob, Value
from homeostat.core.record_json import JSON, from_json, json_field, to_json

# 1: contents were untyped mappings. 2: these classes. A log of version 1 is read by the same keys.
SCHEMA_VERSION = 2

SYMPTOM = "symptom"
DIAGNOSIS = "diagnosis"
PROPOSAL = "proposal"
REJECTION = "rejection"
ACTION = "action"
RECEIPT = "receipt"
OUTCOME = "outcome"
ALERT = "alert"
ADVICE = "advice"
ORDER = "order"
OPERATOR = "operator"
FAILURE = "failure"
ENGINE = "engine"
BATCH = "batch"
MINUTE = "minute"
HOUR = "hour"
# There is one for each batch, minute or hour: too many for a list that people read.
FLOW_KINDS = (BATCH, MINUTE, HOUR)
DELIVERY = "delivery"

# Where a query finds in a stored receipt whether the action took effect.
APPLIED_PATH = "$.applied"
_Content = TypeVar("_Content", bound="Content")
Figures = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a record, apart from its time, its component and the records that it came from."""

    KIND: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return self.KIND

    def to_json(self) -> dict[str, JSON]:
        return to_json(self, SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingContent(Content):
    """What symptoms and diagnoses have in common: the figures behind them, the instances and workers that they are
    about, and whether and after how long they ended."""

    figures: Figures = field(default_factory=dict, metadata={"key": "evidence"})
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    over: bool = False
    lasted_s: float = math.nan
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SymptomContent(FindingContent):
    """A symptom that began or, if it is `over`, ended after `lasted_s`."""

    KIND: ClassVar[str] = SYMPTOM
    symptom: str = ""
    severity: float = math.nan


@dataclass(frozen=True, slots=True)
class DiagnosisContent(FindingContent):
    """A diagnosed cause or, if it is `over`, one that has ended after `lasted_s`.

    `before_outcomes` is the probability before the outcomes of earlier actions corrected it; NaN if they did not.
    """

    KIND: ClassVar[str] = DIAGNOSIS
    cause: str = ""
    probability: float = math.nan
    before_outcomes: float = math.nan


@dataclass(frozen=True, slots=True)
class ChangeContent(Content):
    """What a proposal, a piece of advice and an action have in common: a change, its cause and its prediction.

    A plan has `parts`, and `left_out` names the remedies that it leaves out. Other changes have neither.
    """

    action_kind: str = json_field("kind", "")
    cause: str = ""
    probability: float = math.nan
    patch: Values = field(default_factory=dict)
    retire: tuple[str, ...] = ()
    benefit: float = math.nan
    cost: float = math.nan
    prediction: PredictionContent | None = None
    message: str = ""
    parts: tuple[PartContent, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposalContent(ChangeContent):
    KIND: ClassVar[str] = PROPOSAL
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdviceContent(ChangeContent):
    """A change that was not made because the loop only advises."""

    KIND: ClassVar[str] = ADVICE
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActionContent(ChangeContent):
    """A change that was ordered. `previous` holds the knobs of the patch as they were."""

    KIND: ClassVar[str] = ACTION
    previous: Values = field(default_factory=dict, metadata={"key": "from"})
    desired: Values = field(default_factory=dict)
    retired: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    time_limit_s: float = 60.0
    extra: Figures = field(default_factory=dict)

    @property
    def desired_configuration(self) -> Configuration:
        return Configuration.from_json(dict(self.desired), self.retired)

    @property
    def grows(self) -> bool:
        """Whether it raises a knob above what it was."""
        return any(value > self.previous.get(knob, value) for knob, value in self.patch.items())


@dataclass(frozen=True, slots=True)
class RejectionContent(Content):
    """Why a proposal was not carried out, or a person's command refused."""

    KIND: ClassVar[str] = REJECTION
    reason: str
    action_kind: str = json_field("kind", "")
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReceiptContent(Content):
    """What was observed after an action was ordered."""

    KIND: ClassVar[str] = RECEIPT
    action: str
    applied: bool
    detail: str = ""
    observed: Values = field(default_factory=dict)
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutcomeContent(Content):
    """How an action or a piece of advice turned out. `before` and `after` count the measurements it is judged on, and
    `parts` are the verdicts on the remedies of a plan."""

    KIND: ClassVar[str] = OUTCOME
    action: str
    verdict: str = ""
    reason: str = ""
    observed_gain: float = math.nan
    predicted_gain: float = math.nan
    standard_error: float = math.nan
    before: int = 0
    after: int = 0
    model_error: float = math.nan
    parts: tuple[PartOutcomeContent, ...] = ()
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlertContent(Content):
    """A message to a person. The record's text is the message."""

    KIND: ClassVar[str] = ALERT
    cause: str
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderContent(Content):
    """What a person asked a running manager to do. `role` is the person's role, `origin` where the order came from."""

    KIND: ClassVar[str] = ORDER
    command: str
    by: str = ""
    why: str = ""
    target: str = ""
    values: Values = field(default_factory=dict)
    role: str = ""
    origin: str = ""
    extra: Figures = field(default_factory=dict)

    @property
    def knobs(self) -> dict[Knob, Value]:
        return {Knob.parse(name): value for name, value in self.values.items() if math.isfinite(value)}


@dataclass(frozen=True, slots=True)
class OperatorContent(Content):
    """A person's command that the manager has accepted."""

    KIND: ClassVar[str] = OPERATOR
    command: str
    by: str = ""
    why: str = ""
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureContent(Content):
    """A part of Homeostat failed and was skipped."""

    KIND: ClassVar[str] = FAILURE
    where: str = ""
    error: str = ""
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineContent(Content):
    """The configuration that the engine runs, at the start and whenever it changes from outside."""

    KIND: ClassVar[str] = ENGINE
    configuration: Values = field(default_factory=dict)
    reason: str = ""
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowContent(Content):
    """What flowed in a batch, or in all batches of a minute or an hour together. NaN is unknown.

    If `pending_rows` is an estimate, at most `pending_at_most` rows wait; otherwise that is NaN.
    """

    rows: float
    seconds: float
    trigger_s: float
    arrival_per_s: float
    pending_rows: float
    span_s: float
    batch: int = 0
    executors: int = 0
    workers: int = 0
    watermark_gap_s: float = math.nan
    state_rows: float = math.nan
    state_bytes: float = math.nan
    phases_s: Mapping[str, float] = field(default_factory=dict)
    arrivals_per_s: Mapping[str, float] = field(default_factory=dict)
    tasks_left_out: int = 0
    batches: int = 1
    pending_at_most: float = math.nan
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchContent(FlowContent):
    """One batch, or one interval of a dataflow."""

    KIND: ClassVar[str] = BATCH


@dataclass(frozen=True, slots=True)
class MinuteContent(FlowContent):
    """The batches that ended within one minute."""

    KIND: ClassVar[str] = MINUTE


@dataclass(frozen=True, slots=True)
class HourContent(FlowContent):
    """The batches that ended within one hour."""

    KIND: ClassVar[str] = HOUR


@dataclass(frozen=True, slots=True)
class DeliveryContent(Content):
    """The delivery of alerts to a webhook that did not accept them at once. `state` is `retrying`, `sent`,
    `given up` or `dropped`."""

    KIND: ClassVar[str] = DELIVERY
    state: str
    host: str = ""
    alerts: int = 0
    attempts: int = 0
    error: str = ""
    extra: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OtherContent(Content):
    """A record of a kind that this version does not know. Its whole content is kept and shown."""

    other_kind: str = ""
    extra: Figures = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.other_kind

    def to_json(self) -> dict[str, JSON]:
        return dict(self.extra)


CONTENTS: dict[str, type[Content]] = {
    content.KIND: content
    for content in (
        SymptomContent,
        DiagnosisContent,
        ProposalContent,
        RejectionContent,
        ActionContent,
        ReceiptContent,
        OutcomeContent,
        AlertContent,
        AdviceContent,
        OrderContent,
        OperatorContent,
        FailureContent,
        EngineContent,
        BatchContent,
        MinuteContent,
        HourContent,
        DeliveryContent,
    )
}
KINDS = tuple(CONTENTS)
LISTED_KINDS = tuple(kind for kind in KINDS if kind not in FLOW_KINDS)


def content_of(kind: str, body: Mapping[str, JSON]) -> Content:
    """The typed content of a stored body, of this version or an earlier one."""
    content_type = CONTENTS.get(kind)
    return OtherContent(kind, dict(body)) if content_type is None else from_json(content_type, body)


@dataclass(frozen=True)
class Record:
    """One line of the log. `because` holds the ids this record came from, `body` its content as it is stored."""

    id: str
    kind: str
    at_s: float
    text: str
    component: str = ""
    because: tuple[str, ...] = ()
    body: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def of(
        cls, id: str, at_s: float, content: Content, text: str, component: str = "", because: tuple[str, ...] = ()
    ) -> Record:
        return cls(id, content.kind, at_s, text, component, because, content.to_json())

    @cached_property
    def content(self) -> Content:
        return content_of(self.kind, self.body)

    def content_as(self, content_type: type[_Content]) -> _Content | None:
        content = self.content
        return content if isinstance(content, content_type) else None


def with_content(records: Iterable[Record], content_type: type[_Content]) -> Iterator[tuple[Record, _Content]]:
    """The records of one kind, each with its content."""
    for record in records:
        content = record.content_as(content_type)
        if content is not None:
            yield record, content
