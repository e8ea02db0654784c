"""The bound on the rows of a batch: how large it is at first, and what the sources were really told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from homeostat.core.configuration import ADMISSION_ROOM, ROWS_PER_TRIGGER, TRIGGER_S, Knob, Value
from homeostat.spark.pipeline import DEFAULT_TRIGGER_S, Pipeline
from homeostat.spark.sense.query_handle import known_sources
from homeostat.spark.sense.source_formats import SourceOptions, format_of

if TYPE_CHECKING:
    from homeostat.spark.act.managed_query import ManagedQuery

UNKNOWN_RATE_PER_S = 5_000.0


def default_rows(pipeline: Pipeline, trigger_s: float) -> int:
    """Twice what the objective needs in one trigger."""
    rate = pipeline.objective.throughput_per_s or UNKNOWN_RATE_PER_S
    return math.ceil(ADMISSION_ROOM * rate * max(1.0, trigger_s))


def written_values(pipeline: Pipeline, trigger_s: float, values: Mapping[Knob, Value]) -> dict[Knob, Value]:
    """The trigger that a pipeline's writer was given, NaN if none is known, and the default bound that goes with it.

    Nothing where the trigger was known before: then the bound is one that was chosen.
    """
    trigger = Knob(TRIGGER_S, pipeline.name)
    if math.isnan(trigger_s) or pipeline.trigger_s is not None or trigger in values:
        return {}
    found: dict[Knob, Value] = {trigger: trigger_s}
    if ROWS_PER_TRIGGER not in pipeline.start:
        # As fast as possible is no time that rows could be counted for.
        found[Knob(ROWS_PER_TRIGGER, pipeline.name)] = default_rows(pipeline, trigger_s or DEFAULT_TRIGGER_S)
    return found


def report_bound(managed: ManagedQuery) -> None:
    """A bound that the application sets itself is shown, so that it can be named as a cause, and is no knob."""
    assert managed.query is not None
    knob, sources = Knob(ROWS_PER_TRIGGER, managed.name), known_sources(managed.query)
    if managed.restartable and _follow(sources, managed.values.get(knob)):
        return
    bound = _bound_of(sources)
    others = {each: value for each, value in managed.values.items() if each != knob}
    managed.values = others if bound is None else {**others, knob: bound}
    managed.own = frozenset() if bound is None else frozenset({knob})


def _follow(sources: Sequence[SourceOptions], rows: Value | None) -> bool:
    """Whether these sources have the bound that they were given, and not one that the application sets itself."""
    told = [_told(source) for source in sources if format_of(source.format).bound_option]
    return rows is not None and all(bound == rows for bound in told)


def _bound_of(sources: Sequence[SourceOptions]) -> int | None:
    """The most rows that a batch of all these sources takes; None if one of them has no bound."""
    told = [_told(source) for source in sources]
    known = [bound for bound in told if bound is not None]
    return sum(known) if known and len(known) == len(told) else None


def _told(source: SourceOptions) -> int | None:
    text = source.option(format_of(source.format).bound_option)
    return int(text) if text.isdecimal() and int(text) > 0 else None
