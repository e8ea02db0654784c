"""Handles of queries that do not come from this driver, or whose plan cannot be read."""

from __future__ import annotations

import math
from typing import Any, cast

from homeostat.spark.sense.declared_steps import NO_STEPS
from homeostat.spark.sense.query_handle import QueryHandle, known_sources


def test_a_handle_knows_nothing_by_default() -> None:
    handle = QueryHandle("words", "run-1")
    assert list(handle.recent_progress()) == []
    assert (handle.plan(), handle.busy(), handle.steps, handle.sources) == ("", False, NO_STEPS, ())
    assert math.isnan(handle.trigger_s)


def test_without_a_private_interface_of_spark_the_sources_are_unknown() -> None:
    assert known_sources(cast("Any", object())) == ()
