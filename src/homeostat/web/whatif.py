"""The what-if and plan pages: what would another rate or configuration do, and which one is cheapest?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from homeostat.core.configuration import EXECUTORS, EXECUTORS_KNOB, Configuration, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.records import BATCH
from homeostat.log_views import questions
from homeostat.log_views.traffic_history import traffic
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.batch_replay import BatchModel
from homeostat.models.model_json import MODEL_KEY
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Goal
from homeostat.store.present import load_present
from homeostat.store.protocol import Store
from homeostat.web.page_answers import RUN, Parameters, known_run
from homeostat.web.page_contexts import PerformanceContext, PlansContext, Slider
from homeostat.web.parameters import choice, number, text, whole
from homeostat.web.series import contents
from homeostat.web.texts import as_sentence

HORIZONS_S = {"15 min": 900.0, "30 min": 1_800.0, "1 h": 3_600.0, "6 h": 21_600.0, "1 d": 86_400.0}
MOST_ROWS_PER_S = 1e9
# A model is replayed task by task and slot by slot. These bounds keep any answer short, whatever a log says.
MOST_EXECUTORS = 5_000
MOST_PARTITIONS = 20_000
MOST_SLIDERS = 12
CURVE_POINTS = 16
# The rate slider ends at this multiple of the present load or of the largest rate, so that saturation can be seen.
RATE_SLIDER_FACTOR = 2.5

PERFORMANCE = (
    RUN,
    number("rate", "rows per second; by default the present load", 0, MOST_ROWS_PER_S),
    whole("executors", "number of executors; by default as many as now", 1, MOST_EXECUTORS),
    whole("partitions", "number of tasks of every stage that can be repartitioned", 1, MOST_PARTITIONS),
    text("set", "values of any knobs, for example parallelism.count=8,parallelism.split=4"),
)
PLANS = (
    RUN,
    number("rate", "constant rate in rows per second; by default a forecast or the present load", 0, MOST_ROWS_PER_S),
    whole("confidence", "how sure the plan must be that the objective holds, in per cent", 50, 99, 90),
    choice("horizon", "for how long the objective must hold", tuple(HORIZONS_S), "30 min"),
    number("throughput", "least rows per second to process; by default the application's objective", 0, 1e9),
    number("latency", "seconds within which 95 % of the rows must be committed", 0, 1e6),
    number("lag", "largest lag in seconds", 0, 1e6),
    number("cost", "largest number of instances", 0, 1e6),
    whole("offset", "how many candidates to skip", 0, 5_000, 0),
    whole("limit", "most candidates to return", 1, 100, 20),
)
DAMAGED = "The model in the log is damaged. A running manager replaces it within a minute."
# A model that another program or a later version wrote can have any content.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError)
_Context = TypeVar("_Context", PerformanceContext, PlansContext)


def performance(store: Store, parameters: Parameters) -> PerformanceContext:
    """The prediction for now and for the question, and both over every rate."""
    return _answer(store, parameters, PerformanceContext, lambda run, model: _performance(run, model, parameters))


def plans(store: Store, parameters: Parameters) -> PlansContext:
    """The cheapest configuration that meets the objective, and why the others were not chosen, one page at a time."""
    return _answer(store, parameters, PlansContext, lambda run, model: _plans(run, model, store, parameters))


def _answer(
    store: Store, parameters: Parameters, context: type[_Context], answer: Callable[[str, ApplicationModel], _Context]
) -> _Context:
    from homeostat.log_views.stored_model import from_store

    run = known_run(store, parameters["run"]).name
    if store.load_state(run, MODEL_KEY) is None:
        return context(run, usable=False, reason=missing_model(store, run))
    try:
        model = from_store(store, run, "the log")
    except ConfigError:
        return context(run, usable=False, reason="The model in the log was written by another version of Homeostat.")
    except _DAMAGED:
        return context(run, usable=False, reason=DAMAGED)
    try:
        return answer(run, model)
    except ConfigError as error:
        return context(run, usable=False, reason=as_sentence(error.what))
    except _DAMAGED:
        return context(run, usable=False, reason=DAMAGED)


def missing_model(store: Store, run: str) -> str:
    """Why the log has no model of the run yet, in one sentence."""
    present = load_present(store, run)
    if not present.mode:
        return "No manager has reported on this run."
    batches = contents(store.records(run, kinds=(BATCH,), limit=LEAST_OBSERVATIONS, newest_first=True))
    with_rows = sum(batch.rows > 0 for batch in batches)
    if with_rows < LEAST_OBSERVATIONS:
        return f"The model needs {LEAST_OBSERVATIONS} batches with rows and has seen {with_rows}."
    waiting = next((action.id for action in present.active if action.state == "under way"), None)
    if waiting is not None:
        return f"The model waits until {waiting} has taken effect."
    if not any(math.isfinite(batch.arrival_per_s) for batch in batches):
        return "The rate at which rows arrive is unknown."
    return "The manager has not fitted a model yet. It tries once a minute."


def _performance(run: str, model: ApplicationModel, parameters: Parameters) -> PerformanceContext:
    now = model.predict(model.configuration, model.arrival_per_s)
    sliders = _sliders(model, now, parameters)
    try:
        configuration = questions.with_changes(model, _values(model, parameters))
    except ConfigError as error:
        return PerformanceContext(run, usable=False, reason=as_sentence(error.what), sliders=sliders)
    then = model.predict(configuration, model.arrival_per_s if parameters["rate"] is None else parameters["rate"])
    return PerformanceContext(
        run=run,
        at_s=float(model.at_s),
        sliders=sliders,
        now=questions.predicted_json(now),
        then=questions.predicted_json(then),
        curve=_curves(model, configuration, sliders[0].high),
        errors={str(name): float(error) for name, error in model.errors.items()},
    )


def _plans(run: str, model: ApplicationModel, store: Store, parameters: Parameters) -> PlansContext:
    model = questions.with_objective(
        model,
        throughput_per_s=parameters["throughput"],
        latency_p95_s=parameters["latency"],
        lag_s=parameters["lag"],
        cost_limit=parameters["cost"],
    )
    history = None
    if parameters["rate"] is None:
        history = traffic(store, parameters["run"])
    else:
        model = replace(model, arrival_per_s=parameters["rate"])
    goal = Goal(parameters["confidence"] / 100, HORIZONS_S[parameters["horizon"]])
    arrivals, load = questions.coming(model, goal, history)
    answer = questions.plan_json(model, plan(model, arrivals=arrivals, goal=goal))
    candidates, after = answer["candidates"], parameters["offset"] + parameters["limit"]
    page = {
        "at_s": float(model.at_s),
        "load": load,
        "asked": {name: value for name, value in parameters.items() if value is not None},
        "present": dict(model.configuration.as_json()),
        "candidates": candidates[parameters["offset"] : after],
        "total": len(candidates),
        "next": after if after < len(candidates) else None,
    }
    return PlansContext(run=run, **{**answer, **page})


def _values(model: ApplicationModel, parameters: Parameters) -> questions.KnobValues:
    """The knobs that the question sets."""
    values: questions.KnobValues = {}
    for each in filter(None, parameters["set"].split(",")):
        name, _, value = each.rpartition("=")
        if not (value.isascii() and value.isdigit() and len(value) < 12):
            raise ConfigError("'set' takes whole numbers, for example parallelism.count=8", where="set")
        values |= questions.single(model, name.strip(), int(value), "set")
    if parameters["executors"] is not None:
        values |= questions.every(model, EXECUTORS, parameters["executors"], "executors")
    if parameters["partitions"] is not None:
        values |= questions.partitions(model, parameters["partitions"], "partitions")
    large = next((knob for knob, value in values.items() if value > MOST_PARTITIONS), None)
    if large is not None:
        raise ConfigError(f"{large} can be at most {MOST_PARTITIONS} here", where="set")
    return values


def _sliders(model: ApplicationModel, now: Predicted, parameters: Parameters) -> tuple[Slider, ...]:
    """The rate first, then executors and partitions, or the instances of each component of a dataflow."""
    values, knobs = model.configuration.values, model.capabilities.knobs
    arrival, top = model.arrival_per_s, now.saturation_per_s.middle
    largest = RATE_SLIDER_FACTOR * max(arrival, top if math.isfinite(top) else 0.0, 1.0)
    limits: tuple[float, float] = (0, _round_up(min(largest, MOST_ROWS_PER_S)))
    sliders = [_slider("rate", "Rate", limits, arrival, parameters["rate"], unit="rows/s", step="any")]
    if EXECUTORS_KNOB in values and EXECUTORS_KNOB in knobs:
        limits, count = _limits(model, (EXECUTORS_KNOB,), MOST_EXECUTORS)
        sliders.append(_slider("executors", "Executors", limits, count, parameters["executors"]))
    partition_knobs = tuple(knob for knob in model.partition_knobs() if knob in values)
    if partition_knobs:
        limits, count = _limits(model, partition_knobs, MOST_PARTITIONS)
        sliders.append(_slider("partitions", "Partitions of every stage", limits, count, parameters["partitions"]))
    own = {c.scaled_by for c in model.topology if c.scaled_by != EXECUTORS_KNOB and c.scaled_by in values}
    for knob in sorted(own)[:MOST_SLIDERS]:
        limits, count = _limits(model, (knob,), MOST_PARTITIONS)
        sliders.append(_slider(str(knob), f"Instances of {knob.scope}", limits, count, None, knob=True))
    return tuple(sliders)


def _limits(model: ApplicationModel, knobs: Sequence[Knob], most: int) -> tuple[tuple[int, int], int]:
    """From the least to four times the present value, within the bounds of every one of the knobs."""
    count = max(int(model.configuration[each]) for each in knobs)
    specs = [model.capabilities.knobs[each] for each in knobs if each in model.capabilities.knobs]
    low = max((int(spec.minimum) for spec in specs), default=1)
    high = min([int(spec.maximum) for spec in specs] + [most, max(8, 4 * count)])
    return (max(1, low), max(high, count)), count


def _slider(
    name: str, label: str, limits: tuple[float, float], now: float, requested: float | None, **differs: Any
) -> Slider:
    low, high = limits
    value = now if requested is None else requested
    return Slider(name, label, low, max(high, value), now, value, **differs)


def _curves(model: ApplicationModel, configuration: Configuration, most_per_s: float) -> dict[str, Any]:
    """Both configurations over the same rates, from zero to the end of the slider."""
    rates = [most_per_s * place / CURVE_POINTS for place in range(CURVE_POINTS + 1)]
    now = [model.predict(model.configuration, rate) for rate in rates]
    same = configuration == model.configuration
    then = now if same else [model.predict(configuration, rate) for rate in rates]
    trigger_s = model.setup(configuration).trigger_s if isinstance(model.performance, BatchModel) else None
    return {"rate_per_s": rates, "trigger_s": trigger_s, "now": _columns(now), "then": _columns(then)}


def _columns(predictions: Sequence[Predicted]) -> dict[str, Any]:
    """Where more rows arrive than can be processed, batches grow without end and have no duration."""
    batches = [each.batch_s.as_json() if each.batch_s is not None and each.stable else {} for each in predictions]
    return {
        "throughput_per_s": [each.throughput_per_s for each in predictions],
        "batch_s": {name: [batch.get(name) for batch in batches] for name in ("p10", "p50", "p90")},
    }


def _round_up(value: float) -> float:
    """To two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
