"""Runs the dashboard in a separate process for the duration of a run."""

from __future__ import annotations

import importlib.util
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from homeostat.spark.cluster.process_keeper import Keeper
from homeostat.store.address import LogAddress
from homeostat.web.http_server import LOOPBACK, PORT

REQUIRED_MODULES = ("jinja2", "starlette", "uvicorn")


@contextmanager
def dashboard(store: LogAddress, output: Path, say: Callable[[str], None]) -> Iterator[None]:
    """The run does not depend on the dashboard: if it cannot start, a message says so and the run continues."""
    keeper = None
    try:
        keeper = _start(store, output, say)
    except OSError as error:
        say(f"no dashboard: {error.strerror or error}")
    try:
        yield
    finally:
        if keeper is not None:
            keeper.close()


def _start(store: LogAddress, output: Path, say: Callable[[str], None]) -> Keeper | None:
    missing = [name for name in REQUIRED_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        say(f"no dashboard: {missing[0]} is not installed (pip install 'homeostat[serve]')")
        return None
    output.parent.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    command = [sys.executable, "-m", "homeostat.cli.main", "serve", "--store", str(store), "--port", str(port)]
    keeper = Keeper()
    try:
        keeper.start("dashboard", command, log=output)
    except OSError:
        keeper.close()
        raise
    say(f"dashboard at http://{LOOPBACK}:{port}/")
    return keeper


def _free_port() -> int:
    """The default port, so that an open page finds the next run too; if it is in use, any free port."""
    for port in (PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return PORT
