"""A place for the log that can be filled: a small file system of its own or, without root, a limit on file sizes."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SIZE = "64m"  # enough for the log of a day, and quick to fill
BLOCK = b"\0" * (1 << 20)
FILLER = "filler"


class SmallDisk:
    """A directory. While `mounted`, it is a file system of its own, which `fill` fills. Its files stay afterwards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mounted = False

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(self.directory)]
        with suppress(OSError):
            self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.mounted:
            self.clear()
            aside = self.directory.with_name(f"{self.directory.name}-aside")
            shutil.copytree(self.directory, aside, dirs_exist_ok=True)
            subprocess.run(["umount", "--lazy", str(self.directory)], capture_output=True, check=True)
            self.mounted = False
            shutil.copytree(aside, self.directory, dirs_exist_ok=True)
            shutil.rmtree(aside)

    @property
    def how(self) -> str:
        return f"a file system of {SIZE}" if self.mounted else "a limit on the size of files"

    def fill(self) -> None:
        with suppress(OSError), (self.directory / FILLER).open("wb", buffering=0) as file:
            while True:
                size = len(BLOCK)
                while size and not file.write(BLOCK[:size]):
                    size //= 2

    def clear(self) -> None:
        (self.directory / FILLER).unlink(missing_ok=True)
