"""A service that queries call for their rows: a server on this machine that answers each request after a delay."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from homeostat.lab.corpus.row_work import REQUEST


class Service:
    """Answers each request after the number of milliseconds in the request, times `slowness`."""

    def __init__(self) -> None:
        self.port = 0
        self.slowness = 1.0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="corpus service", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (wait_ms,) = REQUEST.unpack(await reader.readexactly(REQUEST.size))
                await asyncio.sleep(wait_ms / 1000 * self.slowness)
                writer.write(b"\1")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()
