"""Open dashboards for the benchmark of the dashboard: each follows a run and reads its page again when it changes.

They run in a process of their own: `python -m homeostat.lab.bench.open_dashboards HOST PORT RUN COUNT`.
A line on stdin opens all of them, and the next line closes them. Each line is answered by a line. The second answer is
the number of times that a page was read, or -1 if one was refused. The end of stdin ends the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from urllib.parse import urlencode

THROTTLE_S = 0.3


class Viewer:
    """Acts like the script of the page: listens, and fetches the page and the columns of its charts when there are new
    records.
    """

    def __init__(self, host: str, port: int, run: str) -> None:
        self._host, self._port, self._query_string = host, port, urlencode({"run": run})
        self.connected = asyncio.Event()
        self.reads = 0

    async def watch(self) -> None:
        news, to_news = await asyncio.open_connection(self._host, self._port)
        pages, to_pages = await asyncio.open_connection(self._host, self._port)
        try:
            to_news.write(self._request(f"/events?{self._query_string}", ""))
            await news.readuntil(b"retry:")
            self.connected.set()
            while news_id := await _newest(news):
                await asyncio.sleep(THROTTLE_S)
                for path in (f"/query?{self._query_string}", f"/series.json?{self._query_string}"):
                    to_pages.write(self._request(path, news_id))
                    await _read_answer(pages)
                self.reads += 1
        finally:
            to_news.close()
            to_pages.close()

    def _request(self, path: str, news_id: str) -> bytes:
        headers = {"host": f"{self._host}:{self._port}", "accept": "text/html", "accept-encoding": "gzip"}
        lines = [f"{name}: {value}" for name, value in {**headers, "homeostat-seen": news_id}.items()]
        return "\r\n".join((f"GET {path} HTTP/1.1", *lines, "", "")).encode()


async def _newest(news: asyncio.StreamReader) -> str:
    """Wait for an event and return the id of the newest; empty at the end of the stream."""
    news_id = b""
    while not news_id:
        lines = (await news.read(65_536)).splitlines()
        if not lines:
            return ""
        news_id = next((line[3:].strip() for line in reversed(lines) if line.startswith(b"id:")), b"")
    return news_id.decode()


async def _read_answer(pages: asyncio.StreamReader) -> None:
    head = (await pages.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(f"the server answered a page request with {head[:40]!r}")
    _, _, length = head.partition(b"content-length:")
    await pages.readexactly(int(length.split()[0]))


async def main(host: str, port: int, run: str, count: int) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        viewers = [Viewer(host, port, run) for _ in range(count)]
        watching = [asyncio.create_task(viewer.watch()) for viewer in viewers]
        await asyncio.gather(*(viewer.connected.wait() for viewer in viewers))
        print("open", flush=True)
        await lines.readline()
        failed_viewers = [each for each in watching if each.done()]
        for each in watching:
            each.cancel()
        for each in watching:
            with suppress(asyncio.CancelledError):
                await each
        print(-1 if failed_viewers else sum(viewer.reads for viewer in viewers), flush=True)


if __name__ == "__main__":
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
