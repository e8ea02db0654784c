"""What listens at the address of a master: a real one, another process of Spark, or something else altogether."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from subprocess import STDOUT, Popen

import pytest

from homeostat.core.errors import ConfigError
from homeostat.runtime.launch import require_master
from homeostat.spark.cluster.embedded import MASTER, EmbeddedCluster, spark_home
from homeostat.spark.cluster.masters import NOBODY, why_no_master

LIMIT_S = 60.0  # only makes a broken test end
SHORT_S = 0.3  # for a listener that says nothing
PART_S = 2.0  # for one that says too little and then nothing


@contextmanager
def listener(reply: bytes, *, keep_open: bool = False) -> Iterator[str]:
    """Says this to whoever has said something, and ends, or says no more."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)
                if keep_open:
                    done.wait()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


@contextmanager
def web_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def message(kind: int, content: bytes) -> bytes:
    return struct.pack(">QB", 9 + len(content), kind) + content


def test_a_master_with_a_secret_is_one_though_only_spark_can_tell_it_from_its_workers(cluster: EmbeddedCluster) -> None:
    require_master(cluster.master_url)
    require_master(cluster.master_url.replace("spark://", "spark://127.0.0.1:1,"))
    workers = cluster.state()["workers"]
    assert len(workers) == 3
    assert [why_no_master(f"{worker['host']}:{worker['port']}") for worker in workers] == [""] * 3
    # The question was understood: whoever runs that master finds no complaint in its log.
    assert "InvalidClassException" not in cluster.log(MASTER).read_text()


@contextmanager
def spark_process(home: Path, name: str, *arguments: str) -> Iterator[str]:
    """A process of Spark without a secret, and its address."""
    command = [str(spark_home() / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--port", "0", *arguments]
    log = home / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    with log.open("w") as output, Popen(command, stdout=output, stderr=STDOUT, env=environment) as process:
        try:
            limit_s = time.monotonic() + LIMIT_S
            while not (started := re.search(r"Successfully started service 'spark\w+' on port (\d+)", log.read_text())):
                assert time.monotonic() < limit_s, log.read_text()
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield f"127.0.0.1:{started[1]}"
        finally:
            process.kill()


@pytest.mark.spark
def test_a_master_is_distinguished_from_a_worker(tmp_path: Path) -> None:
    with spark_process(tmp_path, "org.apache.spark.deploy.master.Master", "--webui-port", "0") as place:
        assert why_no_master(place) == ""
    worker = "org.apache.spark.deploy.worker.Worker"
    with spark_process(tmp_path, worker, "--webui-port", "0", "spark://127.0.0.1:1") as place:
        assert why_no_master(place) == "a Spark process answers there, but it is not a master"


def test_a_web_server_is_distinguished_from_a_master() -> None:
    with web_server() as place:
        assert why_no_master(place) == "the process that answers there is not a Spark master"
        with pytest.raises(ConfigError) as refused:
            require_master(f"spark://127.0.0.1:1,{place}")
    line = f"--master spark://127.0.0.1:1,{place}: the process that answers there is not a Spark master"
    assert refused.value.line == f"{line} (write spark://host:7077, or omit --master)"


def test_who_says_nothing_is_given_up_after_the_time_limit() -> None:
    with listener(b"", keep_open=True) as place:
        assert "is not a Spark master: no answer within 0.3 s" in why_no_master(place, SHORT_S)


@pytest.mark.parametrize(
    ("reply", "keep_open", "limit_s"),
    [
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", True, LIMIT_S),
        (b"+OK\r\n", True, PART_S),
        (b"+OK\r\n", False, LIMIT_S),
        (b"\0" * 9, False, LIMIT_S),
        (message(1, b"a kind of message that answers nothing"), False, LIMIT_S),
        (struct.pack(">QB", 1 << 62, 4), True, LIMIT_S),
    ],
)
def test_what_speaks_another_language_is_no_master(reply: bytes, keep_open: bool, limit_s: float) -> None:
    with listener(reply, keep_open=keep_open) as place:
        assert why_no_master(place, limit_s) == "the process that answers there is not a Spark master"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="it ends the connection, as a master does that speaks TLS alone"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x50", id="it says that it wants TLS"),
        pytest.param(message(5, b"\0" * 8 + b"InvalidClassException"), id="a Spark of another version"),
    ],
)
def test_what_only_spark_can_tell_is_left_to_spark(reply: bytes) -> None:
    with listener(reply) as place:
        assert why_no_master(place, LIMIT_S) == ""


@pytest.mark.parametrize("place", ["", "localhost", "127.0.0.1:99999", "127.0.0.1:1", "no-such-host.invalid:7077"])
def test_where_nobody_listens_no_master_answers(place: str) -> None:
    assert why_no_master(place) == NOBODY
