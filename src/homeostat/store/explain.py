"""Explains a record: what was observed, diagnosed, proposed and done around it, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from homeostat.core.errors import HomeostatError
from homeostat.core.records import (
    ACTION,
    ADVICE,
    ALERT,
    DIAGNOSIS,
    OUTCOME,
    PROPOSAL,
    REJECTION,
    SYMPTOM,
    ChangeContent,
    OutcomeContent,
    ReceiptContent,
    Record,
    with_content,
)
from homeostat.core.wording import SEPARATOR, moment, one_line
from homeostat.store.details import details, headline, prediction, reason, receipt_line
from homeostat.store.protocol import Store

# The most entries in a section. Otherwise, a symptom that lasts for days would fill the screen.
LONGEST_SECTION = 20
# How many of the newest ids are compared with a misspelt one.
IDS_COMPARED = 5_000
_FATES = (REJECTION, ADVICE, ALERT, ACTION)
_FATE_WORDS = {REJECTION: "rejected", ADVICE: "advised", ALERT: "sent to a person"}


class LogLine(NamedTuple):
    """A row of `homeostat log`."""

    time: str
    id: str
    kind: str
    component: str
    text: str


def log_lines(records: Iterable[Record]) -> list[LogLine]:
    return [
        LogLine(
            moment(record.at_s),
            one_line(record.id),
            one_line(record.kind),
            one_line(record.component),
            headline(record),
        )
        for record in records
    ]


def explain(store: Store, run: str, id: str) -> str:
    """The story of this record, as sections of text."""
    focus = store.get(run, id)
    if focus is None:
        raise _unknown_id(store, run, id)
    story = _gather(store, run, focus)
    sections = (
        ("What was observed", _entries(story.of(SYMPTOM), details)),
        ("What was diagnosed", _diagnosis_lines(story)),
        ("What was proposed", _proposal_lines(story)),
        ("What was done", _action_lines(story)),
        ("What was predicted", _prediction_lines(story)),
        ("What came of it", _came_of_it(story)),
        ("Related records", _related_lines(story)),
    )
    title = SEPARATOR.join(filter(None, (focus.id, focus.kind, focus.component, moment(focus.at_s))))
    blocks = [[one_line(title), headline(focus)]]
    blocks += [[heading, *lines] for heading, lines in sections if lines]
    return "\n\n".join("\n".join(filter(None, block)) for block in blocks)


@dataclass(frozen=True, slots=True)
class _Story:
    """The chain of a record, and the other diagnoses and proposals that were considered at that time."""

    focus: Record
    chain: tuple[Record, ...]
    beside: tuple[Record, ...]

    def of(self, *kinds: str) -> list[Record]:
        return [record for record in self.chain if record.kind in kinds]

    def others(self, kind: str) -> list[Record]:
        return [record for record in self.beside if record.kind == kind]

    @property
    def proposals(self) -> list[Record]:
        return self.of(PROPOSAL) + self.others(PROPOSAL)

    def fates(self, proposal: Record) -> list[Record]:
        return [r for r in (*self.chain, *self.beside) if r.kind in _FATES and proposal.id in r.because]

    def receipts(self, action: Record) -> list[tuple[Record, ReceiptContent]]:
        return [pair for pair in with_content(self.chain, ReceiptContent) if pair[1].action == action.id]

    def is_judged(self, action: Record) -> bool:
        return any(outcome.action == action.id for _, outcome in with_content(self.chain, OutcomeContent))


def _gather(store: Store, run: str, focus: Record) -> _Story:
    chain = store.chain(run, focus.id)
    chain_ids = {record.id for record in chain}
    diagnosed_s = {record.at_s for record in chain if record.kind == DIAGNOSIS}
    around: dict[str, Record] = {}
    for root in chain:
        if root.kind == SYMPTOM or (root.kind == DIAGNOSIS and not root.because):
            around |= {r.id: r for r in store.chain(run, root.id) if r.id not in chain_ids}
    # A symptom that lasts is diagnosed again and again: only diagnoses of the same moment competed.
    beside = {r.id: r for r in around.values() if r.kind == DIAGNOSIS and r.at_s in diagnosed_s}
    for kinds in ((PROPOSAL,), _FATES):
        parents = chain_ids | beside.keys()
        beside |= {r.id: r for r in around.values() if r.kind in kinds and parents & set(r.because)}
    return _Story(focus, tuple(chain), tuple(beside.values()))


def _diagnosis_lines(story: _Story) -> list[str]:
    diagnoses = story.of(DIAGNOSIS)
    if not diagnoses:
        return ["  nothing so far"] if story.focus.kind == SYMPTOM else []
    lines = _entries(diagnoses, details)
    alternatives = _entries(story.others(DIAGNOSIS), details)
    return [*lines, "  also considered", *alternatives] if alternatives else lines


def _proposal_lines(story: _Story) -> list[str]:
    def with_fate(proposal: Record) -> list[str]:
        return [*details(proposal), *_fate_lines(story, proposal)]

    if not story.proposals and story.focus.kind == DIAGNOSIS:
        return ["  nothing so far"]
    return _entries(story.proposals, with_fate)


def _fate_lines(story: _Story, proposal: Record) -> list[str]:
    fates = [
        f"carried out as {one_line(record.id)}"
        if record.kind == ACTION
        else f"{_FATE_WORDS[record.kind]} ({one_line(record.id)}): {reason(record)}"
        for record in story.fates(proposal)
    ]
    return fates or ["not carried out so far"]


def _action_lines(story: _Story) -> list[str]:
    def with_receipt(action: Record) -> list[str]:
        receipts = [receipt_line(record, receipt, action) for record, receipt in story.receipts(action)]
        return [*details(action), *(receipts or ["no receipt so far, so its effect is not known"])]

    return _entries(story.of(ACTION), with_receipt)


def _prediction_lines(story: _Story) -> list[str]:
    """Each action's prediction, and that of each proposal that did not become one."""
    actions = list(with_content(story.of(ACTION), ChangeContent))
    carried_out = {parent for record, action in actions if prediction(action) for parent in record.because}
    proposals = [pair for pair in with_content(story.proposals, ChangeContent) if pair[0].id not in carried_out]
    lines = [f"  {one_line(r.id)}  {text}" for r, change in actions + proposals if (text := prediction(change))]
    return lines[:LONGEST_SECTION] + _more(len(lines))


def _came_of_it(story: _Story) -> list[str]:
    lines = _entries(story.of(OUTCOME), details)
    waiting = [one_line(action.id) for action in story.of(ACTION) if not story.is_judged(action)]
    if waiting:
        lines += [f"  not judged so far: {', '.join(waiting[:LONGEST_SECTION])}", *_more(len(waiting))]
    return lines


def _related_lines(story: _Story) -> list[str]:
    ids_shown = {record.id for proposal in story.proposals for record in story.fates(proposal)}
    ids_shown |= {record.id for action in story.of(ACTION) for record, _ in story.receipts(action)}
    in_sections = (SYMPTOM, DIAGNOSIS, PROPOSAL, ACTION, OUTCOME)
    return _entries([r for r in story.chain if r.kind not in in_sections and r.id not in ids_shown], details)


def _entries(records: Sequence[Record], lines_of: Callable[[Record], list[str]]) -> list[str]:
    lines = []
    for record in records[:LONGEST_SECTION]:
        sentence = headline(record)
        lines.append(f"  {one_line(record.id)}  {moment(record.at_s)}  {sentence}")
        lines += [f"      {line}" for line in lines_of(record) if line and line != sentence]
    return lines + _more(len(records))


def _more(count: int) -> list[str]:
    return [f"  … and {count - LONGEST_SECTION} more"] if count > LONGEST_SECTION else []


def _unknown_id(store: Store, run: str, id: str) -> HomeostatError:
    newest = [record.id for record in store.records(run, limit=IDS_COMPARED, newest_first=True)]
    if not newest:
        names = ", ".join(info.name for info in store.runs())
        return HomeostatError(f"the log has no run {run!r}", fix=f"runs: {names}" if names else "the log is empty")
    near = get_close_matches(id, newest, n=3, cutoff=0.5)
    fix = f"nearest: {', '.join(near)}" if near else f"the newest is {newest[0]}"
    return HomeostatError(f"run {run!r} has no record {id!r}", fix=fix)
