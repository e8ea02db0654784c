"""The machine is described without its name, and the commit is that of the package."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from homeostat.lab.bench.circumstances import Commit, Machine, this_commit, this_machine


def test_the_machine_is_described_without_its_name() -> None:
    text = str(this_machine())
    assert "cores" in text
    assert platform.node() not in text


def test_what_is_unknown_about_a_machine_is_stated() -> None:
    text = str(Machine(cores=2, memory_gib=None, processor=None, system="Linux", python="3.11.2"))
    assert text == "2 cores, unknown memory, unknown processor, Linux, Python 3.11.2"


def test_a_commit_counts_only_if_it_contains_the_package(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-C", str(tmp_path))

    def run(*commands: str) -> None:
        for command in commands:
            subprocess.run([*git, *command.split()], check=True)

    run("init -q", "commit -q --allow-empty -m first")
    (tmp_path / "__init__.py").touch()
    assert this_commit(tmp_path) is None
    run("add .", "commit -q -m second")
    commit = this_commit(tmp_path)
    assert commit is not None
    assert (len(commit.id), commit.modified) == (12, False)
    (tmp_path / "__init__.py").write_text("changed = True\n", encoding="utf-8")
    assert this_commit(tmp_path) == Commit(commit.id, modified=True)
