"""The locks that make sure that an application has only one manager: see `ApplicationHold`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from homeostat.core.errors import DamagedLogError
from homeostat.runtime.announcement import user_state
from homeostat.runtime.identity import (
    Identity,
    how_to_tell_apart,
    identity_of,
    identity_of_name,
    is_older_than_identities,
)
from homeostat.runtime.launch import LEASE
from homeostat.runtime.lease import Lease
from homeostat.runtime.store_lease import StoreLease
from homeostat.store.address import LogAddress
from homeostat.store.damaged_log import set_aside
from homeostat.store.reopening import reopen
from homeostat.store.sql_store import SqlStore

TAKEN_OVER = "another manager has taken over this application, because this one did not respond for too long"


class ApplicationHold:
    """The directory is locked against other processes that use it. The identity is locked on this host, which also
    keeps out a copy of the directory that uses another log. The log has a lease against managers on other hosts.

    `application` is the name in the settings, if there is one. `name` is the name of the application in the log: that
    in the settings or of its directory, unless another application has it.
    `damaged_log` is the file to which the log was moved if it was damaged when the manager started.
    """

    def __init__(
        self,
        directory: Path,
        log: LogAddress,
        *,
        application: str = "",
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._directory, self._log, self._application, self._pause = directory, log, application, pause
        self._file_leases: list[Lease] = []
        self._store_lease: StoreLease | None = None
        self.identity = Identity("")
        self.name = application or directory.name
        self.damaged_log: Path | None = None

    def take_files(self) -> None:
        """The part that never waits."""
        adopts = is_older_than_identities(self._directory)
        self._take(Lease(self._directory / LEASE))
        name = self._application
        self.identity = identity_of_name(name) if name else identity_of(self._directory, adopts=adopts)
        with suppress(OSError, RuntimeError):  # a user without a writable home directory
            self._take(
                Lease(
                    user_state() / "leases" / self.identity.id,
                    fix=f"stop it first{how_to_tell_apart(self.identity, self._directory)}",
                )
            )

    def take_log(self) -> None:
        """The part that may wait for a manager on another host that does not respond."""
        try:
            lease = self._taken_lease()
        except DamagedLogError:  # the job matters more than its log
            if not isinstance(self._log, Path):
                raise
            self.damaged_log = set_aside(self._log)
            lease = self._taken_lease()
        self._store_lease, self.name = lease, lease.name

    def _taken_lease(self) -> StoreLease:
        lease = StoreLease(self._log, self.identity, self._directory, pause=self._pause)
        lease.take()
        return lease

    def release(self) -> None:
        if self._store_lease is not None:
            self._store_lease.release()
            self._store_lease = None
        while self._file_leases:
            self._file_leases.pop().release()

    @property
    def holds_log(self) -> bool:
        return self._store_lease is not None

    @property
    def lost(self) -> bool:
        return self._store_lease is not None and self._store_lease.lost

    def enrol(self, store: SqlStore, *runs: str) -> None:
        """Let this manager, and no other, write these runs to the log that was opened."""
        assert self._store_lease is not None, "take the log first"
        self._store_lease.enrol(store)
        for run in runs:
            self._store_lease.bind(store, run)

    def open_log(self, *runs: str) -> SqlStore:
        """The log that is there now, in which only this manager writes these runs."""
        store = reopen(self._log)
        try:
            self.enrol(store, *runs)
        except BaseException:
            store.close()
            raise
        return store

    def _take(self, lease: Lease) -> None:
        lease.take()
        self._file_leases.append(lease)

    def __enter__(self) -> Self:
        try:
            self.take_files()
            self.take_log()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
