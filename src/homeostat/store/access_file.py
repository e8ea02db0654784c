"""Sign-ins and refusals, one JSON line each, in a file of bounded size beside the log."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.store.codec import dump, load, split_record

# About 20,000 records in each of two files: a choice that keeps months of sign-ins, and costs at most 8 MB of disk.
LARGEST_BYTES = 4_000_000


class AccessFile:
    """Separate from the log, because it belongs to no run and only operators may read it (mode 0600)."""

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}.access.jsonl")
        self._older = self.path.with_name(f"{self.path.name}.1")

    def append(self, record: Record) -> None:
        head, body = split_record(record)
        line = dump([head.id, head.kind, head.at_s, head.text, body]) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self._open()
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise StoreError(f"accesses cannot be recorded: {error.strerror}", where=str(self.path)) from error

    def newest(self, limit: int) -> list[Record]:
        """The newest records first. Lines that cannot be read are left out."""
        records: list[Record] = []
        for path in (self.path, self._older):
            try:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            records += [record for line in reversed(lines) if (record := _record(line)) is not None]
            if len(records) >= limit:
                break
        return records[:limit]

    def _open(self) -> int:
        """The file, locked, with room for a line. Another process may have replaced it meanwhile."""
        while True:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_size < LARGEST_BYTES:
                return file
            if self.path.exists() and self.path.stat().st_ino == os.fstat(file).st_ino:
                self.path.replace(self._older)
            os.close(file)


def _record(line: str) -> Record | None:
    try:
        fields = load(line)
        id, kind, at_s, text, body = fields if isinstance(fields, list) else []
        content = load(str(body))
    except (ValueError, RecursionError):
        return None
    if not isinstance(at_s, int | float) or not isinstance(content, dict):
        return None
    return Record(str(id), str(kind), float(at_s), str(text), body=content)
