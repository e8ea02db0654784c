"""Which sessions get the Kafka connector, and what is said if it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.spark.cluster.kafka_connector import FETCH, connector_jars, fix_for, why_missing, with_connector


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for jar in connector_jars():
        jar.path.parent.mkdir(parents=True, exist_ok=True)
        jar.path.write_bytes(b"")
    return [jar.path.as_uri() for jar in connector_jars()]


def test_what_was_fetched_joins_the_jars_of_the_user(fetched: list[str]) -> None:
    assert with_connector({"spark.jars": "mine.jar"})["spark.jars"].split(",") == ["mine.jar", *fetched]
    assert with_connector({"spark.app.name": "app"}) == {"spark.app.name": "app", "spark.jars": ",".join(fetched)}


def test_a_connector_of_the_user_is_left_alone(fetched: list[str]) -> None:
    own = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}
    assert with_connector(own) == own


def test_without_a_connector_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert FETCH in why_missing()
    assert FETCH in fix_for("Failed to find the data source: kafka. Make sure the provider name is correct")
    assert fix_for("Table not found") == ""
    assert with_connector({}) == {}


def test_another_release_of_spark_is_named() -> None:
    assert connector_jars("3.5.9") == ()
    assert "no Kafka connector was tested with Spark 3.5.9" in why_missing("3.5.9")
