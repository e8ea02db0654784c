"""What each page shows: one dataclass for each template, which its JSON twin holds field by field.

A template gets the fields of its context and of `PageFrame`, and nothing else. Fields that only the JSON twin has are
named in `JSON_ONLY`. tests/web/test_page_contexts.py compares both with what the templates read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.errors import HomeostatError
from homeostat.log_views.audit import AuditLine
from homeostat.store.present import Present, TimeMatrix
from homeostat.web.conditions import Condition
from homeostat.web.stories import RecordLine, Story
from homeostat.web.summary import ApplicationRuns, RunSummary
from homeostat.web.token_file import Person


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Around every page: who reads it, the page's own address, and the address of its JSON twin (both may be empty)."""

    person: Person | None = None
    here: str = ""
    twin: str = ""


@dataclass(frozen=True, slots=True)
class IndexContext:
    """index.html: one page of the runs by application, the newest first; `next` is the offset of the next page."""

    applications: tuple[ApplicationRuns, ...] = ()
    total: int = 0
    next: int | None = None


@dataclass(frozen=True, slots=True)
class QueryContext:
    """query.html: one run. `answer` says why nothing is happening, `span` how much history the charts show at first;
    `catching_up` says when a backlog will be gone; `unanswered` are commands that no manager has answered;
    `undelivered` says which alerts did not reach the webhook."""

    summary: RunSummary
    present: Present
    matrices: Mapping[str, TimeMatrix]
    span: str
    answer: str
    catching_up: str
    conditions: tuple[Condition, ...]
    unanswered: tuple[RecordLine, ...]
    undelivered: str
    stories: tuple[Story, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class StoriesContext:
    """stories.html: one page of decisions, the newest first."""

    run: str
    stories: tuple[Story, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class LogContext:
    """log.html: one page of records, the newest first; `kind` is empty unless only one kind is listed."""

    run: str
    kind: str
    records: tuple[RecordLine, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class AuditContext:
    """audit.html: one page of who did what, the newest first."""

    lines: tuple[AuditLine, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class RecordContext:
    """record.html: one record. `text` explains it as `homeostat explain` does; `record` is all of it, as stored."""

    run: str
    record: Mapping[str, Any]
    line: RecordLine
    text: str
    chain: tuple[RecordLine, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Slider:
    """Something that can be changed on the what-if page: from `low` to `high`; it is `now` and was set to `value`.
    `knob` marks a knob that only the page's script can set."""

    name: str
    label: str
    low: float
    high: float
    now: float
    value: float
    unit: str = ""
    step: int | str = 1
    knob: bool = False


@dataclass(frozen=True, slots=True)
class PerformanceContext:
    """performance.html: a prediction, as `homeostat whatif --json` tells it, and the curves over the rate. Where there
    is none, `usable` is False and `reason` says what is missing in a full sentence."""

    run: str
    usable: bool = True
    reason: str = ""
    at_s: float | None = None
    sliders: tuple[Slider, ...] = ()
    now: Mapping[str, Any] | None = None
    then: Mapping[str, Any] | None = None
    curve: Mapping[str, Any] | None = None
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlansContext:
    """plans.html: a plan, as `homeostat plan --json` tells it, with one page of its candidates. `present` is the
    present configuration, `asked` the question. Without a plan, `usable` is False and `reason` says what is missing."""

    run: str
    usable: bool = True
    reason: str = ""
    at_s: float | None = None
    load: str = ""
    rate_per_s: float | None = None
    confidence: float | None = None
    horizon_s: float | None = None
    holds: bool = False
    change: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    best: Mapping[str, Any] | None = None
    candidates: Sequence[Mapping[str, Any]] = ()
    refused: Sequence[Mapping[str, Any]] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    present: Mapping[str, float] = field(default_factory=dict)
    total: int = 0
    next: int | None = None


@dataclass(frozen=True, slots=True)
class SignInContext:
    """sign-in.html: `next` is the page to return to, `wrong` whether the last token was not accepted."""

    next: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """error.html: a refusal."""

    status: int
    error: HomeostatError


@dataclass(frozen=True, slots=True)
class ReportContext:
    """report.html: a run as one file. `facts` are its figures in words; `series` is the JSON of the charts; `styles`,
    `scripts` and the content-security `policy` that allows only them are part of the file."""

    about: RunSummary
    present: Present
    facts: Mapping[str, str]
    stories: tuple[Story, ...]
    series: str
    styles: Sequence[str]
    scripts: Sequence[str]
    policy: str


TEMPLATES: Mapping[str, type] = {
    "index.html": IndexContext,
    "query.html": QueryContext,
    "stories.html": StoriesContext,
    "log.html": LogContext,
    "audit.html": AuditContext,
    "record.html": RecordContext,
    "performance.html": PerformanceContext,
    "plans.html": PlansContext,
    "sign-in.html": SignInContext,
    "error.html": ErrorContext,
    "report.html": ReportContext,
}
JSON_ONLY: Mapping[str, frozenset[str]] = {
    "record.html": frozenset({"record"}),
    "plans.html": frozenset({"confidence", "horizon_s", "errors", "refused"}),
}
