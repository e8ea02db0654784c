"""Which Java is taken, and what is said when none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.spark.cluster import java

ALL_MODULES = "java.base@17\njdk.incubator.vector@17"


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "__file__", str(tmp_path / "a" / "b" / "c" / "java.py"))


def install(home: Path, version: str = "17.0.15", modules: str = ALL_MODULES) -> Path:
    """A program that answers like the Java of that version."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}" 2025-04-15\' >&2\n'
        f"[ \"$1\" = --list-modules ] && echo '{modules}'\n"
        "exit 0\n"
    )
    command.chmod(0o755)
    return home


def test_the_java_of_this_machine_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    installation = java.find_java()
    assert installation.command.is_file()
    assert int(installation.version.split(".")[0]) >= java.OLDEST_VERSION


def test_java_home_comes_first_then_the_path_then_what_setup_extracted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extracted = install(tmp_path / ".java" / "home")
    assert java.find_java().home == extracted
    on_path = install(tmp_path / "path")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:/usr/bin:/bin")
    assert java.find_java().home == on_path
    named = install(tmp_path / "named", version="21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.find_java() == java.Java(named, "21.0.2")


def test_an_unusable_one_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", version="1.8.0_402")))
    extracted = install(tmp_path / ".java" / "home")
    assert java.find_java().home == extracted


def test_without_any_java_one_line_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        java.find_java()
    assert caught.value.line == f"Spark needs Java: none found ({java.FIX})"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("version", "modules", "reason"),
    [
        ("1.8.0_402", ALL_MODULES, "is version 8.0_402, Spark requires 17 or newer"),
        ("11.0.22", ALL_MODULES, "is version 11.0.22, Spark requires 17 or newer"),
        ("17.0.15", "java.base@17", "lacks the module jdk.incubator.vector"),
    ],
)
def test_the_line_tells_why_a_java_was_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, modules: str, reason: str
) -> None:
    home = install(tmp_path / "home", version, modules)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(ConfigError) as caught:
        java.find_java()
    assert caught.value.what == f"Spark needs Java: JAVA_HOME {home} {reason}"
    assert "\n" not in caught.value.line


def test_a_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="does not run"):
        java.find_java()
