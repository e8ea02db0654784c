"""The limit on the rows of a batch: its initial value, and the one that the sources of a query have."""

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

# For an objective without a throughput: a rate that a small cluster can process.
UNKNOWN_RATE_PER_S = 5_000.0


def default_rows(pipeline: Pipeline, trigger_s: float) -> int:
    """Twice the rows that the objective needs in one trigger interval."""
    rate = pipeline.objective.throughput_per_s or UNKNOWN_RATE_PER_S
    return math.ceil(ADMISSION_ROOM * rate * max(1.0, trigger_s))


def written_values(pipeline: Pipeline, trigger_s: float, values: Mapping[Knob, Value]) -> dict[Knob, Value]:
    """The trigger that the pipeline's function sets on its writer (NaN if unknown), and the default limit for it.

    Empty if `values` has a trigger: then its limit was chosen, too.
    """
    trigger = Knob(TRIGGER_S, pipeline.name)
    if math.isnan(trigger_s) or pipeline.trigger_s is not None or trigger in values:
        return {}
    values_of_writer: dict[Knob, Value] = {trigger: trigger_s}
    if ROWS_PER_TRIGGER not in pipeline.start:
        # A trigger of 0 (as fast as possible) does not determine the rows of a batch.
        values_of_writer[Knob(ROWS_PER_TRIGGER, pipeline.name)] = default_rows(pipeline, trigger_s or DEFAULT_TRIGGER_S)
    return values_of_writer


def report_bound(managed: ManagedQuery) -> None:
    """Show a limit that the application sets itself, so that a diagnosis can name it. It is not a knob."""
    assert managed.query is not None
    knob, sources = Knob(ROWS_PER_TRIGGER, managed.name), known_sources(managed.query)
    if managed.restartable and _follow(sources, managed.values.get(knob)):
        return
    bound = _bound_of(sources)
    others = {each: value for each, value in managed.values.items() if each != knob}
    managed.values = others if bound is None else {**others, knob: bound}
    managed.set_by_application = frozenset() if bound is None else frozenset({knob})


def _follow(sources: Sequence[SourceOptions], rows: Value | None) -> bool:
    """Whether these sources have the limit that Homeostat set, and not one that the application sets itself."""
    limits = [_limit(source) for source in sources if format_of(source.format).bound_option]
    return rows is not None and all(limit == rows for limit in limits)


def _bound_of(sources: Sequence[SourceOptions]) -> int | None:
    """The most rows in a batch of all these sources together; None if one of them has no limit."""
    limits = [limit for limit in map(_limit, sources) if limit is not None]
    return sum(limits) if limits and len(limits) == len(sources) else None


def _limit(source: SourceOptions) -> int | None:
    text = source.option(format_of(source.format).bound_option)
    return int(text) if text.isdecimal() and int(text) > 0 else None
