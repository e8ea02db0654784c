"""The bench keeps the command running as a service manager does, and says what the application lacks."""

from __future__ import annotations

import signal

import httpx

from homeostat.lab.chaos.deployment import PROXY_HOST, Deployment
from homeostat.lab.chaos.processes import send

LIMIT_S = 60.0


def test_a_command_that_ends_is_started_again(waiting_program: Deployment) -> None:
    (first,) = waiting_program.family().processes
    send([first], signal.SIGKILL)
    assert waiting_program.wait(lambda: waiting_program.exits == [-signal.SIGKILL], LIMIT_S)

    def is_back() -> bool:
        return [each.pid for each in waiting_program.family().processes] not in ([], [first.pid])

    assert waiting_program.wait(is_back, LIMIT_S)


def test_a_command_that_was_stopped_is_not_started_again(waiting_program: Deployment) -> None:
    assert waiting_program.stop() == -signal.SIGINT
    waiting_program.look()
    assert waiting_program.family().processes == []
    assert waiting_program.exits == []


def test_it_says_what_the_application_lacks(waiting_program: Deployment) -> None:
    lacks = waiting_program.missing()
    assert "the master is not running" in lacks
    assert "0 of 2 workers" in lacks
    assert "0 executors instead of 2" in lacks
    assert waiting_program.commits() == -1


def test_sparks_pages_are_reached_through_the_proxy(waiting_program: Deployment) -> None:
    environment = waiting_program.environment("mark")
    assert environment["SPARK_PUBLIC_DNS"] == PROXY_HOST
    assert f"spark.ui.port={waiting_program.port}" in Deployment.command(waiting_program)
    answer = httpx.get(f"http://{PROXY_HOST}:{waiting_program.port}/api/v1/version", trust_env=False)
    assert answer.status_code == 502  # nobody listens behind it
