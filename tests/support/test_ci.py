"""What the hooks of `support.ci` do with the test files."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ci import halves, may_need_spark


def test_each_test_file_is_in_one_half(pytestconfig: pytest.Config) -> None:
    first, second = halves(pytestconfig.rootpath).values()
    assert first | second == set((pytestconfig.rootpath / "tests").rglob("test_*.py")) >= {Path(__file__)}
    assert not first & second
    assert abs(len(first) - len(second)) <= 1


def test_files_for_spark_name_a_fixture_or_marker_or_their_conftest_does(tmp_path: Path) -> None:
    texts = {
        "conftest.py": "def local_spark() -> None: ...",
        "a/test_plain.py": "def test_a(spark: str) -> None: ...",
        "a/test_cluster.py": "def test_a(cluster: str) -> None: ...",
        "b/conftest.py": "def spark(local_spark: str) -> None: ...",
        "b/c/test_plain.py": "def test_a(spark: str) -> None: ...",
    }
    files = {name: tmp_path / "tests" / name for name in texts}
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[name], encoding="utf-8")
    chosen = [name for name, file in files.items() if "test_" in name and may_need_spark(file, tmp_path)]
    assert chosen == ["a/test_cluster.py", "b/c/test_plain.py"]
