"""Starts the cluster and the driver of an application, and restarts the driver when it dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

from homeostat import settings_file
from homeostat.core.causes import DRIVER_STOPPED
from homeostat.core.errors import HomeostatError
from homeostat.runtime.alarms import Alarm
from homeostat.runtime.announcement import read_announcement
from homeostat.runtime.file_limits import FileKeeper
from homeostat.runtime.launch import QUERY_FAILED, SUPERVISOR, Launch, require_master
from homeostat.runtime.lease import Lease
from homeostat.runtime.store_lease import log_after
from homeostat.spark.cluster.embedded import ClusterError, EmbeddedCluster
from homeostat.spark.cluster.leftovers import remove_leftovers
from homeostat.spark.cluster.process_keeper import Keeper, send_signal

DRIVER = "driver"
DRIVER_MODULE = "homeostat.runtime.driver"
LOOK_AGAIN_S = 0.2
STOP_LIMIT_S = 60.0
MOST_RESTARTS = 5
RESTARTS_WITHIN_S = 600.0
FIRST_PAUSE_S = 1.0
INTERRUPTED = 130


class DriverError(HomeostatError):
    """The driver keeps dying."""


class Supervisor:
    """Runs one application until it ends, is stopped, or dies too often. `say` gets one line for each event.

    The output of the driver goes to the output of this process, or to `log`."""

    def __init__(
        self, launch: Launch, *, workers: int, cores: int, say: Callable[[str], None], log: Path | None = None
    ) -> None:
        self._launch, self._say, self._log = launch, say, log
        self._workers, self._cores = workers, cores
        self._cluster: EmbeddedCluster | None = None
        self._stop_reason: str = ""
        self.restarts = 0
        self.driver_pid = 0

    def stop(self, why: str = "asked to") -> None:
        self._stop_reason = why

    @property
    def stopping(self) -> bool:
        return bool(self._stop_reason)

    def run(self, each_moment: Callable[[], None] = lambda: None, *, prepare: Callable[[], None] = lambda: None) -> int:
        """Run the application and return its exit code.

        `each_moment` is called a few times a second, for example to draw a view. `prepare` is called before anything
        starts, once this process holds the lock on the directory.
        """
        directory = Path(self._launch.directory)
        with ExitStack() as stack:
            launch = self._launch
            stack.enter_context(Lease(directory / SUPERVISOR))
            prepare()
            if launch.master:
                require_master(launch.master)
            else:
                self._say(f"starting a local cluster: {self._workers} workers with {self._cores} cores each")
                self._cluster = EmbeddedCluster(directory / "cluster", workers=self._workers, cores=self._cores)
                master = stack.enter_context(self._cluster).master_url
                launch = replace(launch, master=master, room=self._workers * self._cores)
            stack.enter_context(self._signals())
            return self._supervise(launch, each_moment)

    def _supervise(self, launch: Launch, each_moment: Callable[[], None]) -> int:
        """Restart the driver when it dies. If it fails before it was ever up, or ends because a query failed too often,
        return its exit code instead."""
        deaths_s: list[float] = []
        ever_up = False
        while True:
            cluster_end = ""
            try:
                code = self._one_life(launch, each_moment)
            except ClusterError as error:
                code, cluster_end = -signal.SIGKILL, error.what
            up_s = self._up_since()
            ever_up = ever_up or up_s is not None
            if code in (0, QUERY_FAILED) or self._stop_reason or (code > 0 and not ever_up):
                return INTERRUPTED if self._stop_reason == "interrupted" else code
            deaths_s = [at for at in deaths_s if time.monotonic() - at < RESTARTS_WITHIN_S] + [time.monotonic()]
            if len(deaths_s) > MOST_RESTARTS:
                minutes = RESTARTS_WITHIN_S / 60
                what = f"the driver died {len(deaths_s)} times within {minutes:.0f} minutes, last with code {code}"
                self._alert(what)
                raise DriverError(what, where=launch.app, fix=f"see the logs in {Path(launch.directory) / 'logs'}")
            self.restarts += 1
            what = cluster_end or f"the driver ended with code {code}"
            self._say(f"{what}; restarting {'everything' if cluster_end else 'it'} (restart {self.restarts})")
            self._pause(FIRST_PAUSE_S * 2 ** (len(deaths_s) - 1))
            if cluster_end:
                launch = self._on_new_cluster(launch)
            if launch.for_s is not None and up_s is not None:
                launch = replace(launch, for_s=max(0.0, launch.for_s - (time.monotonic() - up_s)))

    def _alert(self, what: str) -> None:
        """Write an alert to the logs of the queries that the last driver announced. The error goes to the terminal."""
        announcement = read_announcement(Path(self._launch.directory))
        if announcement is not None:
            runs = map(str, dict(announcement.get("queries", {})).values())
            Alarm(partial(log_after, announcement), runs, lambda _: None).ring(DRIVER_STOPPED, what)

    def _on_new_cluster(self, launch: Launch) -> Launch:
        assert self._cluster is not None
        self._cluster.stop()
        self._cluster.start()
        return replace(launch, master=self._cluster.master_url)

    def _up_since(self) -> float | None:
        """When the current driver came up, by the monotonic clock; None if it has not."""
        announcement = read_announcement(Path(self._launch.directory))
        if announcement is None or announcement.get("process") != self.driver_pid:
            return None
        return float(announcement.get("up_s", time.monotonic()))

    def _one_life(self, launch: Launch, each_moment: Callable[[], None]) -> int:
        """Run one driver under its own process keeper, so that everything that it started has ended before the next
        one.
        """
        command = [sys.executable, "-m", DRIVER_MODULE, launch.to_json()]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(Path(launch.directory))
        keeper = Keeper()
        try:
            self.driver_pid = keeper.start(DRIVER, command, environment=environment, log=self._log)
            return self._until_it_ends(keeper, each_moment)
        finally:
            keeper.close()

    def _until_it_ends(self, keeper: Keeper, each_moment: Callable[[], None]) -> int:
        asked_s = 0.0
        limits = settings_file.load(self._launch.config, flags=self._launch.flags).files
        files = FileKeeper(Path(self._launch.directory), limits, self._say)
        while (code := keeper.code(DRIVER)) is None:
            each_moment()
            files.look()
            for host in self._cluster.mend() if self._cluster is not None else ():
                self._say(f"the Spark worker on {host} ended; it was started again")
            if self._stop_reason and not asked_s:
                asked_s = time.monotonic()
                send_signal(self.driver_pid, signal.SIGTERM)
            elif asked_s and time.monotonic() - asked_s > STOP_LIMIT_S:
                send_signal(self.driver_pid, signal.SIGKILL)
            time.sleep(LOOK_AGAIN_S)
        return code

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and not self._stop_reason:
            time.sleep(LOOK_AGAIN_S)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C or TERM stops the application cleanly; the second one stops at once."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            if self._stop_reason:
                raise KeyboardInterrupt
            self._stop_reason = "interrupted"

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
