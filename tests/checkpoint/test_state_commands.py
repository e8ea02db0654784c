"""`homeostat state` on real checkpoints, as a user sees it, at a terminal with a bar beside each answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

CheckpointOf = Callable[[str], Path]
Homeostat = Callable[..., Any]
Sit = Callable[[], None]
LIMIT_S = 300


@pytest.fixture
def state(homeostat: Homeostat) -> Homeostat:
    return partial(homeostat, "state")


def test_ls(state: Homeostat, checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("processor")
    (path / "commits" / "3").unlink()
    result = state("ls", path)
    assert result.code == 0, result.err
    for words in (
        "batches kept   0 to 2",
        "last batch     3 was started but not committed; a restart repeats it",
        "backend        RocksDB, lz4",
        "written by     Spark 4.3 or later",
        "transformWithStateInPySparkExec, 3 partitions",
    ):
        assert words in result.out
    tables = {
        line.split()[0]: line.split()[2:4] for line in result.out.splitlines() if line and " value" not in line[:9]
    }
    assert tables["total"] == ["value", "12"]
    assert tables["amounts"] == ["list", "23"]
    answer = state("ls", path, "--json").json
    assert (answer["batch"], answer["last_batch_committed"], answer["damage"]) == (2, False, [])
    assert {table["view"] for table in answer["operators"][0]["tables"]} == {"total", "amounts", "seen", "timers"}


def test_show_and_query(state: Homeostat, checkpoint_of: CheckpointOf, sit_at_a_terminal: Sit) -> None:
    path = checkpoint_of("counts")
    wrong = state("query", path, "SELEC 1")
    assert wrong.code == 2
    assert wrong.err.startswith("homeostat: SQL: [PARSE_SYNTAX_ERROR]")
    sit_at_a_terminal()
    result = state("show", path, "--batch", 1, "--limit", 5)
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].split()[0] == "key.word"
    assert len(result.out.splitlines()) == 1 + 5
    assert "reading the state" in result.err
    assert "5 rows from the state of batch 1; more rows exist, raise --limit to see them" in result.err
    answer = state("query", path, "SELECT count(*) AS words FROM state", "--json")
    assert answer.json == {"batch": 3, "columns": ["words"], "rows": [{"words": 12}], "more": False}
    assert "running the query" in answer.err


def test_top(state: Homeostat, checkpoint_of: CheckpointOf, sit_at_a_terminal: Sit) -> None:
    result = state("top", checkpoint_of("counts"), "--limit", 2)
    assert result.code == 0, result.err
    assert "The largest partitions after batch 3" in result.out
    assert '{"word":"w' in result.out
    sit_at_a_terminal()
    answer = state("top", checkpoint_of("counts"), "--json")
    assert sum(partition["rows"] for partition in answer.json["partitions"]) == 12
    assert "reading the state" in answer.err


def test_diff(state: Homeostat, checkpoint_of: CheckpointOf, sit_at_a_terminal: Sit) -> None:
    path = checkpoint_of("counts")
    result = state("diff", f"{path}@1", path, "--limit", 1)
    assert result.code == 0, result.err
    assert "state: 0 added, 0 removed, 11 changed" in result.out
    assert "more keys differ; raise --limit" in result.err
    sit_at_a_terminal()
    answer = state("diff", f"{path}@1", f"{path}@3", "--json")
    assert "comparing" in answer.err
    (difference,) = answer.json
    assert difference["counts"]["changed"] == len(difference["examples"]) == 11


def test_changes(state: Homeostat, checkpoint_of: CheckpointOf, sit_at_a_terminal: Sit) -> None:
    sit_at_a_terminal()
    answer = state("changes", checkpoint_of("counts"), "--from", 2, "--json")
    assert [row["batch_id"] for row in answer.json["rows"]] == [2] * 11 + [3] * 11
    assert "reading the state" in answer.err
    refused = state("changes", checkpoint_of("counts"), "--from", 0)
    assert refused.code == 2
    assert "batch 0 wrote no file of changes" in refused.err


def test_export(state: Homeostat, checkpoint_of: CheckpointOf, tmp_path: Path) -> None:
    path = checkpoint_of("pairs")
    result = state("export", path, tmp_path / "out")
    assert result.code == 0, result.err
    assert [line.split()[:2] for line in result.out.splitlines()[1:]] == [["left_side", "23"], ["right_side", "23"]]
    assert list((tmp_path / "out" / "left_side").glob("*.parquet"))
    assert state("export", path, tmp_path / "out").code == 2


def test_damage_is_refused_before_anything_is_done(
    state: Homeostat, checkpoint_of: CheckpointOf, tmp_path: Path
) -> None:
    path = checkpoint_of("counts")
    (path / "state/0/1/3.changelog").unlink()
    for command in (["show", path], ["query", path, "SELECT 1"], ["top", path], ["export", path, tmp_path / "out"]):
        result = state(*command)
        assert (result.code, result.out) == (3, "")
        assert "state/0/1/3.changelog is missing" in result.err
    assert not (tmp_path / "out").exists()
    assert "state/0/1/3.changelog" in state("ls", path).out


def test_the_program_starts_a_session_of_its_own(masters: Callable[[str], Path]) -> None:
    command = [sys.executable, "-m", "homeostat.cli.main", "state", "query"]
    path = masters("counts") / "checkpoint"
    result = subprocess.run(
        [*command, str(path), "SELECT count(*) AS words FROM state", "--json"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == [{"words": 12}]
    assert result.stderr == ""


def test_a_state_is_saved_rescaled_and_put_back(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, sit_at_a_terminal: Sit
) -> None:
    sit_at_a_terminal()
    checkpoint = checkpoint_of("counts")
    savepoint = homeostat("state", "savepoint", checkpoint, "good", "--json")
    assert (savepoint.code, savepoint.json["name"], savepoint.json["partitions"]) == (0, "good", 3)
    assert "saving" in savepoint.err
    preview = homeostat("state", "rescale", checkpoint, "--preview", "--partitions", 5, "--between", "2,6", "--json")
    assert preview.code == 0, preview
    assert "reading the keys" in preview.err
    assert len(preview.json["preview"]["operators"][0]["rows"]) == 5
    assert 2 <= preview.json["best"]["partitions"] <= 6
    done = homeostat("state", "rescale", checkpoint, "--partitions", 5, "--json")
    assert (done.code, done.json["before"], done.json["partitions"]) == (0, 3, 5)
    assert "rescaling" in done.err
    names = [each["name"] for each in homeostat("state", "savepoints", checkpoint, "--json").json]
    assert names == ["good", done.json["savepoint"]]
    back = homeostat("state", "restore", checkpoint, "good")
    assert back.code == 0
    assert back.out.startswith(
        f"restored the checkpoint to batch {savepoint.json['batch']}; the previous state is saved as"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rescale", "{}"], "--partitions: the number of partitions is missing"),
        (["rescale", "{}", "--partitions", "3"], "the state already has 3 partitions"),
        (["rescale", "{}", "--preview", "--between", "9,2"], "--between: '9,2' is not a range"),
        (["restore", "{}", "nothing"], "there is no savepoint 'nothing' (make one with"),
        (["savepoint", "{}/nowhere"], "there is no such directory"),
    ],
)
def test_what_is_wrong_is_one_line(
    homeostat: Homeostat, checkpoint_of: CheckpointOf, arguments: list[str], message: str
) -> None:
    checkpoint = checkpoint_of("counts")
    result = homeostat("state", *(word.format(checkpoint) for word in arguments))
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
