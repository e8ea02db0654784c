"""One manager per application and log, wherever it runs: in another process, another directory or on another host.

The holder writes a growing number into the log. A challenger watches that number by its own clock. Clocks are never
compared with each other, so a wrong clock cannot let in a second manager.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from homeostat.core.errors import HomeostatError, LeaseLostError, StoreError
from homeostat.runtime.announcement import log_of
from homeostat.runtime.identity import IDENTITY, Identity, how_to_tell_apart, read_identity
from homeostat.runtime.launch import LEASE
from homeostat.runtime.lease import LeaseTakenError
from homeostat.store.address import LogAddress
from homeostat.store.opening import open_store
from homeostat.store.registered_applications import ApplicationTable, Holder
from homeostat.store.reopening import reopen
from homeostat.store.sql_store import SqlStore

# How often the holder shows that it is alive. Each time, it makes a small write without a flush to the disk.
BEAT_S = 2.0
# How long a challenger from another host watches a silent holder. A shorter time lets the challenger in while the
# holder's disk hangs, which is harmless because every write is fenced. A longer time delays regulation after a host has
# died. A choice.
WATCH_S = 20.0
_LOOK_S = 0.5
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class StoreLease:
    """`lost` becomes true when another manager has taken over. Then this one can no longer write."""

    def __init__(
        self,
        log: LogAddress,
        identity: Identity,
        directory: Path,
        *,
        beat_s: float = BEAT_S,
        watch_s: float = WATCH_S,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._log, self._identity, self._directory = log, identity, directory
        self._beat_s, self._watch_s, self._pause = beat_s, watch_s, pause
        self.name = ""
        self.lost = False
        self._me = Holder(
            token=uuid.uuid4().hex,
            host=socket.gethostname(),
            kernel=_kernel(),
            process=os.getpid(),
            directory=str(directory),
            lock=_file_name(directory / LEASE),
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="homeostat lease", daemon=True)
        self._store: SqlStore | None = None

    def take(self) -> None:
        """Raise LeaseTakenError if another manager has it. Takes up to WATCH_S if one on another host died."""
        store = open_store(self._log)
        try:
            table = ApplicationTable(store)
            self.name = table.register(
                self._identity.id, self._identity.name or self._directory.name, adopts=self._identity.adopts
            )
            before = table.holder(self._identity.id)
            self._refuse_copy(before)
            if before.token and not self._is_dead(before, table):
                raise self._taken(before)
            if not table.take(self._identity.id, self._me, instead_of=before):
                raise self._taken(table.holder(self._identity.id))
        except BaseException:
            store.close()
            raise
        self._store = store
        self._thread.start()

    def enrol(self, store: SqlStore) -> None:
        """Let this manager write to the log that was opened, which may be a new file in place of the old one."""
        table = ApplicationTable(store)
        name = table.register(self._identity.id, self.name, adopts=True)
        holder = table.holder(self._identity.id)
        if not holder.token:
            table.take(self._identity.id, self._me, instead_of=holder)
        if name != self.name or table.holder(self._identity.id).token != self._me.token:
            self.lost = True
        store.fence(self._identity.id, self._me.token)

    def bind(self, store: SqlStore, run: str) -> None:
        ApplicationTable(store).bind(run, self._identity.id)

    def release(self) -> None:
        self._stopping.set()
        if self._store is None:
            return
        self._thread.join()
        with suppress(StoreError):  # the next manager will detect that this one has ended
            ApplicationTable(self._store).release(self._identity.id, self._me.token)
        with suppress(StoreError):
            self._store.close()
        self._store = None

    def _beat_on(self) -> None:
        while not self.lost and not self._stopping.wait(self._beat_s):
            with suppress(StoreError):  # locked or full: the next beat may succeed
                self._beat()

    def _beat(self) -> None:
        assert self._store is not None
        if not self._store.in_place:
            with suppress(StoreError):
                self._store.close()
            self._store = reopen(self._log)
            self.enrol(self._store)
        if not ApplicationTable(self._store).beat(self._identity.id, self._me.token):
            self.lost = True

    def _is_dead(self, holder: Holder, table: ApplicationTable) -> bool:
        """On the same host, the file lock of the holder shows this at once. On another host, the holder counts as dead
        if it has not shown for a while that it is alive.
        """
        locked = self._holds_lock(holder)
        if locked is not None:
            return not locked
        until_s = time.monotonic() + self._watch_s
        while time.monotonic() < until_s:
            if self._pause(min(_LOOK_S, self._watch_s)):
                return False  # the caller is stopping
            if table.holder(self._identity.id) != holder:
                return not table.holder(self._identity.id).token
        return True

    def _holds_lock(self, holder: Holder) -> bool | None:
        """Whether its process still has the lock on its file; None if that cannot be determined here."""
        if not holder.kernel or holder.kernel != self._me.kernel:
            return None
        if holder.lock == self._me.lock:
            return False  # this process has the lock now
        path = Path(holder.directory) / LEASE
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            if _name_of(os.fstat(file)) != holder.lock:
                return None
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            os.close(file)
        return False

    def _refuse_copy(self, before: Holder) -> None:
        """A directory that was copied and not moved has the identity of another application."""
        if self._identity.name or not before.directory or Path(before.directory) == self._directory:
            return
        original = Path(before.directory) / IDENTITY
        copied = False
        with suppress(OSError, HomeostatError):
            same_file = original.samefile(self._directory / IDENTITY)
            copied = not same_file and read_identity(original).id == self._identity.id
        if copied:
            raise LeaseTakenError(
                f"this directory is a copy of {before.directory}, and both have the same identity",
                where=str(self._directory),
                fix=f"delete {self._directory / IDENTITY} to make the copy an application of its own, "
                f"or delete {before.directory}",
            )

    def _taken(self, holder: Holder) -> LeaseTakenError:
        place = f" (process {holder.process} on {holder.host}, in {holder.directory})" if holder.process else ""
        copy = how_to_tell_apart(self._identity, self._directory)
        return LeaseTakenError(
            f"another manager already controls this application{place}",
            where=str(self._log),
            fix=f"stop it first{'' if holder.directory == str(self._directory) else copy}",
        )


def log_after(announcement: Mapping[str, Any]) -> SqlStore:
    """The log of a manager that has ended. It can be written until another manager takes over the application."""
    store = open_store(log_of(announcement), guest=True)
    try:
        identity = str(announcement.get("identity", ""))
        holder = ApplicationTable(store).holder(identity)
        ended = (socket.gethostname(), announcement.get("process"))
        if holder.token and (holder.host, holder.process) != ended:
            raise LeaseLostError("another manager has taken over this application", where=store.where)
        store.fence(identity, holder.token)
    except BaseException:
        store.close()
        raise
    return store


def _kernel() -> str:
    """Identifies the running kernel, because all processes on one kernel see the same file locks. Empty if unknown."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _file_name(path: Path) -> str:
    try:
        return _name_of(path.stat())
    except OSError:
        return ""


def _name_of(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"
