"""A Spark session for one command on a checkpoint, and progress bars."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from homeostat.cli.output import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
PARTITIONS = "spark.sql.shuffle.partitions"
LOOK_AGAIN_S = 0.1
FEW = "16"  # Spark's default of 200 is meant for clusters


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A new session of the running Spark context, or else a local one on all cores without a UI."""
    from homeostat.spark.cluster.session import build_session, spark_conf

    if running := _running():
        session = running.newSession()
        session.conf.set(PARTITIONS, FEW)
        yield session
        return
    directory = Path(tempfile.mkdtemp(prefix="homeostat-state-"))
    quiet = {"spark.ui.enabled": "false", PARTITIONS: FEW}
    try:
        if sys.stderr.isatty():
            say("starting Spark …")
        conf = spark_conf(master="local[*]", app_name="homeostat state", executors=1, directory=directory, extra=quiet)
        with _stderr_into(directory / "logs" / "spark.err"):
            session = build_session(conf)
        try:
            yield session
        finally:
            session.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def track(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, description=what, console=Console(stderr=True), transient=True)


@contextmanager
def working(spark: SparkSession, what: str) -> Iterator[None]:
    """Show the progress of Spark's running jobs in tasks, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    end = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=None)

        def follow() -> None:
            with suppress(Exception):  # if Spark is gone, the command itself reports it
                while not end.wait(LOOK_AGAIN_S):
                    tasks_done, tasks = _tasks(spark)
                    bar.update(task, completed=tasks_done, total=tasks or None)

        follower = threading.Thread(target=follow, name="homeostat bar", daemon=True)
        follower.start()
        try:
            yield
        finally:
            end.set()
            follower.join()


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """The completed tasks and all tasks of the active stages."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
    infos = [tracker.getStageInfo(number) for job in jobs for number in job.stageIds]
    stages = [stage for stage in infos if stage is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _running() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """The Java process inherits this, so that its warnings do not reach the user."""
    own_stderr = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own_stderr, 2)
        os.close(own_stderr)
