"""The broker of tests and demos: it keeps its rows, and ends with its parent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.kafka.broker import FETCH, KafkaBroker
from homeostat.lab.kafka.topics import Topics

PARENT = """
import sys, time
from pathlib import Path
from homeostat.lab.kafka.broker import KafkaBroker
broker = KafkaBroker(Path(sys.argv[1]))
broker.start()
print(broker.servers, flush=True)
time.sleep(600)
"""


def test_without_its_jars_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=FETCH):
        KafkaBroker(tmp_path / "broker").start()


def test_it_keeps_its_rows_and_its_address_over_a_stop(
    stopped_kafka: KafkaBroker, topics: Topics, topic_name: str
) -> None:
    topics.create(topic_name, 2)
    assert topics.write(topic_name, ["a", "b", "c"], partition=lambda number: number % 2) == 3
    servers = stopped_kafka.servers
    stopped_kafka.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address(servers)).close()
    stopped_kafka.start()
    assert stopped_kafka.servers == servers
    rows = [(row.partition, row.value) for row in Topics(servers).rows(topic_name)]
    assert rows == [(0, b"a"), (0, b"c"), (1, b"b")]


def address(servers: str) -> tuple[str, int]:
    host, port = servers.split(":")
    return host, int(port)


@pytest.mark.local_spark
def test_it_ends_with_the_process_that_started_it(
    kafka_jars: None, tmp_path: Path, wait_until: Callable[[Callable[[], bool], str], None]
) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline().startswith("127.0.0.1:")
    brokers = [pid for pid in _processes() if str(tmp_path / "server.properties") in _command(pid)]
    assert brokers
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not any(_command(pid) for pid in brokers), "the broker has ended")


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
