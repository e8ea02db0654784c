"""Files that switch on faults in the functions of a running query. A file contains the strength of its fault."""

from __future__ import annotations

from pathlib import Path


class Switches:
    """One file for each fault, in a directory that driver and executors share."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> str:
        return str(self._directory / name)

    def turn_on(self, name: str, strength: float) -> None:
        draft = self._directory / f".{name}.draft"
        draft.write_text(repr(strength))
        draft.replace(self._directory / name)

    def turn_off(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def strength_of(path: str) -> float:
    """The strength of the fault that this file switches on; 0 while it is off."""
    try:
        return float(Path(path).read_text())
    except FileNotFoundError:
        return 0.0
