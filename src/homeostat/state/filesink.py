"""The log of a file sink must have an entry for every batch: a repartitioning leaves none, and is told to it here.

Without that entry the query fails, some batches later, when the sink puts the entries of ten batches into one. With it,
going back behind the repartitioning must take the entry away again, or the sink would leave out the batch that then
gets its number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import ConfigError
from homeostat.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = "_spark_metadata"
_DESCRIBED = re.compile(r"FileSink\[(.*)\]")


def directory_of(description: str) -> str:
    """The directory of a file sink, from how Spark describes the sink; empty for other sinks.

    >>> directory_of("FileSink[file:/data/out]"), directory_of("ForeachBatchSink")
    ('file:/data/out', '')
    """
    match = _DESCRIBED.fullmatch(description)
    return match[1] if match else ""


def require_log(checkpoint: Checkpoint, directory: str) -> None:
    if not checkpoint.files.exists(f"{directory}/{LOG}"):
        raise ConfigError("this is no directory of a file sink", where=directory, fix=f"it has no {LOG}")


def tell(spark: SparkSession, checkpoint: Checkpoint, directory: str, batch: int) -> None:
    """That this batch brought no files. Spark's own code writes the entry; what was told is noted first."""
    noted = {**_noted(checkpoint), str(batch): directory}
    checkpoint.files.write(_path(checkpoint), json.dumps(noted).encode())
    context: Any = spark.sparkContext
    sinks = context._jvm.org.apache.spark.sql.execution.streaming.sinks
    log = sinks.FileStreamSinkLog(
        sinks.FileStreamSinkLog.VERSION(), spark._jsparkSession, f"{directory}/{LOG}", context._jvm.scala.Option.empty()
    )
    log.add(batch, context._gateway.new_array(sinks.SinkFileStatus, 0))
    if not any(checkpoint.files.exists(path) for path in _entries(directory, batch)):
        raise ConfigError(f"the sink's log has no entry for batch {batch}", where=directory)


def take_back(checkpoint: Checkpoint, after: int) -> None:
    """What was told of batches after this one."""
    noted = _noted(checkpoint)
    gone = {batch: directory for batch, directory in noted.items() if int(batch) > after}
    for batch, directory in gone.items():
        for path in _entries(directory, int(batch)):
            folder, _, name = path.rpartition("/")
            checkpoint.files.delete(path)
            # Spark takes a checksum that is left for an entry that somebody else wrote.
            checkpoint.files.delete(f"{folder}/.{name}.crc")
    if gone:
        left = {batch: directory for batch, directory in noted.items() if batch not in gone}
        checkpoint.files.write(_path(checkpoint), json.dumps(left).encode())


def _entries(directory: str, batch: int) -> tuple[str, str]:
    """Every tenth holds those before it as well."""
    return f"{directory}/{LOG}/{batch}", f"{directory}/{LOG}/{batch}.compact"


def _noted(checkpoint: Checkpoint) -> Mapping[str, str]:
    with suppress(FileNotFoundError):
        noted: dict[str, str] = json.loads(checkpoint.files.read(_path(checkpoint)))
        return noted
    return {}


def _path(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.told-sinks.json"
