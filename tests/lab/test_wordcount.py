"""The word count of the experiments."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.core.objective import Objective
from homeostat.lab.load_profile import Profile
from homeostat.lab.row_ledger import RowDifferences, RowLedger, write_marks
from homeostat.lab.wordcount import NAME, _count, application, specification, worker, write_app
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=5)


def test_the_written_application_is_the_specified_pipeline(tmp_path: Path) -> None:
    objective = Objective(throughput_per_s=500.0)
    spec = specification(PROFILE, tmp_path / "ledger", objective, executors=3, rows_per_trigger=900, trigger_s=4.0)
    pipeline = runpy.run_path(str(write_app(tmp_path / "apps" / "words.py", spec)))["wordcount"]
    assert isinstance(pipeline, Pipeline)
    assert (pipeline.name, pipeline.objective, pipeline.trigger_s) == (NAME, objective, 4.0)
    assert pipeline.start == {
        "executors": 3,
        "source_partitions": 8,
        "state_partitions": 4,
        "rows_per_trigger": 900,
    }


def test_without_a_bound_the_default_of_homeostat_applies(tmp_path: Path) -> None:
    import json
    from dataclasses import asdict

    pipeline = application(json.dumps(asdict(specification(PROFILE, tmp_path))))
    assert "rows_per_trigger" not in pipeline.start


def test_the_worker_passes_on_every_word_in_order() -> None:
    import pandas as pd

    words = pd.DataFrame({"word": [f"word-{number}" for number in range(25)], "row": range(25)})
    (result,) = worker(0.0)(iter([words]))
    assert list(result.columns) == ["word"]
    assert result["word"].tolist() == words["word"].tolist()


@pytest.mark.spark
def test_marked_rows_are_found_in_the_ledger_one_by_one(local_spark: SparkSession, tmp_path: Path) -> None:
    spec = specification(PROFILE, tmp_path / "ledger", wait_ms=0.0, by_row=True)
    rows = local_spark.range(12_000).selectExpr("id AS row", "'word' AS word")
    doubled = local_spark.range(7, 9).selectExpr("id AS row", "'word' AS word")
    write = write_marks(tmp_path / "ledger")
    write(_count(rows, spec), 0)
    assert differences(tmp_path / "ledger", 12_000) == RowDifferences(12_000)
    write(_count(rows.where("row != 5000").union(doubled), spec), 1)
    wrong = ("row 5000: lost", "row 7: counted twice", "row 8: counted twice")
    assert differences(tmp_path / "ledger", 12_000) == RowDifferences(12_000, 1, 2, 0, wrong)


def differences(directory: Path, rows: int) -> RowDifferences:
    ledger = RowLedger(directory)
    ledger.read({1: rows}, until=1)
    row_differences = ledger.differences(rows)
    return replace(
        row_differences,
        differing_rows=tuple(sorted(row_differences.differing_rows, key=lambda words: "twice" in words)),
    )
