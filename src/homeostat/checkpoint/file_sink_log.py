"""The log of a file sink must have an entry for every batch: a repartitioning leaves none, and is told to it here.

Without that entry the query fails, some batches later, when the sink puts the entries of ten batches into one. With it,
going back behind the repartitioning must take the entry away again, or the sink would leave out the batch that then
gets its number; and going forward to it once more needs the entry again. So what is taken away is laid aside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.errors import ConfigError

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
    _note(checkpoint, {**_noted(checkpoint), str(batch): directory})
    for path in _entries(directory, batch):
        checkpoint.files.delete(_aside(path))
    context: Any = spark.sparkContext
    sinks = context._jvm.org.apache.spark.sql.execution.streaming.sinks
    log = sinks.FileStreamSinkLog(
        sinks.FileStreamSinkLog.VERSION(), spark._jsparkSession, f"{directory}/{LOG}", context._jvm.scala.Option.empty()
    )
    log.add(batch, context._gateway.new_array(sinks.SinkFileStatus, 0))
    if not _has_entry(checkpoint, directory, batch):
        raise ConfigError(f"the sink's log has no entry for batch {batch}", where=directory)


def follow(checkpoint: Checkpoint, restored: int) -> None:
    """The checkpoint is at this batch again: what was told of later ones is laid aside, of others put back."""
    for batch, directory in sorted(_noted(checkpoint).items(), key=lambda each: int(each[0])):
        if int(batch) > restored:
            _lay_aside(checkpoint, directory, int(batch))
        else:
            _put_back(checkpoint, directory, int(batch))


def _lay_aside(checkpoint: Checkpoint, directory: str, batch: int) -> None:
    files, paths = checkpoint.files, _entries(directory, batch)
    if any(files.exists(_aside(path)) for path in paths):
        return  # was done before; an entry that is there now is that of a batch which got the number since
    for path in paths:
        if files.exists(path):
            files.rename(path, _aside(path))
        folder, _, name = path.rpartition("/")
        # Spark takes a checksum that is left for an entry that somebody else wrote.
        files.delete(f"{folder}/.{name}.crc")


def _put_back(checkpoint: Checkpoint, directory: str, batch: int) -> None:
    files = checkpoint.files
    for path in _entries(directory, batch):
        if files.exists(_aside(path)):
            if _has_entry(checkpoint, directory, batch):  # another batch got the number since
                _note(checkpoint, {told: at for told, at in _noted(checkpoint).items() if told != str(batch)})
                files.delete(_aside(path))
            else:
                files.rename(_aside(path), path)


def _has_entry(checkpoint: Checkpoint, directory: str, batch: int) -> bool:
    return any(checkpoint.files.exists(path) for path in _entries(directory, batch))


def _aside(path: str) -> str:
    """Spark overlooks such a name."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.laid-aside"


def _entries(directory: str, batch: int) -> tuple[str, str]:
    """Every tenth holds those before it as well."""
    return f"{directory}/{LOG}/{batch}", f"{directory}/{LOG}/{batch}.compact"


def _noted(checkpoint: Checkpoint) -> Mapping[str, str]:
    with suppress(FileNotFoundError):
        noted: dict[str, str] = json.loads(checkpoint.files.read(_path(checkpoint)))
        return noted
    return {}


def _note(checkpoint: Checkpoint, noted: Mapping[str, str]) -> None:
    checkpoint.files.write(_path(checkpoint), json.dumps(noted).encode())


def _path(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.told-sinks.json"
