"""`homeostat corpus`: wrong names are refused before a cluster starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_an_unknown_case_is_refused_before_a_cluster_starts(homeostat: Callable[..., Any], tmp_path: Path) -> None:
    result = homeostat("corpus", "record", "--out", tmp_path / "corpus", "--only", "service,coffee")
    assert result.code == 2
    assert "--only: unknown job, fault or case 'coffee' (use one of " in result.err
    assert not (tmp_path / "corpus").exists()
