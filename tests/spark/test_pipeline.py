"""Pipelines: what the decorator rejects, and how an error in the function is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from homeostat.core.configuration import PARALLELISM, SPREAD, Knob
from homeostat.core.errors import ConfigError
from homeostat.spark.pipeline import DEFAULT_PARALLELISM, Context, Pipeline, build_writer, pipeline
from homeostat.spark.sense.declared_steps import DeclaredSteps

SPREAD_KNOB = Knob(SPREAD, "words/count")


def context(values: dict[Knob, float] | None = None) -> Context:
    """Without a session: nothing is read."""
    return Context(cast("Any", None), "words", values or {}, Path(), Path("control.json"))


def nothing(ctx: Context) -> None:
    return None


def test_a_context_records_the_knobs_and_steps_that_the_function_asks_for() -> None:
    ctx = context({SPREAD_KNOB: 4})
    assert ctx.parallelism("split") == DEFAULT_PARALLELISM
    assert ctx.spread("count").instances == 4
    assert ctx.steps == DeclaredSteps(("split", "count-combine"), spreads=("count",))
    assert ctx.knob_values == {Knob(PARALLELISM, "words/split"): DEFAULT_PARALLELISM, SPREAD_KNOB: 4}


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_step_has_a_name_without_a_slash(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid name for a step"):
        context().spread(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 3}, "unknown knob 'workers'"),
        ({"executors": 0}, "executors = 0 must be a whole number, at least 1"),
        ({"executors": True}, "executors = True must be a whole number"),
        ({"trigger": "soon"}, "trigger"),
        ({"trigger": -1.0}, "trigger of -1 s is not a duration"),
        ({"name": "a/b"}, "'a/b' is not a valid name for a query"),
    ],
)
def test_bad_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pipeline(**arguments)(nothing)


def test_a_pipeline_has_the_name_of_its_function_and_the_values_of_its_knobs() -> None:
    one_pipeline = pipeline(trigger="2 s", executors=3)(nothing)
    assert (one_pipeline.name, one_pipeline.trigger_s, one_pipeline.start) == ("nothing", 2.0, {"executors": 3})


def test_an_error_in_the_function_is_reported_with_its_line() -> None:
    def fails(ctx: Context) -> None:
        raise KeyError("lines")

    with pytest.raises(ConfigError, match=rf"{Path(__file__).name}:\d+ raises KeyError: 'lines'"):
        build_writer(Pipeline("words", fails), context())
    with pytest.raises(ConfigError, match="the function returns NoneType, not a writer"):
        build_writer(Pipeline("words", nothing), context())
