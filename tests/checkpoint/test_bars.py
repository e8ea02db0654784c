"""How far a command on a state is, as somebody at a terminal sees it. That each command has a bar is tested with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.cli.state_session import working
from homeostat.spark.act.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_S = 120.0


def test_the_bar_counts_the_tasks_that_are_done(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], sit_at_a_terminal: Callable[[], None], tmp_path: Path
) -> None:
    sit_at_a_terminal()
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
