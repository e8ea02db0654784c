"""Positions and shapes of the SVG pictures: sparklines, curves, the topology graph, the heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.store.present import PresentComponent, TimeMatrix

WIDE, HIGH = 120.0, 28.0
NODE_WIDE, NODE_HIGH, GAP_X, GAP_Y = 230.0, 74.0, 70.0, 22.0
CELL = 16.0
CURVE_WIDE, CURVE_HIGH, CURVE_LEFT, CURVE_BOTTOM = 480.0, 200.0, 62.0, 24.0
SHADES = 6
MOST_NODES = 60
PRESSURED, BUSY = 0.1, 0.5
# The top of a chart, in multiples of the level: higher values run along the edge, so that the rest can be seen.
_WELL_ABOVE = 2.5
# The darkest shade starts at this multiple of the median.
_HOT = 3.0
# A row or column that is this many times as slow as the median is named in the text.
_STANDS_OUT = 1.5


def sparkline(
    rates: Sequence[float | None], arrivals: Sequence[float | None], objective: float | None
) -> dict[str, Any]:
    """Process rate, input rate and objective on one scale from zero."""
    finite = [value for value in (*rates, *arrivals, objective) if value is not None and math.isfinite(value)]
    top = max(finite, default=0.0) or 1.0
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
    """Lines over the rate, with a band if there is one and ticks on both axes. `here` is the rate in question, `level`
    a height that should not be exceeded."""
    every = [value for values in (*lines.values(), *(band or ()), [level]) for value in values]
    right = max(rates, default=0.0) or 1.0
    top = 1.08 * max((value for value in every if value is not None and math.isfinite(value)), default=0.0) or 1.0
    top = min(top, _WELL_ABOVE * level) if level else top
    bottom = CURVE_HIGH - CURVE_BOTTOM

    def at(rate: float, value: float) -> str:
        return f"{_x(rate, right):.1f},{bottom * (1 - min(max(value / top, 0.0), 1.0)):.1f}"

    def points(values: Sequence[float | None]) -> list[str]:
        pairs = zip(rates, values, strict=False)
        return [at(rate, value) for rate, value in pairs if value is not None and math.isfinite(value)]

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
    """Three to six round numbers from zero."""
    unit = 10.0 ** math.floor(math.log10(most))
    step = next(part * unit for part in (0.2, 0.5, 1.0, 2.0) if most / (part * unit) <= 5)
    return [step * place for place in range(int(most / step) + 1)]


@dataclass(frozen=True, slots=True)
class Node:
    """A component in the topology graph, with its upper left corner."""

    component: PresentComponent
    x: float
    y: float
    state: str
    bottleneck: bool

    @property
    def middle(self) -> float:
        return self.y + NODE_HIGH / 2


def state_of(component: PresentComponent) -> str:
    """Idle, busy or pressured, as in Flink's graph. A batch that outlasts its trigger is pressure too."""
    if component.busy is None and component.pressured is None:
        return "unknown"
    busy, pressure = component.busy or 0.0, component.pressured or 0.0
    if pressure > PRESSURED or busy > 1.0:
        return "pressured"
    return "busy" if busy >= BUSY else "idle"


def bottleneck(components: Sequence[PresentComponent]) -> str:
    """The component that holds the others back most, or is nearest to doing so; empty if nothing is busy."""
    busy = [component for component in components if state_of(component) in ("busy", "pressured")]
    worst = max(busy, key=lambda component: (component.pressured or 0.0, component.busy or 0.0), default=None)
    return worst.name if worst is not None else ""


def topology(components: Sequence[PresentComponent]) -> dict[str, Any]:
    """Nodes in columns by their distance from the sources, and the edges between them."""
    visible = components[:MOST_NODES]
    depth: dict[str, int] = {}
    rows: dict[int, int] = {}
    nodes: dict[str, Node] = {}
    slowest = bottleneck(visible)
    for component in visible:
        name = component.name
        column = depth[name] = 1 + max((depth.get(each, -1) for each in component.inputs), default=-1)
        row = rows[column] = rows.get(column, -1) + 1
        x, y = column * (NODE_WIDE + GAP_X), row * (NODE_HIGH + GAP_Y) + 20.0
        nodes[name] = Node(component, x, y, state_of(component), name == slowest)
    edges = [
        {"x1": nodes[name].x + NODE_WIDE, "y1": nodes[name].middle, "x2": node.x, "y2": node.middle}
        for node in nodes.values()
        for name in node.component.inputs
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


def heat(matrix: TimeMatrix) -> dict[str, Any]:
    """Cells shaded from 0 (the median or faster) to the darkest. Outliers are also named in the text."""
    cells = [
        {"x": column * CELL, "y": row * CELL, "shade": _shade(value), "value": value, "worker": matrix.workers[row]}
        for row, values in enumerate(matrix.cells[: len(matrix.workers)])
        for column, value in enumerate(values)
        if value is not None
    ]
    columns = max((len(values) for values in matrix.cells), default=0)
    return {
        "workers": matrix.workers,
        "cells": cells,
        "cell": CELL,
        "wide": columns * CELL,
        "high": len(matrix.workers) * CELL,
        "instances": matrix.instances,
        "grouped": matrix.instances > columns,
        "finding": _finding(matrix.workers, matrix.cells, matrix.instances),
    }


def _shade(value: float) -> int:
    return min(SHADES - 1, max(0, math.floor((value - 1.0) / (_HOT - 1.0) * (SHADES - 1) + 0.5)))


def _finding(workers: Sequence[str], rows: Sequence[Sequence[float | None]], instances: int) -> str:
    """Names a row or a column whose cells stand out from the rest."""
    by_row = {name: _middling(values) for name, values in zip(workers, rows, strict=False)}
    width = max((len(values) for values in rows), default=0)
    columns = [[values[place] for values in rows if place < len(values)] for place in range(width)]
    by_column = {place: _middling(values) for place, values in enumerate(columns)}
    slow = [name for name, value in by_row.items() if value >= _STANDS_OUT and len(by_row) > 1]
    hot = [place for place, value in by_column.items() if value >= _STANDS_OUT and width > 1]
    if slow and len(slow) < len(by_row):
        return f"slow worker: {', '.join(map(str, slow[:3]))}"
    if hot and len(hot) <= width // 2:
        return f"hot partition: {', '.join(_instances(place, width, instances) for place in hot[:3])}"
    return "all instances take about the same time"


def _instances(column: int, width: int, instances: int) -> str:
    """Those with column = instance × width ÷ instances, rounded down."""
    first, after = (-(-place * instances // width) for place in (column, column + 1))
    return str(first) if after - first <= 1 else f"{first}–{after - 1}"


def _middling(values: Sequence[float | None]) -> float:
    finite = sorted(value for value in values if isinstance(value, int | float) and math.isfinite(value))
    return finite[len(finite) // 2] if finite else 0.0
