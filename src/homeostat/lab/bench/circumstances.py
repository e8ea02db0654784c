"""The circumstances of a measurement that a reader needs to judge and to repeat it: machine and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

import homeostat

PACKAGE = Path(homeostat.__file__).parent
_GIB = 2**30
_CPU_INFO = Path("/proc/cpuinfo")
_LONGEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Machine:
    """No host name, user or path: a kept result is published. An unknown processor or memory is None."""

    __pydantic_config__: ClassVar[Any] = ConfigDict(extra="forbid")

    cores: int
    memory_gib: float | None
    processor: str | None
    system: str
    python: str

    def __str__(self) -> str:
        memory = "unknown memory" if self.memory_gib is None else f"{self.memory_gib:g} GiB of memory"
        processor = self.processor or "unknown processor"
        return f"{self.cores} cores, {memory}, {processor}, {self.system}, Python {self.python}"


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of the source. `modified`: the source differed from it."""

    __pydantic_config__: ClassVar[Any] = ConfigDict(extra="forbid")

    id: str
    modified: bool

    def __str__(self) -> str:
        return f"commit `{self.id}`" + (", with uncommitted changes" if self.modified else "")


def this_machine() -> Machine:
    return Machine(
        cores=os.cpu_count() or 1,
        memory_gib=_memory_gib(),
        processor=_processor(),
        system=platform.system(),
        python=platform.python_version(),
    )


def this_commit(package: Path = PACKAGE) -> Commit | None:
    """The commit that the package was imported from, or None if it is not part of a Git repository.

    An installed package can lie inside the repository of another project. Only one that Git tracks counts.
    """
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit_id = _git(package, "rev-parse", "--short=12", "HEAD")
    if commit_id is None:
        return None
    return Commit(commit_id, modified=bool(_git(package, "status", "--porcelain", "--", ".")))


def _git(directory: Path, *arguments: str) -> str | None:
    """What Git prints, or None if it fails or is not installed."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, check=True, timeout=_LONGEST_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _processor(cpu_info: Path = _CPU_INFO) -> str | None:
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)
