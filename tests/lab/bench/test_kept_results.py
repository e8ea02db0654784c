"""Files of kept results are read strictly: what is not one is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.bench.kept_results import file_for, read_all, write
from support.kept_result import KEPT

BENCHES = ("noise", "duel")


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    write(KEPT, tmp_path / "noise.json")
    write(KEPT, tmp_path / "noise-more.json")
    (tmp_path / "noise.md").write_text("A note.\n", encoding="utf-8")
    (tmp_path / "noise.svg").touch()
    more, file = read_all(tmp_path, BENCHES)
    assert (file.kept, file.note, file.picture) == (KEPT, "A note.", tmp_path / "noise.svg")
    assert (more.kept, more.note, more.picture) == (KEPT, "", None)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("noise.json", {"result": None}, "result: "),
        ("noise.json", {"seeds": ...}, "seeds: Field required"),
        ("noise.json", {"host": "a"}, "host: "),
        ("noise.json", {"bench": "other"}, "unknown bench 'other'"),
        ("duel.json", {}, "'noise'"),
        ("noise.csv", {}, "not a result"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, change: dict[str, Any], complaint: str) -> None:
    write(KEPT, tmp_path / "kept")
    document = json.loads((tmp_path / "kept").read_text(encoding="utf-8")) | change
    (tmp_path / "kept").unlink()
    text = json.dumps({key: value for key, value in document.items() if value is not ...})
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_all(tmp_path, BENCHES)
    assert refused.value.line.startswith(str(tmp_path / name))
    assert complaint in refused.value.line
    assert "\n" not in refused.value.line


def test_broken_json_a_lonely_note_and_a_missing_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"noise\.json"):
        read_all(tmp_path, BENCHES)
    (tmp_path / "noise.json").rename(tmp_path / "duel.md")
    with pytest.raises(ConfigError, match="no result beside"):
        read_all(tmp_path, BENCHES)
    with pytest.raises(ConfigError, match="cannot read"):
        read_all(tmp_path / "nowhere", BENCHES)


def test_the_name_of_a_file_begins_with_that_of_its_bench() -> None:
    assert file_for("noise", Path("results")) == Path("results/noise.json")
    assert file_for("noise", Path("noise-more.json")) == Path("noise-more.json")
    with pytest.raises(ConfigError, match=r"noise\.json"):
        file_for("noise", Path("noisy.json"))
