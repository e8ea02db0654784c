"""One root error. A message says what is wrong, where, and how to fix it."""

from __future__ import annotations


class HomeostatError(Exception):
    """An error that a user can cause and fix; shown as one line, without a traceback."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__(self.line)

    @property
    def line(self) -> str:
        where = f"{self.where}: " if self.where else ""
        fix = f" ({self.fix})" if self.fix else ""
        return f"{where}{self.what}{fix}"


class ConfigError(HomeostatError):
    """A configuration, scenario or trace that cannot be used."""

    exit_code = 2


class StoreError(HomeostatError):
    """The log cannot be read or written."""


class NewerLogError(StoreError):
    """A newer version of Homeostat wrote the log."""

    exit_code = 2


class DamagedLogError(StoreError):
    """The log file is damaged."""


class UnreadableError(StoreError):
    """The log contains a value that Homeostat would not write."""


class LeaseLostError(StoreError):
    """Another manager has taken over the application."""


class NoLogError(StoreError):
    """The file named as the log is not a log."""

    exit_code = 2
