"""A checkpoint from before Spark 3.1, completed with the schemas of its state. The checkpoint itself is not changed."""

from __future__ import annotations

import os
import re
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.checkpoint.files import LocalFiles, is_local, local_path
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.store_files import DEFAULT_STORE, store_path
from homeostat.core.errors import ConfigError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = "key STRUCT<word: STRING>, value STRUCT<count: BIGINT>"
_PLACE = re.compile(r"(?:(\d+)/)?([\w-]+):\s*(key\s.*)", re.DOTALL | re.IGNORECASE)
_CHUNK = 65_535 // 3  # characters: Java's writeUTF writes at most 65,535 bytes, up to three for each character


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """The schema of a store, as the user gave it: `ddl` has the columns key and value."""

    ddl: str
    store: str = DEFAULT_STORE
    operator: int = 0

    @classmethod
    def parse(cls, text: str) -> GivenSchema:
        """
        >>> GivenSchema.parse("1/left-keyToNumValues: key STRUCT<a: INT>, value STRUCT<n: BIGINT>").store
        'left-keyToNumValues'
        """
        match = _PLACE.fullmatch(text.strip())
        return cls(match[3], match[2], int(match[1] or 0)) if match else cls(text.strip())


@contextmanager
def completed(checkpoint: Checkpoint, spark: SparkSession, schemas: Sequence[GivenSchema]) -> Iterator[Checkpoint]:
    """Yield the checkpoint itself if no schema is given; otherwise a directory of links to its files, with the schema
    files that Spark 3.1 would have written."""
    if not schemas:
        yield checkpoint
        return
    if not is_local(checkpoint.location):
        raise ConfigError(
            "a schema can only be given for a checkpoint on a local disk",
            where=checkpoint.location,
            fix="copy the checkpoint to a local disk",
        )
    contents = {}
    for each in schemas:
        path = store_path(each.operator, 0, each.store)
        if not checkpoint.files.exists(checkpoint.path(path)):
            raise ConfigError(f"the state has no store {path}", where="--schema", fix=f"give it as {EXAMPLE!r}")
        contents[path] = _schema_file(spark, each.ddl)
    with tempfile.TemporaryDirectory(prefix="homeostat-state-") as directory:
        _link(local_path(checkpoint.location).absolute(), Path(directory), contents)
        yield Checkpoint(directory, LocalFiles())


def _schema_file(spark: SparkSession, ddl: str) -> bytes:
    from pyspark.errors import PySparkException

    try:
        schema = spark.createDataFrame([], ddl).schema
    except PySparkException as error:
        raise ConfigError(
            f"not a schema: {first_line(error)}", where="--schema", fix=f"write it as {EXAMPLE!r}"
        ) from None
    if schema.names != ["key", "value"] or any(field.dataType.typeName() != "struct" for field in schema):
        raise ConfigError("not the schema of a state store", where="--schema", fix=f"write it as {EXAMPLE!r}")
    return _text("v2") + b"".join(_chunks(field.dataType.json()) for field in schema)


def _chunks(text: str) -> bytes:
    parts = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
    return struct.pack(">i", len(parts)) + b"".join(map(_text, parts))


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def _link(source: Path, target: Path, contents: Mapping[str, bytes], below: str = "") -> None:
    """Make `target` look like `source`: directories that get a new file are made, everything else is a link."""
    for entry in os.scandir(source):
        inner, place = f"{below}/{entry.name}".lstrip("/"), target / entry.name
        if any(path == inner or path.startswith(f"{inner}/") for path in contents):
            place.mkdir()
            _link(Path(entry.path), place, contents, inner)
        elif entry.name != "_metadata" or below not in contents:
            place.symlink_to(entry.path)
    if below in contents:
        (target / "_metadata").mkdir()
        (target / "_metadata" / "schema").write_bytes(contents[below])
