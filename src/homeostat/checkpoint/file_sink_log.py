"""Adds and removes entries in the log of a file sink, which must have one for every batch.

A repartitioning is a batch without an entry, so this adds one. Without it the query fails some batches later, when the
sink compacts the entries of ten batches into one. Restoring a savepoint from before the repartitioning must remove the
entry again, or the sink would skip the batch that then gets its number. Restoring a savepoint from after the
repartitioning needs the entry again. So entries are set aside and not deleted.
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
    """Return the directory of a file sink from Spark's description of the sink; empty for other sinks.

    >>> directory_of("FileSink[file:/data/out]"), directory_of("ForeachBatchSink")
    ('file:/data/out', '')
    """
    match = _DESCRIBED.fullmatch(description)
    return match[1] if match else ""


def require_log(checkpoint: Checkpoint, directory: str) -> None:
    if not checkpoint.files.exists(f"{directory}/{LOG}"):
        raise ConfigError(
            f"this is not the output directory of a file sink: it has no {LOG}",
            where=directory,
            fix="give the directory that the query writes its files to",
        )


def add_entry(spark: SparkSession, checkpoint: Checkpoint, directory: str, batch: int) -> None:
    """Add an entry that says that this batch wrote no files. Spark's own code writes it. The batch is first noted in a
    file beside the checkpoint, so that the entry can be found again."""
    _write_notes(checkpoint, {**_notes(checkpoint), str(batch): directory})
    for path in _entries(directory, batch):
        checkpoint.files.delete(_aside_path(path))
    context: Any = spark.sparkContext
    sinks = context._jvm.org.apache.spark.sql.execution.streaming.sinks
    log = sinks.FileStreamSinkLog(
        sinks.FileStreamSinkLog.VERSION(), spark._jsparkSession, f"{directory}/{LOG}", context._jvm.scala.Option.empty()
    )
    log.add(batch, context._gateway.new_array(sinks.SinkFileStatus, 0))
    if not _has_entry(checkpoint, directory, batch):
        raise ConfigError(
            f"Spark did not add an entry for batch {batch} to the log of the file sink",
            where=directory,
            fix="check that the directory is writable, then run the command again",
        )


def adjust_to(checkpoint: Checkpoint, restored_batch: int) -> None:
    """Adjust the log to a checkpoint that was restored to this batch: set later entries aside, put others back."""
    for batch, directory in sorted(_notes(checkpoint).items(), key=lambda each: int(each[0])):
        if int(batch) > restored_batch:
            _set_aside(checkpoint, directory, int(batch))
        else:
            _put_back(checkpoint, directory, int(batch))


def _set_aside(checkpoint: Checkpoint, directory: str, batch: int) -> None:
    files, paths = checkpoint.files, _entries(directory, batch)
    if any(files.exists(_aside_path(path)) for path in paths):
        return  # done before: an entry that exists now belongs to a later batch with the same number
    for path in paths:
        if files.exists(path):
            files.rename(path, _aside_path(path))
        folder, _, name = path.rpartition("/")
        # Spark would take a remaining checksum for an entry that another query wrote.
        files.delete(f"{folder}/.{name}.crc")


def _put_back(checkpoint: Checkpoint, directory: str, batch: int) -> None:
    files = checkpoint.files
    for path in _entries(directory, batch):
        if files.exists(_aside_path(path)):
            if _has_entry(checkpoint, directory, batch):  # another batch has this number now
                _write_notes(
                    checkpoint, {number: place for number, place in _notes(checkpoint).items() if number != str(batch)}
                )
                files.delete(_aside_path(path))
            else:
                files.rename(_aside_path(path), path)


def _has_entry(checkpoint: Checkpoint, directory: str, batch: int) -> bool:
    return any(checkpoint.files.exists(path) for path in _entries(directory, batch))


def _aside_path(path: str) -> str:
    """Spark ignores names that start with a dot."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.laid-aside"


def _entries(directory: str, batch: int) -> tuple[str, str]:
    """The two possible names of an entry. Every tenth entry is compacted and contains those before it."""
    return f"{directory}/{LOG}/{batch}", f"{directory}/{LOG}/{batch}.compact"


def _notes(checkpoint: Checkpoint) -> Mapping[str, str]:
    with suppress(FileNotFoundError):
        notes: dict[str, str] = json.loads(checkpoint.files.read(_path(checkpoint)))
        return notes
    return {}


def _write_notes(checkpoint: Checkpoint, notes: Mapping[str, str]) -> None:
    checkpoint.files.write(_path(checkpoint), json.dumps(notes).encode())


def _path(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.told-sinks.json"
