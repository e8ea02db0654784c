"""Which part a process plays, and which processes belong to a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from uuid import uuid4

import psutil
import pytest

from homeostat.lab.chaos.processes import (
    DRIVER,
    DRIVER_JVM,
    EXECUTOR,
    MARK_VARIABLE,
    MASTER,
    OTHER,
    SUPERVISOR,
    Family,
    executor_id,
    role_of,
    send,
)


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/opt/java/bin/java -cp /jars org.apache.spark.deploy.master.Master --host 127.0.0.1", MASTER),
        ("/opt/java/bin/java org.apache.spark.launcher.Main org.apache.spark.deploy.master.Master", OTHER),
        ("bash /spark/bin/spark-class org.apache.spark.deploy.master.Master", OTHER),
        ("java org.apache.spark.deploy.SparkSubmit pyspark-shell", DRIVER_JVM),
        ("java -Xmx1g org.apache.spark.executor.CoarseGrainedExecutorBackend --executor-id 1", EXECUTOR),
        ("python -m homeostat.runtime.driver {}", DRIVER),
        ("python -m homeostat.cli.main run app.py", SUPERVISOR),
        ("python -m homeostat.cli.main apply set x=1", OTHER),
        ("", OTHER),
    ],
)
def test_the_command_line_tells_the_role(command: str, role: str) -> None:
    assert role_of(command.split()) == role


def test_the_mark_is_inherited_and_finds_the_whole_family() -> None:
    mark = uuid4().hex
    child = "import sys, time; print('up', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        env={**os.environ, MARK_VARIABLE: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(Family(mark).processes) == 2
        assert Family(f"{mark}-other").processes == []
    finally:
        send(Family(mark).processes, signal.SIGKILL)
        process.communicate()
    assert Family(mark).processes == []


def test_an_executor_is_known_by_its_number() -> None:
    def number(first: str) -> str:
        # a shell that waits for commands, under another name
        command = [first, "-s", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--executor-id", "7"]
        shell = subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE)
        process = psutil.Process(shell.pid)
        try:
            while not process.cmdline():  # the kernel sets it a moment after the program has begun
                assert shell.poll() is None
            return executor_id(process)
        finally:
            shell.communicate()

    assert (number("java"), number("sh")) == ("7", "")
