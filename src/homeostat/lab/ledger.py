"""Keeps what the sink got, batch by batch, and compares it with the profile, to find lost or duplicated rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from homeostat.core.errors import HomeostatError
from homeostat.core.observation import IntArray
from homeostat.lab.load_profile import Profile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MOST_DIFFERENCES = 20  # a choice: enough to see a pattern, few enough to read

# Rows are marked by bits: as many rows as a long has bits share a key, and so many keys are in use at a time, like the
# words of a word count. A choice.
MARKED_ROWS, MARKED_KEYS = 63, 5_000
MARK_KEY = f"concat(row % {MARKED_KEYS}, '-', row div {MARKED_KEYS * MARKED_ROWS})"
MARK = f"bit_or(shiftleft(1L, cast((row div {MARKED_KEYS}) % {MARKED_ROWS} AS INT)))"

Sink = Callable[["DataFrame", int], None]


def write_counts(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in update mode. It keeps the columns word and count. A repeated batch overwrites."""
    return _sink(Path(directory), ("word", "count"))


def write_rows(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in append mode. It keeps the columns row and word. A repeated batch overwrites."""
    return _sink(Path(directory), ("row", "word"))


def write_marks(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in update mode. It keeps the columns word (`MARK_KEY`), count and rows (`MARK`)."""
    return _sink(Path(directory), ("word", "count", "rows"))


def read_counts(directory: str | Path) -> dict[str, int]:
    """The last count of each word."""
    counts: dict[str, int] = {}
    for table in _batches(Path(directory)):
        counts.update(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
    return counts


def check(directory: str | Path, profile: Profile, rows: int) -> list[str]:
    """How the counts differ from those of the first `rows` rows of the profile. Empty if every row counted once."""
    counts, expected_counts = read_counts(directory), profile.expected_counts(rows)
    differences = (
        f"{word!r}: counted {counts.get(word, 0)} times instead of {expected_counts.get(word, 0)}"
        for word in sorted(counts.keys() | expected_counts.keys())
        if counts.get(word, 0) != expected_counts.get(word, 0)
    )
    return _shorten(differences)


def check_rows(directory: str | Path, profile: Profile, rows: int) -> list[str]:
    """Which of the first `rows` rows are missing, duplicated or have another word, and which rows were made up."""
    numbers, words = _rows(Path(directory))
    times = np.bincount(numbers, minlength=rows)
    is_expected = numbers < rows
    wrong = numbers[is_expected][words[is_expected] != profile.words(0, rows)[numbers[is_expected]]]

    def differences() -> Iterator[str]:
        yield from (f"row {row}: lost" for row in np.flatnonzero(times[:rows] == 0))
        yield from (f"row {row}: came {times[row]} times" for row in np.flatnonzero(times > 1))
        yield from (f"row {row}: has another word" for row in wrong)
        yield from (f"row {row}: not in the profile" for row in np.unique(numbers[~is_expected]))

    return _shorten(differences())


def recorded_rows(directory: str | Path, checkpoint: str | Path) -> int:
    """The rows of the experiment source up to the last batch in the ledger, committed or not."""
    return _row_after(Path(checkpoint), last_batch(Path(directory)))


def committed_rows(checkpoint: str | Path) -> int:
    """The rows of the experiment source up to the last batch that the query has committed."""
    return _row_after(Path(checkpoint), last_batch(Path(checkpoint) / "commits"))


def source_started_s(checkpoint: str | Path) -> float:
    """When the profile of the experiment source began. The query must have started a batch."""
    batch_id = last_batch(Path(checkpoint) / "offsets")
    if batch_id is None:
        raise HomeostatError(
            "the query has not started a batch", where=str(checkpoint), fix="wait until its first batch has started"
        )
    return float(_offset_after(Path(checkpoint), batch_id)["started_s"])


def _row_after(checkpoint: Path, batch_id: int | None) -> int:
    return 0 if batch_id is None else int(_offset_after(checkpoint, batch_id)["row"])


def _offset_after(checkpoint: Path, batch_id: int) -> dict[str, Any]:
    log = checkpoint / "offsets" / str(batch_id)
    # The file has a version, the settings of the batch, then one line per source.
    for line in log.read_text(encoding="utf-8").splitlines()[2:]:
        offset: dict[str, Any] = json.loads(line)
        if "started_s" in offset:
            return offset
    raise HomeostatError(
        "the query does not read from the experiment source", where=str(log), fix='use readStream.format("homeostat")'
    )


def _sink(directory: Path, columns: tuple[str, ...]) -> Sink:
    directory.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        from pyarrow import parquet

        draft = directory / f".{batch_id}.draft"
        parquet.write_table(batch.select(*columns).toArrow(), draft)
        draft.replace(directory / f"{batch_id}.parquet")

    return write


def _batches(directory: Path) -> Iterator[pa.Table]:
    from pyarrow import parquet

    for batch_id in sorted(_numbers(directory)):
        # As a single file: in a dataset, pyarrow would read a column from a directory named like `key=value`.
        yield parquet.ParquetFile(directory / f"{batch_id}.parquet").read()


def _rows(directory: Path) -> tuple[IntArray, np.typing.NDArray[np.object_]]:
    batches = list(_batches(directory))
    numbers = [np.asarray(table["row"], dtype=np.int64) for table in batches]
    words = [np.asarray(table["word"], dtype=object) for table in batches]
    if not batches:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=object)
    return np.concatenate(numbers), np.concatenate(words)


def last_batch(directory: Path) -> int | None:
    """The largest number among the files of a ledger, or of `commits` or `offsets` of a checkpoint."""
    return max(_numbers(directory), default=None)


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return [int(path.stem) for path in directory.iterdir() if path.stem.isdecimal()]


def row_differences(directory: str | Path, rows: int) -> tuple[int, int]:
    """How many of the first `rows` rows were lost, and how many rows counted again or were made up, by their marks."""
    marks: dict[str, tuple[int, int]] = {}
    for table in _batches(Path(directory)):
        columns = (table[name].to_pylist() for name in ("word", "count", "rows"))
        marks.update((word, (count, mark)) for word, count, mark in zip(*columns, strict=True))
    expected_marks = _expected_marks(rows)
    lost = doubled = 0
    for key in marks.keys() | expected_marks.keys():
        count, mark = marks.get(key, (0, 0))
        expected = expected_marks.get(key, 0)
        lost += (expected & ~mark).bit_count()
        doubled += (mark & ~expected).bit_count() + count - mark.bit_count()
    return lost, doubled


def _expected_marks(rows: int) -> dict[str, int]:
    """The mark of each key after the first `rows` rows."""
    marks: dict[str, int] = {}
    for key in range(min(rows, MARKED_KEYS)):
        whole, rest = divmod(len(range(key, rows, MARKED_KEYS)), MARKED_ROWS)
        marks |= {f"{key}-{block}": (1 << MARKED_ROWS) - 1 for block in range(whole)}
        marks |= {f"{key}-{whole}": (1 << rest) - 1} if rest else {}
    return marks


def _shorten(differences: Iterator[str]) -> list[str]:
    first = list(islice(differences, MOST_DIFFERENCES))
    rest = sum(1 for _ in differences)
    return [*first, f"and {rest} more"] if rest else first
