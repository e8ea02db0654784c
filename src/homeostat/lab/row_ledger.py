"""Compares the rows in a sink's ledger with those that the source handed out, row for row and batch for batch.

A row's number is its identity. Rows are marked by bits: `MARKED_ROWS` rows share a key, one for each bit of a long, and
`MARKED_KEYS` keys are in use at a time, like the words of a word count. The query combines the marks of each key. The
number of rows of a key and the sum of their numbers show which row was counted again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np

from homeostat.core.errors import HomeostatError
from homeostat.lab.ledger import MOST_DIFFERENCES, Sink, batch_numbers, last_batch, read_batch, row_after, table_sink

# A choice: see above.
MARKED_ROWS, MARKED_KEYS = 63, 5_000
MARK_KEY = f"concat(row % {MARKED_KEYS}, '-', row div {MARKED_KEYS * MARKED_ROWS})"
MARK_COLUMNS = {
    "count": "count(*)",
    "rows": f"bit_or(shiftleft(1L, cast((row div {MARKED_KEYS}) % {MARKED_ROWS} AS INT)))",
    "row_sum": "sum(row)",
}


def write_marks(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in update mode. It keeps the columns word (`MARK_KEY`) and those of `MARK_COLUMNS`."""
    return table_sink(Path(directory), ("word", *MARK_COLUMNS))


class HandedOut:
    """The rows that the source handed out in each batch, as the query logged them before it read them.

    Call `look` often, because Spark deletes its logs of old batches.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._committed = -1
        # by batch: the number of the row after its last row
        self.ends: dict[int, int] = {}

    def look(self) -> None:
        """Read the offsets of batches. A batch that is not committed may be planned again, so it is read each time."""
        committed = last_batch(self._checkpoint / "commits")
        for batch in batch_numbers(self._checkpoint / "offsets"):
            if batch > self._committed or batch not in self.ends:
                with suppress(OSError, ValueError, HomeostatError):
                    self.ends[batch] = row_after(self._checkpoint, batch)
        self._committed = -1 if committed is None else committed


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Of `rows` rows that were handed out: `lost` are not in the ledger, `doubled` were counted again or never handed
    out, and `misplaced` came in another batch than the one they were handed out in. `differing_rows` names the first
    ones of each kind."""

    rows: int = 0
    lost: int = 0
    doubled: int = 0
    misplaced: int = 0
    differing_rows: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.misplaced)


@dataclass
class RowLedger:
    """The rows in a ledger of marked rows. `read` continues where it ended before."""

    directory: Path
    _last_read: int = -1
    _marks: dict[str, int] = field(default_factory=dict)
    _is_present: bytearray = field(default_factory=bytearray)
    # by key: the number of surplus rows, and the sum of their numbers
    _surplus: dict[str, tuple[int, int]] = field(default_factory=dict)
    # by row: the batch in which it came
    _misplaced: dict[int, int] = field(default_factory=dict)

    def read(self, ends: Mapping[int, int], until: int) -> None:
        """Read the batches up to `until`, which are final. `ends` are those of `HandedOut`. If the end of a batch is
        not known, its rows may be any up to the next known end."""
        known_batches = sorted(ends)
        for batch in sorted(batch_numbers(self.directory)):
            if self._last_read < batch <= until:
                at = bisect_left(known_batches, batch)
                start = ends[known_batches[at - 1]] if at else 0
                stop = ends[known_batches[at]] if at < len(known_batches) else inf
                self._read(batch, start, stop)
                self._last_read = batch

    def _read(self, batch: int, start: int, stop: float) -> None:
        table = read_batch(self.directory, batch)
        columns = (table[name].to_pylist() for name in ("word", *MARK_COLUMNS))
        for key, count, mark, row_sum in zip(*columns, strict=True):
            mark_before = self._marks.get(key, 0)
            for row in marked_rows(key, mark & ~mark_before):
                self._note(row, True)
                if not start <= row < stop:
                    self._misplaced[row] = batch
            for row in marked_rows(key, mark_before & ~mark):
                self._note(row, False)
            self._marks[key] = mark
            if surplus := count - mark.bit_count():
                self._surplus[key] = (surplus, row_sum - sum(marked_rows(key, mark)))

    def _note(self, row: int, is_present: bool) -> None:
        self._is_present.extend(bytes(max(0, row + 1 - len(self._is_present))))
        self._is_present[row] = is_present

    def differences(self, rows: int) -> RowDifferences:
        """The differences from the first `rows` rows of the source."""
        is_present = np.zeros(max(rows, len(self._is_present)), dtype=bool)
        is_present[: len(self._is_present)] = np.frombuffer(self._is_present, dtype=bool)
        lost = np.flatnonzero(~is_present[:rows])
        made_up = np.flatnonzero(is_present[rows:]) + rows
        doubled = sum(times for times, _ in self._surplus.values())

        def examples() -> Iterator[str]:
            yield from islice((f"row {row}: lost" for row in lost), MOST_DIFFERENCES)
            surplus = sorted(self._surplus.items())
            yield from islice((_surplus_words(key, *each) for key, each in surplus), MOST_DIFFERENCES)
            yield from islice((f"row {row}: was not handed out" for row in made_up), MOST_DIFFERENCES)
            misplaced = (f"row {row}: received in batch {batch}" for row, batch in sorted(self._misplaced.items()))
            yield from islice((f"{words}, to which it does not belong" for words in misplaced), MOST_DIFFERENCES)

        return RowDifferences(rows, len(lost), doubled + len(made_up), len(self._misplaced), tuple(examples()))


def marked_rows(key: str, mark: int) -> Iterator[int]:
    """The numbers of the rows that the bits of a key's mark stand for."""
    first, block = map(int, key.split("-"))
    while mark:
        bit = (mark & -mark).bit_length() - 1
        yield first + MARKED_KEYS * (bit + MARKED_ROWS * block)
        mark &= mark - 1


def _surplus_words(key: str, times: int, row_sum: int) -> str:
    return f"row {row_sum}: counted twice" if times == 1 else f"rows of key {key}: counted {times} times too many"
