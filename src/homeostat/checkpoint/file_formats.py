"""Checks whether a file of a checkpoint is complete, from its bytes and without Spark."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LZ4_MAGIC = b"LZ4Block"
# The header of an lz4 block. The last block of a file has nothing else.
END_BYTES = 21
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_CRC_MAGIC = b"crc\x00"
_ROCKSDB_METADATA = "metadata"
_NO_OFFSET = "-"


@dataclass(frozen=True, slots=True)
class Shared:
    """A file that a RocksDB snapshot refers to and does not contain. Its path is relative to the store."""

    path: str
    size: int


def log_problem(data: bytes, newest: int, *, lines_needed: int = 1) -> str | None:
    """Say what is wrong with a file that has a version line, then JSON lines. Spark reads versions up to `newest`."""
    if not data.strip():
        return "is empty"
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return "is not text"
    number = lines[0].strip().removeprefix("v")
    if not lines[0].startswith("v") or not number.isdigit():
        return f"starts with {lines[0][:20]!r} instead of its version"
    if not 1 <= int(number) <= newest:
        return f"has version {number}, but Spark reads only versions 1 to {newest}"
    if len(lines) < lines_needed:
        return "is cut off"
    if len(lines) > 1 and lines[1].strip() and not _is_json_object(lines[1]):
        return "is cut off or overwritten: its second line is not JSON"
    # An offset is JSON or "-"; in version 2 the name of its source comes first.
    offsets = [line.partition(":")[2] if number == "2" else line for line in lines[2:]]
    if not all(_is_json(offset) or offset == _NO_OFFSET for offset in offsets):
        return "is cut off or overwritten: an offset is not JSON"
    return None


def empty_problem(data: bytes) -> str | None:
    return None if data else "is empty"


def json_problem(data: bytes) -> str | None:
    if not data.strip():
        return "is empty"
    return None if _is_json_object(data) else "is not JSON"


def stream_problem(data: bytes, codec: str) -> str | None:
    """Say what is wrong with a compressed file of changes. For codecs without an end mark, only whether it is empty.

    >>> stream_problem(b"", "lz4"), stream_problem(b"LZ4Bloc", "lz4")
    ('is empty', 'is not in lz4 format')
    """
    if not data:
        return "is empty"
    match codec:
        case "lz4":
            return _lz4_problem(data)
        case "zstd":
            return _zstd_problem(data)
    return None


def end_problem(tail: bytes, codec: str) -> str | None:
    """Like `stream_problem`, from the last bytes of a file that is too large to be read whole."""
    if codec != "lz4" or (tail.startswith(_LZ4_MAGIC) and tail[9:17] == bytes(8)):
        return None
    return "is cut off"


def snapshot_problem(data: bytes) -> str | None:
    """Say what is wrong with a RocksDB snapshot, a zip file with its directory at the end."""
    if not data:
        return "is empty"
    try:
        shared_files(data)
    except (zipfile.BadZipFile, EOFError, zlib.error):
        return "is not a complete zip file"
    except (KeyError, ValueError):
        return "has no readable list of its RocksDB files"
    return None


def shared_files(snapshot: bytes) -> list[Shared]:
    """Return the files that a RocksDB snapshot shares with others."""
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
        version, _, body = archive.read(_ROCKSDB_METADATA).decode().partition("\n")
    if version.strip() != "v1":
        raise ValueError(f"version {version!r}")
    metadata: dict[str, Any] = json.loads(body)
    tables = [Shared(f"SSTs/{file['dfsSstFileName']}", int(file["sizeBytes"])) for file in metadata["sstFiles"]]
    logs = [Shared(f"logs/{file['dfsLogFileName']}", int(file["sizeBytes"])) for file in metadata.get("logFiles") or ()]
    return [*tables, *logs]


def checksum_problem(data: bytes, sums: bytes) -> str | None:
    """Say whether the bytes differ from the checksums that Hadoop keeps in a hidden file beside a local file."""
    if not sums.startswith(_CRC_MAGIC) or len(sums) < 8:
        return None
    (size,) = struct.unpack(">i", sums[4:8])
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    expected = struct.unpack(f">{(len(sums) - 8) // 4}I", sums[8 : 8 + (len(sums) - 8) // 4 * 4])
    same = len(chunks) == len(expected) and all(zlib.crc32(c) == e for c, e in zip(chunks, expected, strict=True))
    return None if same else "does not match its checksum"


def _is_json_object(text: str | bytes) -> bool:
    return _is_json(text) and isinstance(json.loads(text), dict)


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _lz4_problem(data: bytes) -> str | None:
    """A file consists of blocks, each a header and content. The last block is empty."""
    at = 0
    while at < len(data):
        header = data[at : at + END_BYTES]
        if not header.startswith(_LZ4_MAGIC):
            return "is not in lz4 format" if at == 0 else "is cut off or overwritten in the middle"
        if len(header) < END_BYTES:
            return "is cut off"
        packed_size, unpacked_size = struct.unpack("<ii", header[9:17])
        at += END_BYTES + packed_size
        if unpacked_size == 0:
            return None if at == len(data) else "has extra bytes after its end"
    return "is cut off"


def _zstd_problem(data: bytes) -> str | None:
    """A file consists of frames of blocks. The header of a block says whether it is the last."""
    try:
        if not data.startswith(_ZSTD_MAGIC):
            return "is not in zstd format"
        at = 0
        while at < len(data):
            at = _after_zstd_frame(data, at)
    except (IndexError, struct.error):
        return "is cut off"
    return None if at == len(data) else "is cut off"


def _after_zstd_frame(data: bytes, at: int) -> int:
    (magic,) = struct.unpack_from("<I", data, at)
    if magic in _ZSTD_SKIPPABLE:
        (size,) = struct.unpack_from("<I", data, at + 4)
        return int(at + 8 + size)
    descriptor = data[at + 4]
    single, has_sum = descriptor >> 5 & 1, descriptor >> 2 & 1
    content = (single, 2, 4, 8)[descriptor >> 6]
    at += 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3] + content
    for last, size in _zstd_blocks(data, at):
        at += 3 + size
        if last:
            break
    return at + 4 * has_sum


def _zstd_blocks(data: bytes, at: int) -> Iterator[tuple[bool, int]]:
    while True:
        head = int.from_bytes((data[at], data[at + 1], data[at + 2]), "little")
        size = 1 if head >> 1 & 3 == 1 else head >> 3  # a block of one byte repeated holds only that byte
        yield bool(head & 1), size
        at += 3 + size
