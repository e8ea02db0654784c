"""A small HTTP server that gives stored answers in the format of Spark's REST API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from homeostat.spark.sense.rest_client import RestClient

APPLICATION = "app-1"
Answers = dict[str, Any]


@contextmanager
def rest_answering(answers: Answers) -> Iterator[RestClient]:
    """A client of a server with these answers, by path below the application. Other paths are not found."""

    def answer(path: str) -> Any:
        return answers.get(path.partition("?")[0].removeprefix(f"/api/v1/applications/{APPLICATION}/"))

    with rest_computing(answer) as client:
        yield client


@contextmanager
def rest_computing(answer: Callable[[str], Any]) -> Iterator[RestClient]:
    """A client of a server that answers each path with what the function returns; None is not found."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = answer(self.path)
            body = json.dumps(content).encode()
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    client = RestClient(f"http://127.0.0.1:{server.server_port}", APPLICATION, timeout_s=60.0, first_timeout_s=60.0)
    try:
        yield client
    finally:
        client.close()
        server.shutdown()
        server.server_close()
        thread.join()


def job(number: int, batch: int, *, run: str = "run-1", stages: tuple[int, ...] = (), running: bool = False) -> Any:
    return {
        "jobId": number,
        "description": f"words\nid = q\nrunId = {run}\nbatch = {batch}",
        "submissionTime": f"2026-11-15T05:01:{number:02d}.000GMT",
        "stageIds": list(stages),
        "jobGroup": run,
        "status": "RUNNING" if running else "SUCCEEDED",
    }


def executor(identity: str, *, alive: bool = True) -> Any:
    return {"id": identity, "hostPort": f"host-{identity}:40000", "isActive": alive, "totalCores": 2, "maxTasks": 2}


def stage(number: int, *, executor: str = "1", rows: int = 10, status: str = "COMPLETE") -> Any:
    task = {
        "index": 0,
        "executorId": executor,
        "launchTime": "2026-11-15T05:01:33.000GMT",
        "duration": 2000,
        "status": "SUCCESS",
        "taskMetrics": {
            "executorRunTime": 1500,
            "inputMetrics": {"recordsRead": rows},
            "outputMetrics": {"recordsWritten": 0},
            "shuffleReadMetrics": {"recordsRead": 0, "fetchWaitTime": 500},
            "shuffleWriteMetrics": {"recordsWritten": 0},
        },
    }
    return {
        "stageId": number,
        "attemptId": 0,
        "status": status,
        "numTasks": 1,
        "numCompleteTasks": 1,
        "tasks": {"7": task},
    }


def progress(batch: int, *, run: str = "run-1", rows: int = 10, at: str = "05:01:33") -> Any:
    return {
        "id": "q",
        "name": "words",
        "runId": run,
        "batchId": batch,
        "timestamp": f"2026-11-15T{at}.000Z",
        "durationMs": {"triggerExecution": 2000},
        "sources": [{"description": "x", "numInputRows": rows, "endOffset": 100 * batch, "latestOffset": 100 * batch}],
    }
