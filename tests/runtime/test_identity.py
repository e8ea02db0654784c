"""An application keeps its identity over restarts and moves, and no other application has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.runtime.identity import IDENTITY, identity_of, identity_of_name, is_older_than_identities
from homeostat.runtime.launch import LEASE


def test_it_survives_restarts_and_moves_and_two_directories_of_one_name_differ(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "words", tmp_path / "b" / "words"
    identity = identity_of(first)
    assert identity_of(first) == identity
    assert identity_of(second).id != identity.id
    first.rename(tmp_path / "moved")
    assert identity_of(tmp_path / "moved") == identity
    assert [path.name for path in (tmp_path / "moved").iterdir()] == [IDENTITY]


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from homeostat.runtime.identity import identity_of\n"
        "print(identity_of(Path(sys.argv[1])).id)"
    )
    starters = [
        subprocess.Popen([sys.executable, "-c", script, tmp_path / "app"], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({starter.communicate()[0] for starter in starters}) == 1


def test_a_directory_of_version_0_1_0_may_adopt_its_runs_also_after_a_crash(tmp_path: Path) -> None:
    assert not is_older_than_identities(tmp_path)
    (tmp_path / LEASE).touch()
    assert is_older_than_identities(tmp_path)
    assert identity_of(tmp_path, adopts=True).adopts
    assert not is_older_than_identities(tmp_path)
    assert identity_of(tmp_path).adopts


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1, "identity": "x"}', '{"format": "1", "identity": "x"}'])
def test_a_damaged_identity_is_refused_and_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / IDENTITY).write_text(text)
    with pytest.raises(ConfigError, match="the identity of this application cannot be read"):
        identity_of(tmp_path)
    assert (tmp_path / IDENTITY).read_text() == text


def test_one_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / IDENTITY).write_text(json.dumps({"format": 2, "identity": "1f" * 16}))
    with pytest.raises(ConfigError, match="a newer Homeostat wrote this file") as refused:
        identity_of(tmp_path)
    assert refused.value.exit_code == 2


def test_the_identity_of_a_name_is_the_same_everywhere_and_for_ever() -> None:
    assert identity_of_name("words").id == "d82d779f6ea45425ad73ec814d626c6d"
    assert identity_of_name("words").id != identity_of_name("word").id
