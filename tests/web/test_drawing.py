"""The pictures in numbers: what is idle, busy and pressured, what stands out, and what a line shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.store.present import PresentComponent, TimeMatrix
from homeostat.web.drawing import HIGH, curve, heat, sparkline, state_of, topology

LINES = PresentComponent("lines", busy=0.2, pressured=0.0)
SPLIT = PresentComponent("split", inputs=("lines",), busy=0.7, pressured=0.0)
COUNT = PresentComponent("count", inputs=("split",), busy=0.9, pressured=0.3)


@pytest.mark.parametrize(
    ("busy", "pressured", "state"),
    [
        (0.2, 0.0, "idle"),
        (0.5, 0.1, "busy"),
        (0.9, None, "busy"),
        (1.1, None, "pressured"),
        (0.3, 0.2, "pressured"),
        (None, None, "unknown"),
    ],
)
def test_states_of_a_component(busy: float | None, pressured: float | None, state: str) -> None:
    assert state_of(PresentComponent("count", busy=busy, pressured=pressured)) == state


def test_the_graph_goes_from_the_sources_on_and_points_at_the_bottleneck() -> None:
    drawn = topology([LINES, SPLIT, COUNT])
    assert [node.x for node in drawn["nodes"]] == sorted({node.x for node in drawn["nodes"]})
    assert [node.bottleneck for node in drawn["nodes"]] == [False, False, True]
    assert len(drawn["edges"]) == 2
    assert topology([LINES])["bottleneck"] == "", "what is idle holds nobody back"


def test_a_graph_of_nonsense_is_still_a_graph() -> None:
    drawn = topology([replace(LINES, inputs=("lines", "nowhere")), LINES])
    assert len(drawn["nodes"]) == 1
    many = topology([replace(LINES, name=f"c{number}") for number in range(100)])
    assert (len(many["nodes"]), many["left_out"]) == (60, 40)


def matrix(cells: list[list[float | None]]) -> TimeMatrix:
    workers = tuple(f"exec-{number}" for number in range(len(cells)))
    return TimeMatrix(workers, len(cells[0]), tuple(map(tuple, cells)))


@pytest.mark.parametrize(
    ("cells", "finding"),
    [
        ([[1.0, 1.0, 1.0], [3.0, 2.0, 3.0]], "slow worker: exec-1"),
        ([[1.0, 4.0, 1.0], [1.0, 4.0, 1.0]], "hot partition: 1"),
        ([[1.0, 1.1, 0.9], [1.0, None, 1.0]], "all instances take about the same time"),
        ([[1.0, None], [None, 1.0]], "all instances take about the same time"),
    ],
)
def test_what_stands_out_is_reported_in_words(cells: list[list[float | None]], finding: str) -> None:
    assert heat(matrix(cells))["finding"] == finding


def test_a_group_of_partitions_is_reported_from_its_first_to_its_last() -> None:
    grouped = replace(matrix([[1.0, 4.0, 1.0, 1.0], [1.0, 4.0, 1.0, 1.0]]), instances=400)
    assert heat(grouped)["finding"] == "hot partition: 100–199"


def test_shades_grow_with_the_time() -> None:
    cells = heat(matrix([[0.5, 1.0, 1.6, 2.2, 3.0, 9.0]]))["cells"]
    assert [cell["shade"] for cell in cells] == [0, 0, 2, 3, 5, 5]


def test_a_sparkline_leaves_out_what_is_unknown_and_keeps_to_its_box() -> None:
    drawn = sparkline([100.0, None, 200.0], [200.0, 200.0, 200.0], 400.0)
    assert drawn["rate"].count(",") == 2
    assert drawn["objective"] == 2.0
    heights = [float(point.split(",")[1]) for point in drawn["rate"].split()]
    assert all(0 <= height <= HIGH for height in heights)
    assert heights[0] > heights[1]
    assert sparkline([], [], None)["rate"] == ""


def test_a_curve_is_cut_where_nothing_is_known_and_above_the_level() -> None:
    drawn = curve([0.0, 50.0, 100.0], {"now": [1.0, 100.0, None]}, here=250.0, level=10.0)
    assert len(drawn["lines"]["now"].split()) == 2
    assert drawn["lines"]["now"].split()[1].endswith(",0.0"), "far above the level it runs along the edge"
    assert drawn["here"] == drawn["across"][-1]["at"], "beyond the last rate it is at the end"
    assert [tick["value"] for tick in drawn["up"]] == [0, 5, 10, 15, 20, 25]
