"""The jars that a session needs to read and write Kafka, and what to do if they are missing."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from homeostat.spark.cluster import jars
from homeostat.spark.cluster.embedded import spark_home
from homeostat.spark.cluster.jars import Jar
from homeostat.spark_release import release

FETCH = "homeostat fetch kafka"
CONNECTOR = "spark-sql-kafka"
JARS = "spark.jars"
# With one of these settings the user brings jars of their own.
_USERS_OWN = (JARS, "spark.jars.packages", "spark.driver.extraClassPath")
_MISSING = re.compile(r"(?i)(failed to find|cannot find)( the)? data source:?\s*`?kafka")


def connector_jars(spark_version: str = "") -> tuple[Jar, ...]:
    """The connector that was tested with this Spark, by default the installed one; empty if there is none."""
    version = release(spark_version or importlib.metadata.version("pyspark"))
    lists = files("homeostat.spark.cluster")
    name = lists / f"kafka-connector-{'.'.join(map(str, version))}.jars"
    return jars.read_list(name.read_text()) if name.is_file() else ()


def why_missing(spark_version: str = "") -> str:
    """Why sessions cannot use Kafka, and what to do; empty if they can."""
    if _in_spark():
        return ""
    required_jars = connector_jars(spark_version)
    if not required_jars:
        version = spark_version or importlib.metadata.version("pyspark")
        return (
            f"no Kafka connector was tested with Spark {version}: add yours with "
            f"--conf spark.jars.packages=org.apache.spark:{CONNECTOR}-0-10_2.13:{version}"
        )
    return f"Spark's Kafka connector is not installed: {FETCH}" if jars.missing(required_jars) else ""


def with_connector(conf: Mapping[str, str]) -> dict[str, str]:
    """These settings with the connector, if it was fetched and the settings do not name another one."""
    brought = any(CONNECTOR in conf.get(name, "") for name in _USERS_OWN)
    if brought or why_missing():
        return dict(conf)
    paths = [jar.path.as_uri() for jar in connector_jars()]
    own_jars = conf.get(JARS, "")
    return (
        {**conf, JARS: ",".join([*([own_jars] if own_jars else []), *paths])}
        if paths and not _in_spark()
        else dict(conf)
    )


def fix_for(error: str) -> str:
    """What to do about an error of Spark that says that it has no Kafka connector; empty for any other error."""
    return why_missing() if _MISSING.search(error) else ""


def _in_spark() -> bool:
    """Whether the jars of the installed Spark include a connector."""
    return any(Path(spark_home() / "jars").glob(f"{CONNECTOR}*.jar"))
