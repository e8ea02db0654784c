"""The dashboard beside a word count on real Spark: its page fills, and shows an action without being loaded again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import specification, write_app
from homeostat.runtime.supervisor import INTERRUPTED
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.store.sqlite import SqliteStore
from homeostat.web import token_file
from homeostat.web.pages import link
from homeostat.web.report import report

pytestmark = pytest.mark.spark

RUN = "kept/wordcount"
LIMIT_S = 300.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=20)


@contextmanager
def running(home: Path) -> Iterator[str]:
    """`homeostat run` on Spark in a process of its own, and the address that it prints."""
    app = write_app(home / "app.py", specification(PROFILE, home / "ledger", wait_ms=0.1, trigger_s=1.0))
    where = ("--master", "local[2]", "--directory", str(home / "kept"), "--store", str(home / "log.sqlite"))
    output_file = home / "output"
    with output_file.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "homeostat.cli.main", "run", str(app), "--mode", "regulate", *where],
            env={**os.environ, "XDG_STATE_HOME": str(home / "state")},
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: process.poll() is not None or "dashboard at" in output_file.read_text(), "the address is told")
        assert process.poll() is None, output_file.read_text()
        yield output_file.read_text().split("dashboard at ")[1].split()[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == INTERRUPTED, output_file.read_text()
    finally:
        process.kill()
        process.wait()


def until(holds: Callable[[], bool], what: str) -> None:
    """The limit is only there so that a broken test ends."""
    give_up_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < give_up_s, f"not within {LIMIT_S:.0f} s: {what}"
        time.sleep(0.02)


def opened(page: Page, address: str) -> None:
    """As soon as the server listens."""
    until(lambda: _listens(address), "the server listens")
    page.goto(address)


def _listens(address: str) -> bool:
    where = urlsplit(address)
    try:
        socket.create_connection((where.hostname, where.port), LIMIT_S).close()
    except OSError:
        return False
    return True


@pytest.mark.soak
def test_its_page_fills_and_an_action_shows_without_loading_it_again(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as address:
        page = browser.new_page(base_url=address)
        opened(page, address)
        page.get_by_role("link", name="wordcount", exact=True).click(timeout=1e3 * LIMIT_S)
        page.wait_for_selector("#charts[data-drawn]", timeout=1e3 * LIMIT_S)
        expect(page.locator("#standing")).to_contain_text("Mode regulate", timeout=1e3 * LIMIT_S)
        expect(page.locator(".graph .node").first).to_contain_text("rows/s", timeout=1e3 * LIMIT_S)
        expect(page.locator("[data-column=state_rows] canvas")).to_be_visible(timeout=1e3 * LIMIT_S)

        token = token_file.create(tmp_path / "state" / "homeostat" / "tokens", "alice", "operate")
        page.goto(link("/sign-in", next=link("/query", run=RUN)))
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Knob").select_option("trigger_s.wordcount")
        page.get_by_label("Value").fill("2")
        page.get_by_role("button", name="Set by hand").click()
        expect(page.locator("#live")).to_have_text("Live")
        store = SqliteStore(tmp_path / "log.sqlite", read_only=True)
        until(lambda: bool(store.records(RUN, kinds=("action",))), "the order is obeyed")
        summary = page.locator("details.kind-action summary").first
        expect(summary).to_contain_text("By-hand: trigger_s.wordcount 1 → 2", timeout=1e3 * LIMIT_S)
        until(lambda: bool(store.records(RUN, kinds=("receipt",))), "its effect is seen")
        page.close()
    (receipt,) = store.records(RUN, kinds=("receipt",))
    assert receipt.text == "a-1 took effect"
    assert "By-hand: trigger_s.wordcount 1 → 2" in report(store, RUN).decode()
    store.close()
