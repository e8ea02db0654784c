"""Every row is followed from the batch that the source handed it out in to the batch that the sink got it in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from homeostat.lab.row_ledger import MARKED_KEYS, MARKED_ROWS, HandedOut, RowDifferences, RowLedger, marked_rows


class Query:
    """Adds up marks as Spark does, and writes the keys that a batch updates into the ledger."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir()
        self.state: dict[str, tuple[int, int, int]] = {}

    def write(self, batch: int, rows: Iterable[int], *, hidden: Iterable[int] = ()) -> None:
        """The `hidden` rows count in the state, but the sink does not get what they update."""
        updates = {key for row in rows if (key := self._add(row))}
        self._write(batch, updates - {_key(row) for row in hidden})

    def forget(self, batch: int, row: int) -> None:
        count, mark, row_sum = self.state[_key(row)]
        self.state[_key(row)] = (count - 1, mark & ~_bit(row), row_sum - row)
        self._write(batch, {_key(row)})

    def _add(self, row: int) -> str:
        count, mark, row_sum = self.state.get(_key(row), (0, 0, 0))
        self.state[_key(row)] = (count + 1, mark | _bit(row), row_sum + row)
        return _key(row)

    def _write(self, batch: int, keys: Iterable[str]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        updated = sorted(keys)
        columns = {
            name: pa.array([self.state[key][at] for key in updated], pa.int64())
            for at, name in enumerate(("count", "rows", "row_sum"))
        }
        parquet.write_table(
            pa.table({"word": pa.array(updated, pa.string()), **columns}), self.directory / f"{batch}.parquet"
        )


def _key(row: int) -> str:
    return f"{row % MARKED_KEYS}-{row // (MARKED_KEYS * MARKED_ROWS)}"


def _bit(row: int) -> int:
    return 1 << (row // MARKED_KEYS) % MARKED_ROWS


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path / "ledger")


def differences(query: Query, ends: Mapping[int, int], rows: int) -> RowDifferences:
    ledger = RowLedger(query.directory)
    ledger.read(ends, until=1_000)
    return ledger.differences(rows)


def test_a_mark_stands_for_the_numbers_of_its_rows() -> None:
    rows = (7, 7 + MARKED_KEYS, 7 + 62 * MARKED_KEYS)
    assert tuple(marked_rows("7-0", sum(map(_bit, rows)))) == rows
    assert tuple(marked_rows("7-2", 1)) == (7 + 2 * MARKED_KEYS * MARKED_ROWS,)


def test_rows_that_came_once_in_their_batches_do_not_differ(query: Query) -> None:
    rows = 2 * MARKED_KEYS + 1_234
    query.write(0, range(100))
    query.write(1, ())
    query.write(2, range(100, rows))
    assert not differences(query, {0: 100, 1: 100, 2: rows}, rows)
    assert differences(query, {0: 100, 1: 100, 2: rows}, rows) == RowDifferences(rows)


def test_each_row_that_is_lost_doubled_or_made_up_is_named_also_if_their_number_is_right(query: Query) -> None:
    query.write(0, [row for row in range(100) if row != 41])
    query.write(1, [*range(100, 200), 9, 150, 150])
    query.write(2, [200, 205])
    row_differences = differences(query, {0: 100, 1: 200, 2: 206}, 201)
    assert (row_differences.lost, row_differences.doubled, row_differences.misplaced) == (1, 4, 0)
    assert row_differences.differing_rows == (
        "row 41: lost",
        "rows of key 150-0: counted 2 times too many",
        "row 9: counted twice",
        "row 205: was not handed out",
    )


def test_a_row_that_the_sink_gets_in_a_later_batch_is_not_taken_for_right(query: Query) -> None:
    query.write(0, range(100), hidden=[7])
    query.write(1, range(100, 200))
    assert differences(query, {0: 100, 1: 200}, 200).lost == 1
    query.write(2, [7 + MARKED_KEYS])  # the sum of the key has row 7 as well
    row_differences = differences(query, {0: 100, 1: 200, 2: 6_000}, 200)
    assert (row_differences.lost, row_differences.misplaced) == (0, 1)
    assert "row 7: received in batch 2, to which it does not belong" in row_differences.differing_rows


def test_a_row_that_the_state_forgot_is_lost(query: Query) -> None:
    query.write(0, range(100))
    query.forget(1, 3)
    assert differences(query, {0: 100, 1: 100}, 100) == RowDifferences(100, 1, 0, 0, ("row 3: lost",))


def test_rows_of_a_batch_whose_end_was_not_seen_may_be_those_of_the_next_known_one(query: Query) -> None:
    query.write(0, range(100))
    query.write(1, range(100, 150))
    query.write(2, range(150, 200))
    assert not differences(query, {0: 100, 2: 200}, 200)
    assert differences(query, {0: 99, 2: 200}, 200).misplaced == 1


def test_a_ledger_is_read_on_from_where_it_was_read_before(query: Query) -> None:
    ledger, ends = RowLedger(query.directory), {0: 100, 1: 200}
    query.write(0, range(100))
    query.write(1, range(100, 199))
    ledger.read(ends, until=0)
    assert not ledger.differences(100)
    ledger.read(ends, until=1)
    assert ledger.differences(200).differing_rows == ("row 199: lost",)
    assert RowLedger(query.directory.with_name("none")).differences(5).lost == 5


def test_what_was_handed_out_is_known_after_spark_has_deleted_it(tmp_path: Path) -> None:
    handed_out = HandedOut(tmp_path)
    handed_out.look()
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()

    def plan(batch: int, end: int) -> None:
        offset = json.dumps({"row": end, "started_s": 1.5})
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset}")

    plan(0, 100)
    handed_out.look()
    plan(0, 120)  # after a crash, an uncommitted batch whose offsets were lost is planned anew
    handed_out.look()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    (tmp_path / "offsets" / "1").write_text("v1\n{}\n{half a li")
    handed_out.look()
    assert handed_out.ends == {0: 120}
    plan(1, 200)
    (tmp_path / "offsets" / "0").unlink()
    handed_out.look()
    assert handed_out.ends == {0: 120, 1: 200}
