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

import httpx
import pytest

from homeostat.web.token_file import create

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_serve_tells_its_address_answers_there_and_stops(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "homeostat.cli.main", "serve", "--store", "later.sqlite", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        assert "homeostat token create NAME" in server.stderr.readline()
        with urllib.request.urlopen(f"{address}index.json", timeout=30) as answer:
            assert b'"total":0' in answer.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) in (0, 130)
        assert "Traceback" not in server.stderr.read()
    assert not (tmp_path / "state").exists(), "no token is made that nobody asked for"


@pytest.mark.slow
def test_behind_a_proxy_elsewhere_the_cookie_is_for_https_alone(tmp_path: Path) -> None:
    token = create(tmp_path / "tokens", "alice", "operate")
    options = ["--behind-proxy", "--tokens", "tokens", "--trusted-proxy", "192.0.2.1"]
    command = [sys.executable, "-m", "homeostat.cli.main", "serve", "--store", "later.sqlite", "--port", "0", *options]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1].rstrip("/")
        answer = httpx.post(f"{address}/session", data={"token": token}, headers={"origin": address})
        server.send_signal(signal.SIGINT)
        server.wait(30)
    assert answer.status_code == 303
    assert "; secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--host", "0.0.0.0"), "--tokens"),
        (("--tokens", "missing"), "missing"),
        (("--behind-proxy",), "add --tokens FILE"),
        (("--trusted-proxy", "10.0.0.1"), "add --behind-proxy"),
        (("--webhook", "nonsense"), "--webhook"),
        (("--webhook-shape", "plane"), "did you mean 'plain'?"),
    ],
)
def test_serve_refuses_what_it_cannot_do(homeostat: Homeostat, options: tuple[str, ...], what: str) -> None:
    result = homeostat("serve", "--port", "0", *options)
    assert result.code == 2
    assert what in result.err
