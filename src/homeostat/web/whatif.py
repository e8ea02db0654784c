"""What another rate or configuration would do, and which one to have: the questions of `whatif` and `plan`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.core.configuration import EXECUTORS, EXECUTORS_KNOB, Configuration, Knob
from homeostat.core.errors import ConfigError
from homeostat.models.application_model import ApplicationModel, Predicted
from homeostat.models.batch_replay import BatchModel
from homeostat.models.planner import plan
from homeostat.models.planning_question import Goal
from homeostat.store.protocol import Store
from homeostat.views import questions
from homeostat.views.traffic_history import traffic
from homeostat.web.page_contexts import RUN, known_run
from homeostat.web.parameters import choice, number, text, whole

HORIZONS_S = {"15 min": 900.0, "30 min": 1_800.0, "1 h": 3_600.0, "6 h": 21_600.0, "1 d": 86_400.0}
MOST_ROWS_PER_S = 1e9
# A model is replayed task by task and slot by slot: whatever a log says, no answer takes more than this.
MOST_EXECUTORS = 5_000
MOST_PARTITIONS = 20_000
MOST_SLIDERS = 12
CURVE_POINTS = 16

PERFORMANCE = (
    RUN,
    number("rate", "rows per second; the present load if left out", 0, MOST_ROWS_PER_S),
    whole("executors", "so many; as many as there are if left out", 1, MOST_EXECUTORS),
    whole("partitions", "tasks of every stage that can be cut anew", 1, MOST_PARTITIONS),
    text("set", "any knobs, as parallelism.count=8,parallelism.split=4"),
)
PLANS = (
    RUN,
    number("rate", "rows per second that stay; a forecast, or the present load, if left out", 0, MOST_ROWS_PER_S),
    whole("confidence", "how sure it shall be that the objective holds, in per cent", 50, 99, 90),
    choice("horizon", "for how long it shall hold", tuple(HORIZONS_S), "30 min"),
    number("throughput", "rows per second to take at least; the application's own objective if left out", 0, 1e9),
    number("latency", "seconds within which 95 % of the rows shall be committed", 0, 1e6),
    number("lag", "seconds that it may be behind", 0, 1e6),
    number("cost", "instances that may be paid for", 0, 1e6),
    whole("offset", "how many candidates to leave out", 0, 5_000, 0),
    whole("limit", "candidates on a page", 1, 100, 20),
)
Asked = Mapping[str, Any]
# A model that another program wrote into the log, or a later version, may be anything at all.
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError)


def performance(store: Store, asked: Asked) -> dict[str, Any]:
    """Now and then, and both over every rate; `reason` says what is wrong where there is no answer."""

    def told(model: ApplicationModel) -> dict[str, Any]:
        now = model.predict(model.configuration, model.arrival_per_s)
        sliders = _sliders(model, now, asked)
        try:
            configuration = questions.configured(model, _wanted(model, asked))
        except ConfigError as error:
            return {"usable": False, "reason": error.what, "sliders": sliders}
        then = model.predict(configuration, model.arrival_per_s if asked["rate"] is None else asked["rate"])
        return {
            "at_s": float(model.at_s),
            "sliders": sliders,
            "now": questions.predicted_json(now),
            "then": questions.predicted_json(then),
            "curve": _curves(model, configuration, sliders[0]["high"]),
            "errors": {str(name): float(error) for name, error in model.errors.items()},
        }

    return _answered(store, asked, told)


def plans(store: Store, asked: Asked) -> dict[str, Any]:
    """The cheapest configuration that holds the objective, and why the others lost, a page of them at a time."""

    def told(model: ApplicationModel) -> dict[str, Any]:
        aimed = questions.with_objective(
            model,
            throughput_per_s=asked["throughput"],
            latency_p95_s=asked["latency"],
            lag_s=asked["lag"],
            cost_limit=asked["cost"],
        )
        history = None
        if asked["rate"] is None:
            history = traffic(store, asked["run"])
        else:
            aimed = replace(aimed, arrival_per_s=asked["rate"])
        goal = Goal(asked["confidence"] / 100, HORIZONS_S[asked["horizon"]])
        arrivals, load = questions.coming(aimed, goal, history)
        made = questions.plan_json(aimed, plan(aimed, arrivals=arrivals, goal=goal))
        after = asked["offset"] + asked["limit"]
        return made | {
            "load": load,
            "at_s": float(model.at_s),
            "asked": {name: value for name, value in asked.items() if value is not None},
            "present": dict(model.configuration.as_json()),
            "candidates": made["candidates"][asked["offset"] : after],
            "total": len(made["candidates"]),
            "next": after if after < len(made["candidates"]) else None,
        }

    return _answered(store, asked, told)


def _answered(store: Store, asked: Asked, told: Callable[[ApplicationModel], dict[str, Any]]) -> dict[str, Any]:
    from homeostat.views.stored_model import from_store

    info = known_run(store, asked["run"])
    found: dict[str, Any] = {"run": info.name, "usable": True, "reason": ""}
    try:
        return found | told(from_store(store, info.name, "the log"))
    except ConfigError as error:
        return found | {"usable": False, "reason": f"{error.what}: {error.fix}"}
    except _ODD:
        return found | {"usable": False, "reason": "the model in the log makes no sense here"}


def _wanted(model: ApplicationModel, asked: Asked) -> questions.Wanted:
    wanted: questions.Wanted = {}
    for each in filter(None, asked["set"].split(",")):
        name, _, value = each.rpartition("=")
        if not (value.isascii() and value.isdigit() and len(value) < 12):
            raise ConfigError("a knob is set to a whole number, as parallelism.count=8", where="set")
        wanted |= questions.single(model, name.strip(), int(value), "set")
    if asked["executors"] is not None:
        wanted |= questions.every(model, EXECUTORS, asked["executors"], "executors")
    if asked["partitions"] is not None:
        wanted |= questions.partitions(model, asked["partitions"], "partitions")
    large = next((knob for knob, value in wanted.items() if value > MOST_PARTITIONS), None)
    if large is not None:
        raise ConfigError(f"{large} can be at most {MOST_PARTITIONS} here", where="set")
    return wanted


def _sliders(model: ApplicationModel, now: Predicted, asked: Asked) -> list[dict[str, Any]]:
    """What can be moved and how far: the rate first, then executors and partitions, or the instances of a dataflow."""
    values, knobs = model.configuration.values, model.capabilities.knobs
    arrival, top = model.arrival_per_s, now.saturation_per_s.middle
    most = _round_up(min(2.5 * max(arrival, top if math.isfinite(top) else 0.0, 1.0), MOST_ROWS_PER_S))
    found = [_slider("rate", "Rate", (0, most), arrival, asked["rate"]) | {"unit": "rows/s", "step": "any"}]
    if EXECUTORS_KNOB in values and EXECUTORS_KNOB in knobs:
        limits, count = _limits(model, (EXECUTORS_KNOB,), MOST_EXECUTORS)
        found.append(_slider("executors", "Executors", limits, count, asked["executors"]))
    cut = tuple(knob for knob in model.partition_knobs() if knob in values)
    if cut:
        limits, count = _limits(model, cut, MOST_PARTITIONS)
        found.append(_slider("partitions", "Partitions of every stage", limits, count, asked["partitions"]))
    own = {c.scaled_by for c in model.topology if c.scaled_by != EXECUTORS_KNOB and c.scaled_by in values}
    for knob in sorted(own)[:MOST_SLIDERS]:
        limits, count = _limits(model, (knob,), MOST_PARTITIONS)
        found.append(_slider(str(knob), f"Instances of {knob.scope}", limits, count, None) | {"knob": True})
    return found


def _limits(model: ApplicationModel, knobs: Sequence[Knob], most: int) -> tuple[tuple[int, int], int]:
    """Up to four times what there is, within what every one of the knobs can be."""
    count = max(int(model.configuration[each]) for each in knobs)
    specs = [model.capabilities.knobs[each] for each in knobs if each in model.capabilities.knobs]
    low = max((int(spec.minimum) for spec in specs), default=1)
    high = min([int(spec.maximum) for spec in specs] + [most, max(8, 4 * count)])
    return (max(1, low), max(high, count)), count


def _slider(name: str, label: str, limits: tuple[float, float], now: float, asked: float | None) -> dict[str, Any]:
    low, high = limits
    value = now if asked is None else asked
    numbers = {"low": low, "high": max(high, value), "now": now, "value": value}
    return {"name": name, "label": label, "unit": "", "step": 1, "knob": False, **numbers}


def _curves(model: ApplicationModel, configuration: Configuration, most_per_s: float) -> dict[str, Any]:
    """Both configurations over the same rates, from nothing to the most that can be asked."""
    rates = [most_per_s * place / CURVE_POINTS for place in range(CURVE_POINTS + 1)]
    now = [model.predict(model.configuration, rate) for rate in rates]
    same = configuration == model.configuration
    then = now if same else [model.predict(configuration, rate) for rate in rates]
    trigger_s = model.setup(configuration).trigger_s if isinstance(model.performance, BatchModel) else None
    return {"rate_per_s": rates, "trigger_s": trigger_s, "now": _columns(now), "then": _columns(then)}


def _columns(found: Sequence[Predicted]) -> dict[str, Any]:
    """Where more arrives than is taken, batches grow longer and longer: no duration is theirs."""
    batches = [each.batch_s.as_json() if each.batch_s is not None and each.stable else {} for each in found]
    return {
        "throughput_per_s": [each.throughput_per_s for each in found],
        "batch_s": {name: [batch.get(name) for batch in batches] for name in ("p10", "p50", "p90")},
    }


def _round_up(value: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
