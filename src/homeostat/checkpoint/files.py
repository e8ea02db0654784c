"""File access for checkpoints, on this machine or on any file system that Spark reaches through Hadoop."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Made = Literal["linked", "copied"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
# Object stores rename a directory by copying and deleting file by file. Schemes that may do so are left out.
_RENAMING_SCHEMES = ("file", "hdfs", "webhdfs", "swebhdfs")
_CHUNK_BYTES = 1 << 20
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory. Its name is relative to the listed directory."""

    name: str
    size: int
    directory: bool
    modified_s: float


class Files(Protocol):
    """Operations on one file system. Paths are strings; a path and a name are joined by a slash."""

    def entries(self, path: str) -> list[Entry]:
        """Return the content of a directory, sorted by name; empty if it does not exist."""

    def walk(self, path: str) -> Iterator[Entry]:
        """Yield every file below a directory, including hidden ones."""

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes:
        """Return the whole file. Raise FileNotFoundError if it is missing, OSError if it cannot be read."""

    def tail(self, path: str, size: int) -> bytes:
        """Return at most the last `size` bytes of a file."""

    def write(self, path: str, data: bytes) -> None:
        """Write the whole file or nothing, even if the machine fails."""

    def same(self, source: str, target: str) -> Made:
        """Give the target the content of the source, by a link if possible."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory. Raise FileExistsError if the target exists."""

    def renames_at_once(self, path: str) -> bool:
        """Return whether a directory beside this path is renamed in one step, instead of file by file."""

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory. Do nothing if it is missing."""

    def checksum(self, path: str) -> str:
        """Return the SHA-256 of a file."""


def files_of(location: str, spark: SparkSession | None = None) -> Files:
    """Return access to the files at a location.

    Plain paths and file: URIs are local. Any other scheme needs a Spark session, whose Hadoop settings apply.
    """
    if is_local(location):
        return LocalFiles()
    if spark is None:
        raise ConfigError(
            "this location is not on a local file system, and there is no Spark session to read it",
            where=location,
            fix="use a local path",
        )
    return HadoopFiles(spark)


def is_local(location: str) -> bool:
    """
    >>> is_local("/data/ckpt"), is_local("file:///data/ckpt"), is_local("hdfs://name/ckpt")
    (True, True, False)
    """
    return not _SCHEME.match(location) or location.startswith("file:")


def local_path(location: str) -> Path:
    """Return the path of a location. As in Hadoop, nothing in a file: URI is decoded, not even `%20`.

    >>> local_path("file:///data/my ckpt").as_posix(), local_path("file:/data").as_posix(), local_path("a").as_posix()
    ('/data/my ckpt', '/data', 'a')
    """
    return Path("/" + location[len("file:") :].lstrip("/") if location.startswith("file:") else location)


def real_location(location: str) -> str:
    """Return the location without links, `.` and `..`, so that a place has one name, however it is reached."""
    if not is_local(location):
        return location.rstrip("/") or location
    path = os.path.realpath(local_path(location))
    return f"file:{path}" if location.startswith("file:") else path


class LocalFiles:
    """The file system of this machine."""

    def entries(self, path: str) -> list[Entry]:
        try:
            with os.scandir(local_path(path)) as items:
                return sorted(filter(None, map(_entry, items)), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str) -> Iterator[Entry]:
        return _walk(self, path)

    def exists(self, path: str) -> bool:
        return local_path(path).exists()

    def read(self, path: str) -> bytes:
        return local_path(path).read_bytes()

    def tail(self, path: str, size: int) -> bytes:
        with local_path(path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        target = local_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        try:
            with fresh.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # Hadoop would compare the new content with the old checksum.
            target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
        _sync_directory(target.parent)

    def same(self, source: str, target: str) -> Made:
        old, new = local_path(source), local_path(target)
        new.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(old, new)
            return "linked"
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
        shutil.copy2(old, new)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        return "copied"

    def rename(self, source: str, target: str) -> None:
        old, new = local_path(source), local_path(target)
        if new.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        for parent in {old.parent, new.parent}:
            _sync_directory(parent)

    def renames_at_once(self, path: str) -> bool:
        """Tries a rename: a file system over an object store copies the files, so that they are different files
        afterwards."""
        before = local_path(path).parent / f".probe-{uuid4().hex}"
        after = before.with_name(f"{before.name}-renamed")
        before.mkdir(parents=True)
        try:
            (before / "file").touch()
            number = (before / "file").stat().st_ino
            before.rename(after)
            return (after / "file").stat().st_ino == number and not before.exists()
        except OSError:
            return False
        finally:
            for left_over in (before, after):
                shutil.rmtree(left_over, ignore_errors=True)

    def delete(self, path: str) -> None:
        target = local_path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def checksum(self, path: str) -> str:
        digest = hashlib.sha256()
        with local_path(path).open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
        return digest.hexdigest()


class HadoopFiles:
    """Any file system that Spark knows, through Hadoop. Tested on local files only."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._gateway = context._gateway
        self._jvm = context._jvm
        self._conf = context._jsc.hadoopConfiguration()

    def entries(self, path: str) -> list[Entry]:
        if not self.exists(path):
            return []
        entries = [
            Entry(
                str(status.getPath().getName()),
                int(status.getLen()),
                bool(status.isDirectory()),
                status.getModificationTime() / 1000.0,
            )
            for status in self._system(path).listStatus(self._path(path))
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def walk(self, path: str) -> Iterator[Entry]:
        return _walk(self, path)

    def exists(self, path: str) -> bool:
        """This is the first call for every location, so it reports a location that cannot be reached."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return bool(self._system(path).exists(self._path(path)))
        except (Py4JError, PySparkException) as error:
            raise HomeostatError(f"Spark cannot reach this location: {first_line(error)}", where=path) from error

    def read(self, path: str) -> bytes:
        with self._open(path) as stream:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def tail(self, path: str, size: int) -> bytes:
        with self._open(path) as stream:
            stream.seek(max(0, self._system(path).getFileStatus(self._path(path)).getLen() - size))
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def write(self, path: str, data: bytes) -> None:
        target = self._path(path)
        fresh = self._path(f"{path}.{uuid4().hex}.tmp")
        system = self._system(path)
        stream = system.create(fresh)
        try:
            stream.write(bytearray(data))
            stream.hsync()
        finally:
            stream.close()
        # FileSystem.rename refuses an existing target; FileContext.rename can replace it atomically.
        overwrite = self._gateway.new_array(self._jvm.org.apache.hadoop.fs.Options.Rename, 1)
        overwrite[0] = self._jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(system.getUri(), self._conf)
        context.rename(fresh, target, overwrite)

    def same(self, source: str, target: str) -> Made:
        copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
        is_copied = copy(
            self._system(source), self._path(source), self._system(target), self._path(target), False, self._conf
        )
        if not is_copied:
            raise OSError(f"cannot copy {source} to {target}")
        return "copied"

    def rename(self, source: str, target: str) -> None:
        system, new = self._system(source), self._path(target)
        if system.exists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        system.mkdirs(new.getParent())
        if not system.rename(self._path(source), new):
            raise OSError(f"cannot rename {source} to {target}")

    def renames_at_once(self, path: str) -> bool:
        return str(self._system(path).getUri().getScheme()) in _RENAMING_SCHEMES

    def delete(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)

    def checksum(self, path: str) -> str:
        with self._open(path) as stream:
            return str(self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))

    @contextmanager
    def _open(self, path: str) -> Iterator[Any]:
        from py4j.protocol import Py4JJavaError

        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        stream = self._system(path).open(self._path(path))
        try:
            yield stream
        except Py4JJavaError as error:
            raise OSError(f"cannot read {path}: {error.java_exception.getMessage()}") from error
        finally:
            stream.close()

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def _walk(files: Files, path: str) -> Iterator[Entry]:
    for entry in files.entries(path):
        if entry.directory:
            for inner in _walk(files, f"{path}/{entry.name}"):
                yield replace(inner, name=f"{entry.name}/{inner.name}")
        else:
            yield entry


def _entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        status = item.stat()
    except FileNotFoundError:  # the running query removed it meanwhile
        return None
    return Entry(item.name, status.st_size, item.is_dir(), status.st_mtime)


def _sync_directory(path: Path) -> None:
    """A rename is durable once the directory is on disk. Some file systems cannot guarantee that."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
