"""The launch order, the files of an application, and the check of a Spark master."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.runtime.launch import YARN_SETTINGS, Launch, read_json, require_master, write_json


@pytest.mark.parametrize(
    ("master", "what"),
    [
        ("nonsense", "--master nonsense: not a valid Spark master (write spark://host:7077)"),
        ("local[", "--master local[: not a valid local Spark master (write local, local[2] or local[*])"),
        ("local[0]", "not a valid local Spark master"),
        ("locally", "not a valid local Spark master"),
        (
            "spark://",
            "--master spark://: no Spark master answers at this address "
            "(start it, or omit --master to run on a local cluster)",
        ),
        ("spark://localhost", "no Spark master answers at this address"),
        ("spark://127.0.0.1:99999", "no Spark master answers at this address"),
        ("spark://127.0.0.1:1", "no Spark master answers at this address"),
        ("spark://no-such-host.invalid:7077", "no Spark master answers at this address"),
        ("yarn", "--master yarn: the YARN configuration is missing (set HADOOP_CONF_DIR or YARN_CONF_DIR)"),
        ("yarnfoo", "not a valid Spark master"),
        ("k8s://", "--master k8s://: no Kubernetes API server answers at this address (write k8s://https://host:6443)"),
        ("k8s://ftp://127.0.0.1", "no Kubernetes API server answers at this address"),
        ("k8s://https://127.0.0.1:1", "no Kubernetes API server answers at this address"),
        ("k8s://127.0.0.1:1", "no Kubernetes API server answers at this address"),
    ],
)
def test_a_wrong_master_is_refused(master: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in YARN_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError) as refused:
        require_master(master)
    assert what in refused.value.line


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4, 2]", "local-cluster[2,1,1024]", "yarn"])
def test_masters_that_spark_itself_looks_for(master: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    require_master(master)


@pytest.mark.parametrize("master", ["k8s://https://{}", "k8s://{}"])
def test_masters_that_answer(master: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        require_master(master.format(f"127.0.0.1:{there.getsockname()[1]}"))


def test_what_the_driver_is_told_arrives(tmp_path: Path) -> None:
    launch = Launch("app.py:words", "local", str(tmp_path), flags={"loop": {"settle": "5 s"}}, for_s=3.0, silent_s=2.0)
    assert Launch.from_json(launch.to_json()) == launch


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "below" / "knobs.json"
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert [each.name for each in path.parent.iterdir()] == ["knobs.json"]
    path.write_text(json.dumps({"a": 1})[:-1])
    assert read_json(path) is None
    assert read_json(tmp_path / "missing") is None
