"""Whether an application can continue from a checkpoint, and an open batch that it finishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CheckpointOf = Callable[[str], Path]
Homeostat = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("checkpoint_spark")  # the commands use the session of this process
APP = """
import homeostat as hs

@hs.pipeline()
def counts(ctx):
    rows = ctx.spark.readStream.schema("word STRING, amount BIGINT, at TIMESTAMP")
    rows = rows.option("maxFilesPerTrigger", 1){options}.json({source!r}).withWatermark("at", "5 seconds")
    def sink(batch, number):
        batch.collect()  # unless the sink reads the rows, the batch does not write its state, and Spark warns
        with open({touched!r}, "a") as file:
            file.write(f"{{number}}\\n")
    return rows.{query}.writeStream.outputMode("update").foreachBatch(sink)
"""
SAME, OTHER_KEY = 'groupBy("word").sum("amount")', 'groupBy("amount").count()'


@pytest.fixture
def app(masters: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """An application over the source of a checkpoint, in several versions."""

    def write(query: str = SAME, options: str = "") -> Path:
        source, path = (masters("counts") / "source").as_uri(), tmp_path / "app.py"
        path.write_text(APP.format(query=query, options=options, source=source, touched=str(tmp_path / "touched")))
        return path

    return write


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_same_application_starts_and_nothing_is_touched(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, app: Callable[..., Path], tmp_path: Path
) -> None:
    checkpoint = checkpoint_of("counts")
    before = files(tmp_path)
    result = homeostat("state", "check", checkpoint, app(), "--json")
    assert result.code == 0, result
    assert result.json["starts"]
    assert result.json["batch"] is not None
    after = {name: content for name, content in files(tmp_path).items() if name != "app.py"}
    assert after == before  # no batch reached the application's own sink, and the copy is gone


def test_another_state_does_not_fit(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, app: Callable[..., Path]
) -> None:
    result = homeostat("state", "check", checkpoint_of("counts"), app(OTHER_KEY))
    assert result.code == 3
    assert result.out.startswith("the query does not start: the checkpoint")
    assert "belongs to another query" in result.out


def test_a_source_that_would_lose_files_is_not_tried(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, app: Callable[..., Path]
) -> None:
    result = homeostat("state", "check", checkpoint_of("counts"), app(options='.option("cleanSource", "delete")'))
    assert result.code == 3
    assert "the source sets cleanSource = delete: the check would delete files" in result.out


def test_an_open_batch_is_finished_by_the_application(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, app: Callable[..., Path], tmp_path: Path
) -> None:
    checkpoint = checkpoint_of("counts")
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()
    refused = homeostat("state", "rescale", checkpoint, "--partitions", 2)
    assert refused.code == 2
    assert f"batch {last} is not finished, and only the application can finish it" in refused.err
    done = homeostat("state", "rescale", checkpoint, "--partitions", 2, "--app", app(), "--json")
    assert done.code == 0, done
    assert done.json["batch"] == last
    assert (tmp_path / "touched").read_text().split() == [str(last)]
