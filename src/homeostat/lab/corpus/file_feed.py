"""Writes files into a directory at a steady rate of rows, as an upstream system does."""

from __future__ import annotations

import json
import threading
import time
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

WORDS = 200


class FileFeed:
    """`rows_per_file` can change at any time. Each file appears complete, under a name that was never used before."""

    def __init__(self, directory: Path, rate_per_s: float, rows_per_file: int) -> None:
        self.directory, self.rate_per_s, self.rows_per_file = directory, rate_per_s, rows_per_file
        self._first_rows = rows_per_file
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="corpus files", daemon=True)

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write(0, 0, self._first_rows)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _write_on(self) -> None:
        began_s, rows = time.monotonic(), self._first_rows
        for number in count(1):
            due_s = began_s + rows / self.rate_per_s
            if self._over.wait(max(0.0, due_s - time.monotonic())):
                return
            size = self.rows_per_file
            self._write(number, rows, size)
            rows += size

    def _write(self, number: int, first: int, rows: int) -> None:
        lines = [json.dumps({"row": row, "word": f"word-{row % WORDS}"}) for row in range(first, first + rows)]
        draft = self.directory / f".{number}.json"
        draft.write_text("\n".join(lines))
        draft.rename(self.directory / f"{number}.json")
