"""How far a command on a state is, as somebody at a terminal sees it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.cli.state_session import working
from homeostat.spark.act.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Homeostat = Callable[..., Any]
CheckpointOf = Callable[[str], Path]
LIMIT_S = 120.0
READ = (
    (("show", "{}"), "reading the state"),
    (("query", "{}", "SELECT 1"), "running the query"),
    (("top", "{}"), "reading the state"),
    (("diff", "{}@2", "{}"), "comparing"),
    (("changes", "{}"), "reading the state"),
    (("rescale", "{}", "--preview"), "reading the keys"),
    (("rescale", "{}", "--partitions", "2"), "rescaling"),
    (("savepoint", "{}"), "saving"),
)


def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages go to a terminal; what is printed may go elsewhere. Called by the test: a fixture has another stderr."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


@pytest.mark.parametrize(("arguments", "what"), READ)
def test_a_command_has_a_bar_beside_its_answer(
    homeostat: Homeostat,
    checkpoint_of: CheckpointOf,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    what: str,
) -> None:
    sit_at_a_terminal(monkeypatch)
    checkpoint = checkpoint_of("counts")
    result = homeostat("state", *(word.format(checkpoint) for word in arguments), "--json")
    assert result.code == 0, result
    assert what in result.err
    assert result.json


def test_the_bar_counts_the_tasks_that_are_done(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sit_at_a_terminal(monkeypatch)
    doors = [str(tmp_path / str(number)) for number in range(2)]
    outputs: list[str] = []

    def wait_for_door(door: str) -> int:
        while not Path(door).exists():
            time.sleep(0.02)
        return 1

    def is_shown(words: str) -> bool:
        outputs.append(capsys.readouterr().err)
        return words in "".join(outputs)

    with working(spark, "waiting"), ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(lambda: spark.sparkContext.parallelize(doors, 2).map(wait_for_door).count())
        assert Deadline.after(LIMIT_S).wait_until(lambda: is_shown("0/2"))
        Path(doors[0]).touch()
        assert Deadline.after(LIMIT_S).wait_until(lambda: is_shown("1/2"))
        Path(doors[1]).touch()
        assert waiting.result(LIMIT_S) == 2
