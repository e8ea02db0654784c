"""Places and shapes of the plain SVG pictures: sparklines, the topology graph, the heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDE, HIGH = 120.0, 28.0
NODE_WIDE, NODE_HIGH, GAP_X, GAP_Y = 230.0, 74.0, 70.0, 22.0
CELL = 16.0
CURVE_WIDE, CURVE_HIGH, CURVE_LEFT, CURVE_BOTTOM = 480.0, 200.0, 62.0, 24.0
SHADES = 6
MOST_NODES = 60
PRESSURED, BUSY = 0.1, 0.5
_WELL_ABOVE = 2.5  # levels: what is higher runs along the edge, so that the rest can be seen
_HOT = 3.0  # medians: as slow as this or slower is the darkest shade


def sparkline(
    rates: Sequence[float | None], arrivals: Sequence[float | None], objective: float | None
) -> dict[str, Any]:
    """The rate as a line, what arrives as another, the objective as a third, all on one scale from zero."""
    known = [value for value in (*rates, *arrivals, objective) if value is not None and math.isfinite(value)]
    top = max(known, default=0.0) or 1.0
    return {
        "wide": WIDE,
        "high": HIGH,
        "rate": _points(rates, top),
        "arrival": _points(arrivals, top),
        "objective": None if objective is None else round(HIGH - 2 - (HIGH - 4) * objective / top, 1),
    }


def _points(values: Sequence[float | None], top: float) -> str:
    step = WIDE / max(1, len(values) - 1)
    return " ".join(
        f"{place * step:.1f},{HIGH - 2 - (HIGH - 4) * min(max(value / top, 0.0), 1.0):.1f}"
        for place, value in enumerate(values)
        if value is not None and math.isfinite(value)
    )


def curve(
    rates: Sequence[float],
    lines: Mapping[str, Sequence[float | None]],
    band: tuple[Sequence[float | None], Sequence[float | None]] | None = None,
    here: float | None = None,
    level: float | None = None,
) -> dict[str, Any]:
    """Lines over the rate, within a band if there is one, with marks on both axes; `here` is the rate that was asked
    for, `level` a height not to exceed."""
    every = [value for values in (*lines.values(), *(band or ()), [level]) for value in values]
    right = max(rates, default=0.0) or 1.0
    top = 1.08 * max((value for value in every if value is not None and math.isfinite(value)), default=0.0) or 1.0
    top = min(top, _WELL_ABOVE * level) if level else top
    bottom = CURVE_HIGH - CURVE_BOTTOM

    def at(rate: float, value: float) -> str:
        return f"{_x(rate, right):.1f},{bottom * (1 - min(max(value / top, 0.0), 1.0)):.1f}"

    def points(values: Sequence[float | None]) -> list[str]:
        known = zip(rates, values, strict=False)
        return [at(rate, value) for rate, value in known if value is not None and math.isfinite(value)]

    return {
        "wide": CURVE_WIDE,
        "high": CURVE_HIGH,
        "left": CURVE_LEFT,
        "bottom": bottom,
        "lines": {name: " ".join(points(values)) for name, values in lines.items()},
        "band": " ".join([*points(band[0]), *reversed(points(band[1]))]) if band else "",
        "here": None if here is None else round(_x(min(here, right), right), 1),
        "level": None if level is None else round(bottom * (1 - level / top), 1),
        "across": [{"at": round(_x(value, right), 1), "value": value} for value in _ticks(right)],
        "up": [{"at": round(bottom * (1 - value / top), 1), "value": value} for value in _ticks(top)],
    }


def _x(rate: float, right: float) -> float:
    return CURVE_LEFT + (CURVE_WIDE - CURVE_LEFT - 12.0) * rate / right


def _ticks(most: float) -> list[float]:
    """Round numbers from zero on, three to six of them."""
    unit = 10.0 ** math.floor(math.log10(most))
    step = next(part * unit for part in (0.2, 0.5, 1.0, 2.0) if most / (part * unit) <= 5)
    return [step * place for place in range(int(most / step) + 1)]


def state_of(component: Mapping[str, Any]) -> str:
    """Idle, busy or pressured, as Flink's graph has them; a batch that outlasts its trigger is pressure too."""
    busy, pressured = component.get("busy"), component.get("pressured")
    if busy is None and pressured is None:
        return "unknown"
    if (pressured or 0.0) > PRESSURED or (busy or 0.0) > 1.0:
        return "pressured"
    return "busy" if (busy or 0.0) >= BUSY else "idle"


def bottleneck(components: Sequence[Mapping[str, Any]]) -> str:
    """The component that holds the others back most, or is nearest to doing so; empty if nothing is busy."""
    ranked = [c for c in components if state_of(c) in ("busy", "pressured")]
    worst = max(ranked, key=lambda c: (c.get("pressured") or 0.0, c.get("busy") or 0.0), default=None)
    return str(worst["name"]) if worst is not None else ""


def topology(components: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Nodes in columns by their distance from a source, and the edges between them."""
    shown = components[:MOST_NODES]
    depth: dict[str, int] = {}
    for component in shown:
        depth[component["name"]] = 1 + max((depth.get(name, -1) for name in component.get("inputs") or ()), default=-1)
    rows: dict[int, int] = {}
    nodes: dict[str, dict[str, Any]] = {}
    slowest = bottleneck(shown)
    for component in shown:
        column = depth[component["name"]]
        row = rows[column] = rows.get(column, -1) + 1
        nodes[component["name"]] = {
            **component,
            "x": column * (NODE_WIDE + GAP_X),
            "y": row * (NODE_HIGH + GAP_Y) + 20.0,
            "state": state_of(component),
            "bottleneck": component["name"] == slowest,
        }
    edges = [
        {"x1": nodes[name]["x"] + NODE_WIDE, "y1": _middle(nodes[name]), "x2": node["x"], "y2": _middle(node)}
        for node in nodes.values()
        for name in node.get("inputs") or ()
        if name in nodes
    ]
    return {
        "nodes": list(nodes.values()),
        "edges": edges,
        "node_wide": NODE_WIDE,
        "node_high": NODE_HIGH,
        "wide": (max(rows, default=0) + 1) * (NODE_WIDE + GAP_X) - GAP_X,
        "high": (max(rows.values(), default=0) + 1) * (NODE_HIGH + GAP_Y) + 20.0,
        "bottleneck": slowest,
        "left_out": max(0, len(components) - MOST_NODES),
    }


def _middle(node: Mapping[str, Any]) -> float:
    return float(node["y"]) + NODE_HIGH / 2


def heat(matrix: Mapping[str, Any]) -> dict[str, Any]:
    """Cells with a shade from 0, the median or faster, to the darkest. What stands out is told in words as well."""
    workers, rows = matrix.get("workers") or [], matrix.get("cells") or []
    cells = [
        {"x": column * CELL, "y": row * CELL, "shade": _shade(value), "value": value, "worker": workers[row]}
        for row, values in enumerate(rows[: len(workers)])
        for column, value in enumerate(values)
        if isinstance(value, int | float)
    ]
    columns = max((len(values) for values in rows), default=0)
    return {
        "workers": workers,
        "cells": cells,
        "cell": CELL,
        "wide": columns * CELL,
        "high": len(workers) * CELL,
        "instances": matrix.get("instances", columns),
        "grouped": matrix.get("instances", columns) > columns,
        "finding": _finding(workers, rows, matrix.get("instances", columns)),
    }


def _shade(value: float) -> int:
    return min(SHADES - 1, max(0, math.floor((value - 1.0) / (_HOT - 1.0) * (SHADES - 1) + 0.5)))


def _finding(workers: Sequence[str], rows: Sequence[Sequence[float | None]], instances: int) -> str:
    """A row or a column whose cells all stand out from the rest."""
    by_row = {name: _middling(values) for name, values in zip(workers, rows, strict=False)}
    width = max((len(values) for values in rows), default=0)
    columns = [[values[place] for values in rows if place < len(values)] for place in range(width)]
    by_column = {place: _middling(values) for place, values in enumerate(columns)}
    slow = [name for name, value in by_row.items() if value >= 1.5 and len(by_row) > 1]
    hot = [place for place, value in by_column.items() if value >= 1.5 and width > 1]
    if slow and len(slow) < len(by_row):
        return f"slow worker: {', '.join(map(str, slow[:3]))}"
    if hot and len(hot) <= width // 2:
        return f"hot partition: {', '.join(_instances(place, width, instances) for place in hot[:3])}"
    return "nothing stands out"


def _instances(column: int, width: int, instances: int) -> str:
    """Those with column = instance × width ÷ instances, rounded down."""
    first, after = (-(-place * instances // width) for place in (column, column + 1))
    return str(first) if after - first <= 1 else f"{first}–{after - 1}"


def _middling(values: Sequence[float | None]) -> float:
    known = sorted(value for value in values if isinstance(value, int | float) and math.isfinite(value))
    return known[len(known) // 2] if known else 0.0
