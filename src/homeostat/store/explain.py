"""The log in words: one record's whole chain, from what was measured to what came of it."""

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
    RECEIPT,
    REJECTION,
    SYMPTOM,
    Record,
)
from homeostat.core.wording import SEPARATOR, moment, one_line
from homeostat.store.phrases import evidence, headline, judgement, prediction, reason, receipt, rest, steps
from homeostat.store.protocol import Store

_LONGEST_SECTION = 20
_IDS_COMPARED = 5_000
_FATES = (REJECTION, ADVICE, ALERT, ACTION)
_FATE_WORDS = {REJECTION: "rejected", ADVICE: "advised", ALERT: "a person was told"}


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
            one_line(record.text) or headline(record),
        )
        for record in records
    ]


def explain(store: Store, run: str, id: str) -> str:
    """What was seen, taken for, proposed, done and predicted around this record, and what came of it."""
    focus = store.get(run, id)
    if focus is None:
        raise _unknown(store, run, id)
    story = _gather(store, run, focus)
    sections = (
        ("What was seen", _entries(story.of(SYMPTOM), evidence)),
        ("What it was taken for", _taken_for(story)),
        ("What was proposed", _proposed(story)),
        ("What was done", _done(story)),
        ("What was predicted", _predicted(story)),
        ("What came of it", _came_of_it(story)),
        ("What else belongs to it", _else(story)),
    )
    title = SEPARATOR.join(filter(None, (focus.id, focus.kind, focus.component, moment(focus.at_s))))
    blocks = [[one_line(title), one_line(focus.text) or headline(focus)]]
    blocks += [[heading, *lines] for heading, lines in sections if lines]
    return "\n\n".join("\n".join(filter(None, block)) for block in blocks)


@dataclass(frozen=True, slots=True)
class _Story:
    """The chain of a record, and beside it the other diagnoses and proposals that were weighed then."""

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

    def answers(self, action: Record, kind: str) -> list[Record]:
        return [record for record in self.of(kind) if record.body.get("action") == action.id]


def _gather(store: Store, run: str, focus: Record) -> _Story:
    chain = store.chain(run, focus.id)
    known = {record.id for record in chain}
    diagnosed_s = {record.at_s for record in chain if record.kind == DIAGNOSIS}
    around: dict[str, Record] = {}
    for root in chain:
        if root.kind == SYMPTOM or (root.kind == DIAGNOSIS and not root.because):
            around |= {r.id: r for r in store.chain(run, root.id) if r.id not in known}
    # A symptom that lasts is diagnosed again and again: only what was thought at the same moment competed.
    beside = {r.id: r for r in around.values() if r.kind == DIAGNOSIS and r.at_s in diagnosed_s}
    for kinds in ((PROPOSAL,), _FATES):
        parents = known | beside.keys()
        beside |= {r.id: r for r in around.values() if r.kind in kinds and parents & set(r.because)}
    return _Story(focus, tuple(chain), tuple(beside.values()))


def _taken_for(story: _Story) -> list[str]:
    diagnoses = story.of(DIAGNOSIS)
    if not diagnoses:
        return ["  nothing so far"] if story.focus.kind == SYMPTOM else []
    lines = _entries(diagnoses, evidence)
    alternatives = _entries(story.others(DIAGNOSIS), evidence)
    return [*lines, "  rather than", *alternatives] if alternatives else lines


def _proposed(story: _Story) -> list[str]:
    def details(proposal: Record) -> list[str]:
        return [*rest(proposal), *_fate_lines(story, proposal)]

    if not story.proposals and story.focus.kind == DIAGNOSIS:
        return ["  nothing so far"]
    return _entries(story.proposals, details)


def _fate_lines(story: _Story, proposal: Record) -> list[str]:
    fates = [
        f"taken as {one_line(record.id)}"
        if record.kind == ACTION
        else f"{_FATE_WORDS[record.kind]} ({one_line(record.id)}): {reason(record)}"
        for record in story.fates(proposal)
    ]
    return fates or ["not taken so far"]


def _done(story: _Story) -> list[str]:
    def details(action: Record) -> list[str]:
        receipts = [line for each in story.answers(action, RECEIPT) for line in receipt(each, action)]
        return [*steps(action), *rest(action), *(receipts or ["no receipt so far: its effect is not known"])]

    return _entries(story.of(ACTION), details)


def _predicted(story: _Story) -> list[str]:
    """Each action's prediction, and that of each proposal that did not become one."""
    actions = story.of(ACTION)
    taken = {parent for action in actions if prediction(action) for parent in action.because}
    makers = actions + [proposal for proposal in story.proposals if proposal.id not in taken]
    told = [f"  {one_line(maker.id)}  {prediction(maker)}" for maker in makers if prediction(maker)]
    return told[:_LONGEST_SECTION] + _more(len(told))


def _came_of_it(story: _Story) -> list[str]:
    lines = _entries(story.of(OUTCOME), judgement)
    waiting = [one_line(action.id) for action in story.of(ACTION) if not story.answers(action, OUTCOME)]
    if waiting:
        lines += [f"  not judged so far: {', '.join(waiting[:_LONGEST_SECTION])}", *_more(len(waiting))]
    return lines


def _else(story: _Story) -> list[str]:
    told = {record.id for proposal in story.proposals for record in story.fates(proposal)}
    told |= {record.id for action in story.of(ACTION) for record in story.answers(action, RECEIPT)}
    in_sections = (SYMPTOM, DIAGNOSIS, PROPOSAL, ACTION, OUTCOME)
    return _entries([r for r in story.chain if r.kind not in in_sections and r.id not in told], rest)


def _entries(records: Sequence[Record], details: Callable[[Record], list[str]]) -> list[str]:
    lines = []
    for record in records[:_LONGEST_SECTION]:
        shown, text = headline(record), one_line(record.text)
        where = f"{one_line(record.component)}: " if record.component else ""
        lines.append(f"  {one_line(record.id)}  {moment(record.at_s)}  {where}{shown}")
        lines += [f"      {line}" for line in (text, *details(record)) if line and line != shown]
    return lines + _more(len(records))


def _more(count: int) -> list[str]:
    return [f"  … and {count - _LONGEST_SECTION} more"] if count > _LONGEST_SECTION else []


def _unknown(store: Store, run: str, id: str) -> HomeostatError:
    newest = [record.id for record in store.records(run, limit=_IDS_COMPARED, newest_first=True)]
    if not newest:
        names = ", ".join(info.name for info in store.runs())
        return HomeostatError(f"the log has no run {run!r}", fix=f"runs: {names}" if names else "it is empty")
    near = get_close_matches(id, newest, n=3, cutoff=0.5)
    fix = f"nearest: {', '.join(near)}" if near else f"the newest is {newest[0]}"
    return HomeostatError(f"run {run!r} has no record {id!r}", fix=fix)
