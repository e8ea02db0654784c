"""A simulated viewer follows events and reads pages as the dashboard's script does."""

from __future__ import annotations

import asyncio

import pytest

from homeostat.lab.bench.open_dashboards import Viewer

EVENTS = b"HTTP/1.1 200 OK\r\n\r\nretry: 1000\n\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


async def serve(page: bytes) -> tuple[Viewer, list[bytes]]:
    """One event, then the end; every page is answered with `page`."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readuntil(b"\r\n\r\n"):
            requests.append(request)
            if request.startswith(b"GET /events"):
                writer.write(EVENTS + b"id: 7\ndata: x\n\n")
                await writer.drain()
                writer.write_eof()
                return
            writer.write(page)

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    async with server:
        viewer = Viewer("127.0.0.1", server.sockets[0].getsockname()[1], "a run")
        await viewer.watch()
    return viewer, requests


def test_on_news_it_reads_the_page_and_its_charts() -> None:
    viewer, requests = asyncio.run(serve(PAGE))
    assert viewer.connected.is_set()
    assert viewer.reads == 1
    paths = {request.split()[1].decode() for request in requests}
    assert paths == {"/events?run=a+run", "/query?run=a+run", "/series.json?run=a+run"}
    assert all(b"homeostat-seen: 7" in request for request in requests if b"/query" in request)


def test_a_page_that_is_refused_ends_it() -> None:
    with pytest.raises(RuntimeError, match="503"):
        asyncio.run(serve(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
