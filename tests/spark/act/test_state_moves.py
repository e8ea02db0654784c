"""How large a query's state is, from its last report."""

from __future__ import annotations

from homeostat.spark.act.state_moves import state_size


def test_rows_and_bytes_of_all_operators_are_added_up() -> None:
    operators = [
        {"numRowsTotal": 10, "customMetrics": {"rocksdbSstFileSize": 1000}},
        {"numRowsTotal": 5, "customMetrics": {}},
    ]
    assert state_size({"stateOperators": operators}) == (15, 1000)


def test_before_the_first_report_there_is_no_state() -> None:
    assert state_size(None) == (0, 0)
