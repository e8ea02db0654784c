"""A PostgreSQL server for tests: Debian's programs, a cluster of its own in a temporary directory, a free port."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from homeostat.store.address import PostgresAddress
from homeostat.store.postgres import TABLES

USER, GUARDED, PASSWORD = "homeostat", "guarded", "s3cret/pass word"
START_LIMIT_S = 30.0
# Nothing in a test outlives the server, so that it need not wait for the disk.
SETTINGS = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "60", "listen_addresses": "127.0.0.1"}


@dataclass(slots=True)
class PostgresServer:
    """`start` and `stop` may be called again and again: the databases stay."""

    programs: Path
    directory: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    def address(self, schema: str = "", *, user: str = USER, password: str = "") -> PostgresAddress:
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return PostgresAddress(f"postgresql://{user}@127.0.0.1:{self.port}/postgres{options}", password)

    def new_address(self) -> PostgresAddress:
        """The address of an empty schema."""
        schema = f"log_{next(self._numbers)}"
        self.ask(f"CREATE SCHEMA {schema}")
        return self.address(schema)

    def emptied(self, address: PostgresAddress) -> PostgresAddress:
        """The same address without what is in the log, which is quicker than a new one."""
        self.ask(*(f"DELETE FROM {table}" for table in TABLES), address=address)
        return address

    def ask(self, *statements: str, address: PostgresAddress | None = None) -> list[tuple[object, ...]]:
        """What the last statement returns, if anything."""
        import psycopg

        with closing(psycopg.connect((address or self.address()).text, autocommit=True)) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self) -> None:
        options = ["--username", USER, "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C.UTF-8"]
        command, user = [str(self.programs / "initdb"), "--pgdata", str(self.data), *options], _another_user()
        subprocess.run(command, check=True, capture_output=True, cwd=self.directory, user=user)
        guarded = f"host all {GUARDED} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self.data / "pg_hba.conf").write_text(guarded)

    def start(self) -> None:
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        places = ["-D", str(self.data), "-p", str(self.port), "-k", str(self.directory)]
        command, user = [str(self.programs / "postgres"), *places, *options], _another_user()
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=user)
        until_s = time.monotonic() + START_LIMIT_S
        while not self._answers():
            if time.monotonic() > until_s or self._process.poll() is not None:
                raise RuntimeError((self.directory / "server.log").read_text())
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT closes the connections and writes everything to the files, SIGQUIT ends like a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        import psycopg

        try:
            self.ask("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    @property
    def data(self) -> Path:
        return self.directory / "data"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server. Each test takes a new address of it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'homeostat[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: `.ci/postgres` as root installs it")
    directory = Path(tempfile.mkdtemp(prefix="homeostat-postgres-"))
    user = _another_user()
    if user is not None:
        shutil.chown(directory, user)
    server = PostgresServer(programs, directory, _free_port())
    try:
        server.create()
        server.start()
        server.ask(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(directory)


def _programs() -> Path | None:
    """Debian keeps them out of the search path, below the number of their version."""
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max((path.parent for path in installed), key=lambda path: float(path.parent.name), default=None)
    on_path = shutil.which("initdb")
    return newest or (Path(on_path).resolve().parent if on_path is not None else None)


def _another_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
