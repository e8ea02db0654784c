"""Open dashboards for the benchmark of the service: each follows a run and reads its page anew as it changes.

In a process of their own: `python -m homeostat.bench.viewers HOST PORT RUN COUNT`. A line is printed once all of them
are connected; the end of stdin ends it.
"""

from __future__ import annotations

import http.client
import os
import sys
import threading
import time
from urllib.parse import urlencode

THROTTLE_S = 0.3
TIMEOUT_S = 60.0


def view(host: str, port: int, run: str, connected: threading.Semaphore) -> None:
    """What the page's script does: listen, and on news fetch the page and the columns of its charts."""
    asked = urlencode({"run": run})
    news = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    news.request("GET", f"/events?{asked}")
    stream = news.getresponse()
    pages = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    connected.release()
    seen = ""
    for line in stream:
        if line.startswith(b"id:"):
            seen = line[3:].strip().decode()
        if line.startswith(b"data:"):
            time.sleep(THROTTLE_S)
            for path in (f"/query?{asked}", f"/series.json?{asked}"):
                pages.request("GET", path, headers={"accept": "text/html", "homeostat-seen": seen})
                pages.getresponse().read()


def main() -> None:
    os.nice(19)  # real ones are on other machines: what they cost themselves shall not count
    host, port, run, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    connected = threading.Semaphore(0)
    for _ in range(count):
        threading.Thread(target=view, args=(host, port, run, connected), daemon=True).start()
    for _ in range(count):
        connected.acquire()
    print("connected", flush=True)
    sys.stdin.read()
    os._exit(0)  # the viewers wait for news that need not come


if __name__ == "__main__":
    main()
