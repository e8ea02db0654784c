"""Makes the checkpoint's storage slow: Hadoop's local file system runs the command `chmod` for each file it creates."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from homeostat.lab.corpus.switches import Switches

# The driver writes the logs of offsets and commits; the tasks write the state.
CHECKPOINT, STATE = "checkpoint-bound", "state-store-bound"
_COMMAND = """\
#!/bin/sh
case "$*" in
*/checkpoint/offsets/*|*/checkpoint/commits/*) switch={checkpoint} ;;
*/checkpoint/state/*) switch={state} ;;
*) switch= ;;
esac
test -n "$switch" && test -e "$switch" && sleep "$(cat "$switch")"
exec {chmod} "$@"
"""


class SlowStorage:
    """While the context is open, new processes find a `chmod` that a switch can make slow.

    The strength of a switch is the delay in seconds for each file.
    """

    def __init__(self, directory: Path) -> None:
        self.switches = Switches(directory / "on")
        self._commands = directory / "commands"
        self._path_before = ""

    def __enter__(self) -> Self:
        self._commands.mkdir(parents=True, exist_ok=True)
        command = self._commands / "chmod"
        text = _COMMAND.format(
            checkpoint=self.switches.path(CHECKPOINT), state=self.switches.path(STATE), chmod=shutil.which("chmod")
        )
        command.write_text(text)
        command.chmod(0o755)
        self._path_before = os.environ["PATH"]
        os.environ["PATH"] = f"{self._commands}{os.pathsep}{self._path_before}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.environ["PATH"] = self._path_before
