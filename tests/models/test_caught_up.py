"""When a backlog is gone, with the present number of executors and with others."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.configuration import EXECUTORS_KNOB, Configuration, Patch
from homeostat.core.objective import Objective
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_replay import BatchModel
from homeostat.models.caught_up import Backlog, CatchUp, when_caught_up
from homeostat.models.performance import catch_up_s
from support.batch_plans import batches

RATES = st.floats(0.0, 8_000.0)
ROWS = st.floats(0.0, 1e7)
EXECUTORS = st.integers(1, 12)


def catch_up_of(
    rows: float, per_s: float = 2_000.0, *, model: ApplicationModel | None = None, ordered: int | None = None
) -> CatchUp | None:
    """For a model whose executor processes 1,000 rows/s, at 14:00 of a simulated clock."""
    model = model or batches(Objective(catch_up_s=300.0))
    then = None if ordered is None else _executors(model, ordered)
    return when_caught_up(model, Backlog(50_400.0, rows, per_s), model.configuration, ordered=then)


def _executors(model: ApplicationModel, count: int) -> Configuration:
    return model.configuration.patched(Patch({EXECUTORS_KNOB: count}))


def test_the_present_executors_and_the_fewest_that_meet_the_objective() -> None:
    catch_up = catch_up_of(620_000.0)
    assert catch_up is not None
    # 3 executors gain 1,000 rows/s on 2,000 that arrive, less the driver's time. With 5 they gain 3,000.
    assert catch_up.present.instances == 3
    assert catch_up.present.at_s == pytest.approx(50_400.0 + 600.0, rel=0.002)
    assert [each.instances for each in catch_up.others] == [5]
    assert catch_up.others[0].at_s <= 50_400.0 + 300.0
    assert catch_up.sentence == "caught up at 14:10:12 with 3 executors, at 14:03:43 with 5"


def test_a_change_that_was_ordered_is_shown_also_if_the_present_executors_are_enough() -> None:
    catch_up = catch_up_of(100_000.0, ordered=6)
    assert catch_up is not None
    assert [each.instances for each in catch_up.others] == [6]
    assert catch_up.present.at_s > catch_up.others[0].at_s > 50_400.0 + 10.0  # six executors are up after ten seconds


def test_a_capacity_below_the_arrivals_is_never_caught_up_and_the_sentence_says_why() -> None:
    catch_up = catch_up_of(50_000.0, 3_500.0)
    assert catch_up is not None
    assert math.isinf(catch_up.present.at_s)
    assert catch_up.sentence.startswith(
        "never caught up with 3 executors (3,500 rows/s arrive, they can process 3,000), at 14:"
    )
    assert catch_up.to_json()["times"][0]["at_s"] is None  # type: ignore[call-overload, index]


def test_the_rows_of_one_batch_are_no_backlog_and_an_unknown_one_has_no_time() -> None:
    assert catch_up_of(20_000.0) is None
    assert catch_up_of(math.nan) is None
    assert catch_up_of(50_000.0, math.nan) is None


def test_no_more_executors_than_the_cost_limit_allows() -> None:
    catch_up = catch_up_of(6_200_000.0, model=batches(Objective(cost_limit=4.0)))
    assert catch_up is not None
    assert [each.instances for each in catch_up.others] == [4]


def test_executors_that_would_not_help_are_not_named() -> None:
    model = batches()
    assert isinstance(model.performance, BatchModel)
    bound = replace(model.performance.setup, rows_bound=15_000.0)
    catch_up = catch_up_of(
        10_000_000.0, 1_000.0, model=replace(model, performance=replace(model.performance, setup=bound))
    )
    assert catch_up is not None
    assert math.isfinite(catch_up.present.at_s)
    assert catch_up.others == ()


def test_a_time_of_another_day_has_its_date() -> None:
    catch_up = catch_up_of(100_000_000.0, 2_900.0)
    assert catch_up is not None
    assert catch_up.sentence.startswith("caught up at t+")


@given(rows=ROWS, per_s=RATES, executors=EXECUTORS, ordered=EXECUTORS)
def test_more_executors_are_never_later(rows: float, per_s: float, executors: int, ordered: int) -> None:
    catch_up = catch_up_of(rows, per_s, model=batches(executors=executors), ordered=ordered)
    if catch_up is None:
        return
    times = sorted((catch_up.present, *catch_up.others), key=lambda each: each.instances)
    assert len({each.instances for each in times}) == len(times)
    assert all(fewer.at_s > more.at_s for fewer, more in pairwise(times))
    assert all(each.at_s > catch_up.backlog.at_s for each in times)


@given(rows=ROWS, per_s=st.floats(1.0, 8_000.0), executors=EXECUTORS)
def test_the_end_is_never_reached_exactly_where_no_more_is_processed_than_arrives(
    rows: float, per_s: float, executors: int
) -> None:
    catch_up = catch_up_of(rows, per_s, model=batches(executors=executors))
    if catch_up is None:
        return
    assert math.isinf(catch_up.present.at_s) == (catch_up.present.capacity_per_s <= per_s)


@given(per_s=st.floats(1.0, 2_900.0), rows=st.floats(1.0, 1e7), more=st.floats(1.0, 1e6))
def test_a_larger_backlog_takes_longer(per_s: float, rows: float, more: float) -> None:
    model = batches()
    assert isinstance(model.performance, BatchModel)
    setup = model.setup(model.configuration)
    times_s = [catch_up_s(model.performance, per_s, setup, each) for each in (rows, rows + more)]
    assert times_s[0] <= times_s[1] + 1e-6
    assert np.isfinite(times_s).all()
