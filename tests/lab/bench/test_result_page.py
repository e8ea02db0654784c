"""The page of results shows the files and nothing else, and the committed page is the one of the committed files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.bench.circumstances import Commit
from homeostat.lab.bench.kept_results import KeptResult, write
from homeostat.lab.bench.result_page import BENCHES, page
from support.kept_result import KEPT
from support.paths import ROOT

NOISE = {
    "engines": {
        "dataflow": {
            "simulated_days": 3,
            "needless_actions": 2,
            "overload_seeds": 40,
            "found_within_15": 0.95,
            "found_within_15_interval": [0.8, 0.99],
            "batches_until_found_p50": 7,
            "batches_until_found_p95": 12,
            "never_found": 1,
        }
    }
}


def e9(policy: str, **figures: Any) -> dict[str, Any]:
    names = ("runs", "one_step_or_none", "runs_above_the_optimum", "below_the_optimum", "converged", "most_steps")
    return {policy: {**dict.fromkeys(names, 1), "most_above_the_optimum": 1.0, "accepted": False, **figures}}


CONVERGENCE = {
    "E7": [{"scenario": "E7", "policy": "ds2", "steps": 1, "converged": True, "unhealthy_s": 60.0}],
    "E8": [],
    "E9": {
        "none": {
            "policies": e9("provisioning", unhealthy_s=40.0, most_steps=2) | e9("ds2", unhealthy_s=50.0),
        }
    },
}


def kept(directory: Path, **results: Any) -> Path:
    for bench, result in results.items():
        command = f"homeostat bench {bench}"
        one: KeptResult = replace(KEPT, bench=bench, command=command, result=result, commit=Commit("abc123", True))
        write(one, directory / f"{bench}.json")
    return directory


def test_the_committed_page_is_what_the_command_writes() -> None:
    """`homeostat bench report` updates it."""
    committed = ROOT / "docs" / "results.md"
    assert committed.read_text(encoding="utf-8") == page(ROOT / "results", committed)


def test_a_result_has_its_figures_and_circumstances(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    text = page(kept(tmp_path / "results", noise=NOISE), tmp_path / "page.md")
    assert "| dataflow | 3 | 2 | 40 | 95 % | 80 % to 99 % | 7 | 12 | 1 |" in text
    assert "```\nhomeostat bench noise\n```" in text
    assert "2026-01-02, 3.5 s, version 0.2.0, commit `abc123`, with uncommitted changes. Seeds: seeds 4." in text
    assert "[noise.json](results/noise.json)" in text
    assert "None of the benches on Spark has one." in text
    missing = text.partition("## Without a kept result")[2]
    assert "`bench noise`" not in missing
    assert all(f"`bench {bench}`" in missing for bench in BENCHES if bench != "noise")


def test_targets_wins_and_losses_are_shown(tmp_path: Path) -> None:
    text = page(kept(tmp_path, convergence=CONVERGENCE), tmp_path / "page.md")
    assert "**Target reached:** **no**" in text
    wins = text.partition("## What Homeostat wins\n")[2].partition("\n## ")[0]
    losses = text.partition("## What Homeostat loses\n")[2].partition("\n## ")[0]
    assert "| convergence, E9, noise: none | ds2 | unhealthy s | 40 | 50 |" in wins
    assert "| most steps | 2 | 1 |" in losses


def test_a_result_without_its_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        page(kept(tmp_path, noise={"engines": {"dataflow": {}}}), tmp_path / "page.md")
    assert "noise.json: this is not a result of the bench 'noise'" in refused.value.line


def test_a_note_may_only_name_figures_of_its_result(tmp_path: Path) -> None:
    note = kept(tmp_path, noise=NOISE) / "noise.md"
    note.write_text("E4 has 2 needless actions, in 95 % it is quick.", encoding="utf-8")
    assert "E4 has 2 needless actions" in page(tmp_path, tmp_path / "page.md")
    note.write_text("It had 17 needless actions before.", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"noise\.md: the figure 17 is not"):
        page(tmp_path, tmp_path / "page.md")


def test_a_picture_is_shown(tmp_path: Path) -> None:
    (kept(tmp_path, noise=NOISE) / "noise.svg").touch()
    assert "![False alarms on noise](noise.svg)" in page(tmp_path, tmp_path / "page.md").replace("./", "")
