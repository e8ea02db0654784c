"""Makes the pictures of the dashboard for the documentation: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from homeostat.web.pages import link
from support.living import BATCHES, Living
from support.serving import serving


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log.sqlite"
        Living(log, "shop/orders", mode="advise").close()
        Living(log, "shop/clicks", mode="advise", scenario=BATCHES).close()
        Living(log, "shop/words").close()
        with serving(log) as served, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(base_url=served.url, viewport={"width": 1300, "height": 800})
            page.goto("/")
            page.screenshot(path=folder / "dashboard-list.png", clip={"x": 0, "y": 0, "width": 1300, "height": 440})
            page.goto(link("/query", run="shop/words"))
            page.wait_for_selector("#charts[data-drawn]")
            page.wait_for_selector("#predicted svg")
            page.locator("details.kind-action summary").last.click()
            page.screenshot(path=folder / "dashboard-query.png", full_page=True)
            page.emulate_media(color_scheme="dark")
            page.goto(link("/models/performance", run="shop/clicks", rate=2500, executors=8))
            page.screenshot(path=folder / "dashboard-what-if.png")
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
