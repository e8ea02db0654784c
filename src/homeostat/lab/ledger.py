"""Stores the rows that the sink received, batch by batch, and compares them with the profile, to find lost or
duplicated rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
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

Sink = Callable[["DataFrame", int], None]


def write_counts(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in update mode. It keeps the columns word and count. A repeated batch overwrites."""
    return table_sink(Path(directory), ("word", "count"))


def write_rows(directory: str | Path) -> Sink:
    """A sink for `foreachBatch` in append mode. It keeps the columns row and word. A repeated batch overwrites."""
    return table_sink(Path(directory), ("row", "word"))


def read_counts(directory: str | Path) -> dict[str, int]:
    """The last count of each word."""
    counts: dict[str, int] = {}
    for table in _batches(Path(directory)):
        counts.update(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
    return counts


def check(directory: str | Path, profile: Profile, rows: int) -> list[str]:
    """How the counts differ from those of the first `rows` rows of the profile. Empty if every row counted once."""
    return check_counts(directory, profile.expected_counts(rows))


def check_counts(directory: str | Path, expected_counts: Mapping[str, int]) -> list[str]:
    """How the counts in the ledger differ from these. Empty if there is no difference."""
    counts = read_counts(directory)
    differences = (
        f"{word!r}: counted {counts.get(word, 0)} times instead of {expected_counts.get(word, 0)}"
        for word in sorted(counts.keys() | expected_counts.keys())
        if counts.get(word, 0) != expected_counts.get(word, 0)
    )
    return _shorten(differences)


def check_rows(directory: str | Path, profile: Profile, rows: int) -> list[str]:
    """Which of the first `rows` rows are missing, duplicated or have another word, and which are not in the profile."""
    numbers, words = _rows(Path(directory))
    times = np.bincount(numbers, minlength=rows)
    is_expected = numbers < rows
    wrong = numbers[is_expected][words[is_expected] != profile.words(0, rows)[numbers[is_expected]]]

    def differences() -> Iterator[str]:
        yield from (f"row {row}: lost" for row in np.flatnonzero(times[:rows] == 0))
        yield from (f"row {row}: received {times[row]} times" for row in np.flatnonzero(times > 1))
        yield from (f"row {row}: received with another word" for row in wrong)
        yield from (f"row {row}: not in the profile" for row in np.unique(numbers[~is_expected]))

    return _shorten(differences())


def recorded_rows(directory: str | Path, checkpoint: str | Path) -> int:
    """The rows of the experiment source up to the last batch in the ledger, committed or not."""
    return row_after(Path(checkpoint), last_batch(Path(directory)))


def committed_rows(checkpoint: str | Path) -> int:
    """The rows of the experiment source up to the last batch that the query has committed."""
    return row_after(Path(checkpoint), last_batch(Path(checkpoint) / "commits"))


def source_started_s(checkpoint: str | Path) -> float:
    """When the profile of the experiment source began. The query must have started a batch."""
    batch_id = last_batch(Path(checkpoint) / "offsets")
    if batch_id is None:
        raise HomeostatError(
            "the query has not started a batch", where=str(checkpoint), fix="wait until its first batch has started"
        )
    return float(_offset_after(Path(checkpoint), batch_id)["started_s"])


def row_after(checkpoint: Path, batch_id: int | None) -> int:
    """The number of the row after the last one of this batch, committed or not."""
    return 0 if batch_id is None else int(_offset_after(checkpoint, batch_id)["row"])


def source_offsets(checkpoint: Path, batch_id: int) -> list[dict[str, Any]]:
    """The offset of each source after this batch, committed or not."""
    lines = _offset_log(checkpoint, batch_id).read_text(encoding="utf-8").splitlines()
    # The file has a version, the settings of the batch, then one line per source.
    return [json.loads(line) for line in lines[2:]]


def _offset_after(checkpoint: Path, batch_id: int) -> dict[str, Any]:
    for offset in source_offsets(checkpoint, batch_id):
        if "started_s" in offset:
            return offset
    raise HomeostatError(
        "the query does not read from the experiment source",
        where=str(_offset_log(checkpoint, batch_id)),
        fix='use readStream.format("homeostat")',
    )


def _offset_log(checkpoint: Path, batch_id: int) -> Path:
    return checkpoint / "offsets" / str(batch_id)


def table_sink(directory: Path, columns: tuple[str, ...]) -> Sink:
    """Keeps these columns of each batch in a file of its own. A repeated batch overwrites it."""
    directory.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        from pyarrow import parquet

        draft = directory / f".{batch_id}.draft"
        parquet.write_table(batch.select(*columns).toArrow(), draft)
        draft.replace(directory / f"{batch_id}.parquet")

    return write


def _batches(directory: Path) -> Iterator[pa.Table]:
    return (read_batch(directory, batch_id) for batch_id in sorted(batch_numbers(directory)))


def read_batch(directory: Path, batch_id: int) -> pa.Table:
    from pyarrow import parquet

    # As a single file: in a dataset, pyarrow would read a column from a directory named like `key=value`.
    return parquet.ParquetFile(directory / f"{batch_id}.parquet").read()


def _rows(directory: Path) -> tuple[IntArray, np.typing.NDArray[np.object_]]:
    batches = list(_batches(directory))
    numbers = [np.asarray(table["row"], dtype=np.int64) for table in batches]
    words = [np.asarray(table["word"], dtype=object) for table in batches]
    if not batches:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=object)
    return np.concatenate(numbers), np.concatenate(words)


def last_counted_batch(directory: Path, checkpoint: Path) -> int | None:
    """The last batch that is in the ledger or that the query has committed."""
    batches = (last_batch(directory), last_batch(checkpoint / "commits"))
    return max((batch for batch in batches if batch is not None), default=None)


def last_batch(directory: Path) -> int | None:
    """The largest number among the files of a ledger, or of `commits` or `offsets` of a checkpoint."""
    return max(batch_numbers(directory), default=None)


def batch_numbers(directory: Path) -> list[int]:
    """The numbers of the files of a ledger, or of `commits` or `offsets` of a checkpoint, in any order."""
    if not directory.is_dir():
        return []
    return [int(path.stem) for path in directory.iterdir() if path.stem.isdecimal()]


def _shorten(differences: Iterator[str]) -> list[str]:
    first = list(islice(differences, MOST_DIFFERENCES))
    rest = sum(1 for _ in differences)
    return [*first, f"and {rest} more"] if rest else first
