"""The settings of a session: loopback and steerable executors where they apply, and the user's word last."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from homeostat.spark.cluster.session import spark_conf


def conf(master: str, directory: Path, **more: str) -> dict[str, str]:
    return spark_conf(master=master, app_name="words", executors=3, directory=directory, extra=more)


def test_on_a_cluster_executors_can_be_added_and_removed_but_only_by_homeostat(tmp_path: Path) -> None:
    settings = conf("spark://10.0.0.1:7077", tmp_path)
    assert settings["spark.dynamicAllocation.enabled"] == "true"
    assert settings["spark.dynamicAllocation.initialExecutors"] == "3"
    assert settings["spark.dynamicAllocation.executorIdleTimeout"] == "2147483s"
    assert "spark.driver.host" not in settings


@pytest.mark.parametrize("master", ["local[2]", "local"])
def test_in_local_mode_there_are_no_executors_to_control(master: str, tmp_path: Path) -> None:
    assert not [name for name in conf(master, tmp_path) if name.startswith("spark.dynamicAllocation")]


def test_on_this_machine_spark_listens_on_loopback_only(tmp_path: Path) -> None:
    settings = conf("spark://127.0.0.1:7077", tmp_path)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.local.dir"] == str(tmp_path.resolve() / "local")


def test_what_java_unpacks_goes_below_the_directory_also_if_its_name_has_a_space(tmp_path: Path) -> None:
    folder = tmp_path / "my app"
    unpacked = f"-Djava.io.tmpdir={folder.resolve() / 'local' / 'java'}"
    for master, roles in (("spark://127.0.0.1:7077", ("driver", "executor")), ("spark://10.0.0.1:7077", ("driver",))):
        settings = conf(master, folder)
        options = {role: settings.get(f"spark.{role}.extraJavaOptions") for role in ("driver", "executor")}
        assert [role for role, each in options.items() if each and unpacked in shlex.split(each)] == list(roles)
    assert (folder / "local" / "java").is_dir()


def test_your_own_settings_win(tmp_path: Path) -> None:
    settings = spark_conf(
        master="local[2]", app_name="words", executors=1, directory=tmp_path, extra={"spark.scheduler.mode": "FIFO"}
    )
    assert settings["spark.scheduler.mode"] == "FIFO"


def test_the_driver_logs_to_a_file_below_the_directory(tmp_path: Path) -> None:
    conf("local[2]", tmp_path)
    properties = (tmp_path / "conf" / "driver-log4j2.properties").read_text()
    assert f"appender.log.fileName = {tmp_path.resolve() / 'logs' / 'driver.log'}" in properties


def test_an_event_log_comes_in_compressed_parts_that_the_readers_know(tmp_path: Path) -> None:
    settings = spark_conf(
        master="local[2]", app_name="words", executors=1, directory=tmp_path, event_log=tmp_path / "events"
    )
    assert (settings["spark.eventLog.enabled"], settings["spark.eventLog.compress"]) == ("true", "true")
    assert settings["spark.eventLog.rolling.enabled"] == "true"
    assert settings["spark.eventLog.compression.codec"] == "zstd"
    assert (tmp_path / "events").is_dir()
