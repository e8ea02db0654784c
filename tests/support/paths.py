"""Where the tests find the project's files and what was recorded on real Spark."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDED = ROOT / "tests" / "recorded"
