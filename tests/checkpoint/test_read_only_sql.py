"""Spark's own parser tells a query from anything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint.read_only_sql import require_query
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.local_spark


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "select key.word, count(*) from state group by 1 having count(*) > 1 order by 2 limit 3",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x JOIN state ON a = 1 WHERE a IN (SELECT 1)",
        "VALUES (1), (2)",
        "TABLE state",
        "SELECT 1 UNION ALL SELECT 2",
        "FROM state SELECT *",
        "SELECT explode(transform(array(1), x -> x + 1))",
        "SELECT * FROM range(3), LATERAL (SELECT id + 1)",
    ],
)
def test_queries_are_accepted(spark: SparkSession, sql: str) -> None:
    require_query(spark, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE TEMPORARY VIEW state AS SELECT 1",
        "DROP VIEW state",
        "INSERT OVERWRITE DIRECTORY '{place}' USING parquet SELECT 1",
        "WITH x AS (SELECT 1 AS a) INSERT INTO t SELECT * FROM x",
        "FROM state INSERT INTO t SELECT *",
        "SET spark.sql.shuffle.partitions=1",
        "ADD JAR '{place}'",
        "EXECUTE IMMEDIATE 'CREATE TABLE t (a INT)'",
        "CACHE TABLE state",
        "EXPLAIN SELECT 1",
        "BEGIN SELECT 1; END",
        "SELECT 1; DROP VIEW state",
        "",
    ],
)
def test_anything_else_is_refused(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    with pytest.raises(ConfigError) as refused:
        require_query(spark, sql.format(place=tmp_path / "written"))
    assert refused.value.where == "SQL"
    assert "\n" not in refused.value.line
    assert list(tmp_path.iterdir()) == []


CALL = "java_method('java.lang.System', 'setProperty', 'homeostat', 'changed')"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {CALL}",
        f"SELECT {CALL.replace('java_method', 'REFLECT')}",
        f"SELECT {CALL.replace('java_method', 'try_reflect')}",
        f"SELECT 1 WHERE {CALL} = 'x'",
        f"SELECT (SELECT {CALL})",
        f"SELECT 1 WHERE EXISTS (SELECT {CALL})",
        f"WITH x AS (SELECT {CALL}) SELECT * FROM x",
        f"SELECT * FROM VALUES ({CALL})",
        f"SELECT 1 ORDER BY {CALL}",
        f"SELECT transform(array(1), x -> {CALL})",
        f"SELECT 1 IN (SELECT {CALL})",
        f"SELECT * FROM range(1), LATERAL (SELECT {CALL})",
        f"SELECT count(*) FROM range(1) GROUP BY {CALL} HAVING max({CALL}) = ''",
        "SELECT TRANSFORM (1) USING 'cat' AS (a)",
    ],
)
def test_a_query_calls_no_java_and_starts_no_program(spark: SparkSession, sql: str) -> None:
    with pytest.raises(ConfigError, match=r"calls into Java|starts a program"):
        require_query(spark, sql)
