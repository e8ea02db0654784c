"""Trigger interval and rows per trigger, estimated from recorded batches."""

from __future__ import annotations

from homeostat.core.observation import NAN
from homeostat.recorded_data.batch_limits import rows_per_trigger, trigger_s
from support.recorded_batches import batches


def test_a_trigger_shows_where_batches_wait_for_it() -> None:
    assert trigger_s(batches(*((10.0 * n, 5.0, 1.0, NAN, NAN) for n in range(6)))) == 10.0
    assert trigger_s(batches(*((10.0 * n, 9.99, 1.0, NAN, NAN) for n in range(6)))) == 0.0


def test_a_bound_shows_where_full_batches_leave_rows_behind() -> None:
    full = [(10.0 * n, 5.0, 400.0, NAN, 50.0) for n in range(3)]
    assert rows_per_trigger(batches(*full)) == 400.0
    assert rows_per_trigger(batches(*full[:2])) == float("inf")
    assert rows_per_trigger(batches(*((*batch[:4], 0.0) for batch in full))) == float("inf")
