"""The first values of a query's knobs, and where it keeps its control file."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.configuration import ROWS_PER_TRIGGER, SOURCE_PARTITIONS, STATE_PARTITIONS, TRIGGER_S, Knob
from homeostat.core.objective import Objective
from homeostat.spark.application_query import DEFAULT_STATE_PARTITIONS, ApplicationQuery, first_values
from homeostat.spark.pipeline import Pipeline

OBJECTIVE = Objective(throughput_per_s=1000.0)


def pipeline(trigger_s: float | None = None, **start: int) -> Pipeline:
    return Pipeline("words", lambda ctx: None, OBJECTIVE, trigger_s, start)


def test_without_a_trigger_none_is_set_and_the_limit_is_for_the_default_one() -> None:
    assert first_values(pipeline()) == {
        Knob(STATE_PARTITIONS, "words"): DEFAULT_STATE_PARTITIONS,
        Knob(SOURCE_PARTITIONS, "words"): DEFAULT_STATE_PARTITIONS,
        Knob(ROWS_PER_TRIGGER, "words"): 20_000,
    }


def test_what_the_pipeline_names_is_taken() -> None:
    values = first_values(pipeline(2.0, state_partitions=3, source_partitions=4, rows_per_trigger=500))
    assert values == {
        Knob(TRIGGER_S, "words"): 2.0,
        Knob(STATE_PARTITIONS, "words"): 3,
        Knob(SOURCE_PARTITIONS, "words"): 4,
        Knob(ROWS_PER_TRIGGER, "words"): 500,
    }


def test_without_a_manager_events_are_dropped_and_no_run_is_known(tmp_path: Path) -> None:
    query = ApplicationQuery(pipeline(), tmp_path, {})
    assert query.name == "words"
    assert query.control == tmp_path / "control" / "words.json"
    assert not query.is_run("some run")
    assert query.engine is None
