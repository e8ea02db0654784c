"""Jars by coordinates: what is kept, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.kafka.broker import broker_jars
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.jars import Jar
from homeostat.spark.cluster.kafka_connector import connector_jars

# A repository on this disk, as Ivy's own settings describe it.
SETTINGS = """\
<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers><filesystem name="here" m2compatible="true" checkmodified="false">
    <artifact pattern="{place}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>
  </filesystem></resolvers>
</ivysettings>
"""
CONTENT = b"not really a jar"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "repository"
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(SETTINGS.format(place=place))
    monkeypatch.setenv(jars.IVY_SETTINGS, str(settings))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for version in ("1.0", "2.0"):
        file = place / "org" / "example" / "tool" / version / f"tool-{version}.jar"
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT)
    return place


def example(content: bytes = CONTENT, artifact: str = "tool", version: str = "1.0") -> Jar:
    return Jar("org.example", artifact, version, hashlib.sha256(content).hexdigest())


def ignore(line: str) -> None:
    pass


@pytest.mark.spark
def test_a_jar_is_fetched_once(repository: Path) -> None:
    messages: list[str] = []
    (path,) = jars.fetch([example()], messages.append)
    assert path.read_bytes() == CONTENT
    assert jars.missing([example()]) == []
    assert jars.fetch([example()], messages.append) == [path]
    assert len(messages) == 1
    assert [file.name for file in jars.directory().iterdir()] == [path.name]


@pytest.mark.spark
def test_a_file_with_another_hash_is_not_kept(repository: Path) -> None:
    with pytest.raises(ConfigError, match="SHA-256 differs"):
        jars.fetch([example(b"what was tested")], ignore)
    assert not example().path.exists()


@pytest.mark.spark
def test_a_jar_that_is_not_there_is_named_with_what_to_do(repository: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot download org.example:other:1.0: .*not found.*HOMEOSTAT_IVY_SETTINGS"
    ):
        jars.fetch([example(artifact="other")], ignore)


@pytest.mark.spark
def test_two_versions_of_a_jar_are_fetched_at_once(repository: Path) -> None:
    """The broker and the connector need different clients."""
    first, second = jars.fetch([example(), example(version="2.0")], ignore)
    assert first != second
    assert first.read_bytes() == second.read_bytes() == CONTENT


@pytest.mark.spark
def test_a_download_that_fails_for_a_moment_is_tried_again(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = repository.rename(tmp_path / "away")
    run_ivy = jars._run_ivy

    def come_back_afterwards(absent: list[Jar], place: Path) -> str:
        output = run_ivy(absent, place)
        if away.exists():
            away.rename(repository)
        return output

    monkeypatch.setattr(jars, "_run_ivy", come_back_afterwards)
    (path,) = jars.fetch([example()], ignore)
    assert path.read_bytes() == CONTENT


def test_the_lists_name_every_jar_once_with_its_hash() -> None:
    for jar_list in (broker_jars(), connector_jars("4.3.0")):
        assert len({jar.file_name for jar in jar_list}) == len(jar_list) > 0
        assert all(len(jar.sha256) == 64 and jar.version for jar in jar_list)
