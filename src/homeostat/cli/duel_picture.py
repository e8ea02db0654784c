"""Draws a duel: the cost of each policy against its violations, one panel per trace and engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from homeostat.cli.pictures import LINES, UNHEALTHY, check, styled_figure

__all__ = ["check", "draw"]
_MARKS = "os^Dv<>P"
# Panels side by side.
_ACROSS = 3


def draw(result: Mapping[str, Any], path: Path) -> None:
    """A contender is a mark, with the interval of the median over the seeds as a cross. Down and left is better."""
    rounds = result["rounds"]
    across = min(_ACROSS, len(rounds))
    down = -(-len(rounds) // across)
    with styled_figure(path, (4.2 * across, 3.4 * down + 0.6), "Cost against violations") as figure:
        panels = figure.subplots(down, across, squeeze=False).flatten()
        for panel, one in zip(panels, rounds, strict=False):
            _draw_round(panel, one)
        for panel in panels[len(rounds) :]:
            panel.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _draw_round(panel: Any, one: Mapping[str, Any]) -> None:
    panel.set_title(f"{Path(one['trace']).name}, {one['engine']}")
    for number, (label, figures) in enumerate(one["contenders"].items()):
        cost, violations = figures["cost_over_oracle"], figures["violation_s"]
        panel.errorbar(
            violations["median"],
            cost["median"],
            xerr=[[violations["median"] - violations["low"]], [violations["high"] - violations["median"]]],
            yerr=[[cost["median"] - cost["low"]], [cost["high"] - cost["median"]]],
            fmt=_MARKS[number % len(_MARKS)],
            color=UNHEALTHY if number == 0 else LINES[number % len(LINES)],
            markersize=6,
            linewidth=0.8,
            label=label,
        )
    panel.set_xlabel("seconds of violation")
    panel.set_ylabel("cost ÷ oracle")
    panel.set_xscale("symlog", linthresh=10.0)
