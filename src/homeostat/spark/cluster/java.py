"""Finds a Java that can run Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from homeostat.core.errors import ConfigError

OLDEST_VERSION = 17
NEEDED_MODULE = "jdk.incubator.vector"
LOCAL_DIRECTORY = ".java"
FIX = f"install OpenJDK {OLDEST_VERSION} or newer (`make setup` does on Debian and Ubuntu), or set JAVA_HOME to one"
ANSWER_LIMIT_S = 60.0  # a JVM starts in a second; a busy machine takes many times as long


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: str

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first usable Java of JAVA_HOME, the PATH and the directory `.java` that `make setup` may have created."""
    refusals = []
    for origin, home in _candidates():
        java, reason = _inspect(home)
        if java is not None:
            return java
        refusals.append(f"{origin} {home} {reason}")
    raise ConfigError(f"Spark needs Java: {'; '.join(refusals) or 'none found'}", fix=FIX)


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if command := shutil.which("java"):
        yield "on the PATH", Path(command).resolve().parent.parent
    checkout = Path(__file__).resolve().parents[3]
    for directory in dict.fromkeys((checkout, Path.cwd())):
        home_there = directory / LOCAL_DIRECTORY / "home"
        if home_there.exists():
            yield "extracted in", home_there.resolve()


def _inspect(home: Path) -> tuple[Java | None, str]:
    """The Java in this directory, or why Spark cannot use it."""
    command = home / "bin" / "java"
    try:
        version = _number(_answer(command, "-version"))
        modules = _answer(command, "--list-modules")
    except (OSError, subprocess.SubprocessError):
        return None, "does not run"
    if _major(version) < OLDEST_VERSION:
        return None, f"is version {version or 'unknown'}, Spark requires {OLDEST_VERSION} or newer"
    if NEEDED_MODULE not in modules:
        return None, f"lacks the module {NEEDED_MODULE}"
    return Java(home, version), ""


def _answer(command: Path, option: str) -> str:
    process = subprocess.run(
        [command, option], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=ANSWER_LIMIT_S
    )
    return process.stdout + process.stderr


def _number(version_text: str) -> str:
    """Java before 9 called version 8 "1.8"."""
    match = re.search(r'version "([^"]+)"', version_text)
    return match[1].removeprefix("1.") if match else ""


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0


def main() -> int:
    """Print the home directory of the Java to use, for scripts."""
    try:
        print(find_java().home)
    except ConfigError as error:
        print(error.line, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
