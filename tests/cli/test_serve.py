"""`homeostat serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_serve_tells_its_address_answers_there_and_stops(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "homeostat.cli.main", "serve", "--store", "later.sqlite", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        assert "sign in with the token in" in server.stderr.readline()
        with urllib.request.urlopen(f"{address}index.json", timeout=30) as answer:
            assert b'"total":0' in answer.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) in (0, 130)
        assert "Traceback" not in server.stderr.read()
    (file,) = (tmp_path / "state" / "homeostat").iterdir()
    assert file.read_text().startswith("operate ")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--host", "0.0.0.0"), "--tokens"),
        (("--tokens", "missing"), "missing"),
        (("--webhook", "nonsense"), "--webhook"),
        (("--webhook-shape", "plane"), "did you mean 'plain'?"),
    ],
)
def test_serve_refuses_what_it_cannot_do(homeostat: Homeostat, options: tuple[str, ...], what: str) -> None:
    ran = homeostat("serve", "--port", "0", *options)
    assert ran.code == 2
    assert what in ran.err
