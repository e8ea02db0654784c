"""The digests of a run, and their numbers as columns. Each observation adds a line, so that nothing is read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter

import numpy as np

from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.observation import NAN, Array, IntArray, StateSample

_NUMBERS = ("int", "float", "bool")
_FLOW = tuple(each.name for each in fields(Digest) if each.type in _NUMBERS)
_PART = tuple(each.name for each in fields(ComponentDigest) if each.type in _NUMBERS)
_STATE = tuple(each.name for each in fields(StateSample) if each.type in _NUMBERS)
_FLOW_PLACES = {name: place for place, name in enumerate(_FLOW)}
_PART_PLACES = {name: place for place, name in enumerate(_PART)}
# 1 where an operator reported its state comes first.
_REPORTED = "reported"
_STATE_PLACES = {name: place for place, name in enumerate((_REPORTED, *_STATE))}
_flow_line, _part_line, _state_line = attrgetter(*_FLOW), attrgetter(*_PART), attrgetter(*_STATE)
_NO_PART, _NO_STATE = (NAN,) * len(_PART), (NAN,) * len(_STATE_PLACES)
# Lines that a new table has room for. It doubles when it is full.
_FIRST_ROOM = 64
# A table keeps lines of dropped digests until it has this many times the lines of the digests that are kept. More takes
# memory, fewer copies the lines more often. A choice.
_LONGEST_TIMES = 2


class _Table:
    """Lines of numbers. Lines can be appended; earlier readers still see only the lines that existed then."""

    def __init__(self, width: int, lines: Sequence[tuple[float, ...]] = ()) -> None:
        self.length = len(lines)
        self._lines = np.full((width, max(_FIRST_ROOM, len(lines))), NAN)
        if lines:
            self._lines[:, : len(lines)] = np.array(lines, dtype=np.float64).T

    def append(self, line: tuple[float, ...]) -> None:
        if self.length == self._lines.shape[1]:
            self._lines = np.concatenate([self._lines, np.full_like(self._lines, NAN)], axis=1)
        self._lines[:, self.length] = line
        self.length += 1

    def column(self, place: int, start: int, end: int) -> Array:
        numbers = self._lines[place, start:end]
        numbers.flags.writeable = False
        return numbers


class History(tuple[Digest, ...]):
    """Digests in the order in which they were observed."""

    _flows: _Table
    _parts: dict[str, _Table]
    _states: dict[str, _Table]
    _end: int

    @classmethod
    def of(cls, digests: Iterable[Digest]) -> History:
        history = cls(digests)
        history._flows, history._end = _Table(len(_FLOW), [_flow_line(digest) for digest in history]), len(history)
        names = dict.fromkeys(name for digest in history for name in digest.components)
        history._parts = {name: _Table(len(_PART), [_line_of(digest, name) for digest in history]) for name in names}
        names = dict.fromkeys(name for digest in history for name in digest.states)
        history._states = {
            name: _Table(len(_STATE_PLACES), [_state_of(digest, name) for digest in history]) for name in names
        }
        return history

    def after(self, digest: Digest, most: int) -> History:
        """Return the history with one digest more, without the oldest beyond `most`."""
        is_branch = self._flows.length != self._end  # another history has already continued from here
        if is_branch or self._end >= _LONGEST_TIMES * most:
            return History.of((*self, digest)[-most:])
        history = History((*self, digest)[-most:])
        history._flows, history._parts, history._states = self._flows, self._parts, self._states
        history._end = self._end
        history._append(digest)
        return history

    def _append(self, digest: Digest) -> None:
        self._flows.append(_flow_line(digest))
        for name in digest.components:
            if name not in self._parts:
                self._parts[name] = _Table(len(_PART), [_NO_PART] * self._end)
        for name, table in self._parts.items():
            table.append(_line_of(digest, name))
        for name in digest.states:
            if name not in self._states:
                self._states[name] = _Table(len(_STATE_PLACES), [_NO_STATE] * self._end)
        for name, table in self._states.items():
            table.append(_state_of(digest, name))
        self._end += 1

    @property
    def components(self) -> tuple[str, ...]:
        """Every component that was ever measured."""
        return tuple(self._parts)

    @property
    def operators(self) -> tuple[str, ...]:
        """Every operator that ever reported its state."""
        return tuple(self._states)

    def flow(self, name: str, last: int) -> Array:
        """Return a number of the last digests."""
        return self._column(self._flows, _FLOW_PLACES[name], last)

    def part(self, component: str, name: str, last: int) -> Array:
        """Return a number of a component in the last digests; NaN where it was not measured."""
        return self._column(self._parts.get(component), _PART_PLACES[name], last)

    def state(self, operator: str, name: str, last: int) -> Array:
        """Return a number of a stateful operator in the last digests; NaN where it was not measured."""
        return self._column(self._states.get(operator), _STATE_PLACES[name], last)

    def reports(self, operator: str) -> IntArray:
        """Return the places of the digests that have the state of this operator."""
        return np.flatnonzero(self.state(operator, _REPORTED, len(self)) == 1.0)

    def _column(self, table: _Table | None, place: int, last: int) -> Array:
        start = self._end - min(last, len(self))
        return np.full(self._end - start, NAN) if table is None else table.column(place, start, self._end)


def _line_of(digest: Digest, component: str) -> tuple[float, ...]:
    part = digest.components.get(component)
    return _NO_PART if part is None else _part_line(part)


def _state_of(digest: Digest, operator: str) -> tuple[float, ...]:
    state = digest.states.get(operator)
    return _NO_STATE if state is None else (1.0, *_state_line(state))


def as_history(digests: tuple[Digest, ...]) -> History:
    return digests if isinstance(digests, History) else History.of(digests)
