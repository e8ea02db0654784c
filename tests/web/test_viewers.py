"""The dashboards of the benchmark do what a browser does: they hear of news and read the pages anew."""

from __future__ import annotations

import asyncio

from living import Living
from serving import Served

from homeostat.bench.viewers import Viewer


def test_a_viewer_reads_the_page_and_the_charts_when_there_is_news(served: Served, words: Living) -> None:
    host, port = served.url.removeprefix("http://").split(":")

    async def watched() -> int:
        viewer = Viewer(host, int(port), words.run)
        watching = asyncio.create_task(viewer.watch())
        await viewer.connected.wait()
        while not viewer.reads and not watching.done():
            words.step()
            await asyncio.sleep(0.1)
        watching.cancel()
        return viewer.reads

    assert asyncio.run(watched()) >= 1
