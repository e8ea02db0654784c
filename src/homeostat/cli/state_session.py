"""A Spark session for as long as a command on a checkpoint takes, and how far that is."""

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
FEW = "16"  # the usual 200 are made for clusters


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A session beside the one that this process has, else one on all cores, quiet, without a web page."""
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


def tracked(items: Sequence[Item], what: str) -> Iterable[Item]:
    """The items, with a bar on a terminal that tells how far it is."""
    if not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, description=what, console=Console(stderr=True), transient=True)


@contextmanager
def working(spark: SparkSession, what: str) -> Iterator[None]:
    """On a terminal a bar that tells how many tasks of the jobs under way are done, where it is Spark that works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    ended = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        shown = bar.add_task(what, total=None)

        def follow() -> None:
            with suppress(Exception):  # a Spark that is gone is told by the command itself
                while not ended.wait(LOOK_AGAIN_S):
                    done, tasks = _tasks(spark)
                    bar.update(shown, completed=done, total=tasks or None)

        follower = threading.Thread(target=follow, name="homeostat bar", daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """Those that are done, and all, of the stages that have begun."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for number in tracker.getActiveJobsIds() if (job := tracker.getJobInfo(number)) is not None]
    found = [tracker.getStageInfo(number) for job in jobs for number in job.stageIds]
    stages = [stage for stage in found if stage is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _running() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """Spark's process inherits this: what Java says of its own modules is nothing to the user."""
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
