"""Objectives of an application, as the API writes them: `hs.Throughput(at_least=50_000)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, replace

from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective
from homeostat.strict import units

ObjectiveArgument = Objective | Iterable[Objective] | None


def Throughput(at_least: float | str) -> Objective:  # noqa: N802 - reads as a value, not as an action
    """Process at least this many rows per second, or all that arrive: `50_000` or `"50k/s"`."""
    return Objective(throughput_per_s=_positive("Throughput", at_least, units.parse_rate))


def Lag(at_most: float | str) -> Objective:  # noqa: N802
    """Stay at most this far behind the source: `30` (seconds) or `"30s"`."""
    return Objective(lag_s=_positive("Lag", at_most, units.parse_duration))


def CatchUp(within: float | str) -> Objective:  # noqa: N802
    """When rows wait, catch up within this time: `600` (seconds) or `"10 min"`."""
    return Objective(catch_up_s=_positive("CatchUp", within, units.parse_duration))


def Latency(p95_at_most: float | str) -> Objective:  # noqa: N802
    """Commit 95 % of the rows within this time after they arrive."""
    return Objective(latency_p95_s=_positive("Latency", p95_at_most, units.parse_duration))


def Cost(at_most: float) -> Objective:  # noqa: N802
    """Use at most this many executors."""
    return Objective(cost_limit=_positive("Cost", at_most, units.parse_count))


def ModelError(at_most: float | str) -> Objective:  # noqa: N802
    """Trust the models to choose sizes while their predictions of time are off by at most this: `"50 %"` or `0.5`.

    Above it, Homeostat changes sizes step by step.
    """
    return Objective(model_error=_positive("ModelError", at_most, units.parse_error, units.parse_error))


def Provisioning() -> Objective:  # noqa: N802
    """Follow the load: no backpressure, and no idle executors."""
    return Objective()


def combine(objectives: ObjectiveArgument) -> Objective:
    """Combine several objectives into one. Each kind may occur once."""
    if objectives is None:
        return Objective()
    if isinstance(objectives, Objective):
        return objectives
    whole = Objective()
    for part in objectives:
        for field in fields(Objective):
            value = getattr(part, field.name)
            if value is None:
                continue
            if getattr(whole, field.name) is not None:
                raise ConfigError(
                    f"{field.name} is given twice", where="objective", fix="give each kind of objective once"
                )
            whole = replace(whole, **{field.name: value})
    return whole


def _positive(
    name: str, value: float | str, parse: Callable[[object], float], of_number: Callable[[float], float] = float
) -> float:
    """A plain number is in rows per second or seconds; text has its own unit."""
    try:
        number = parse(value) if isinstance(value, str) else of_number(value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{name} {error}", where="objective") from error
    if not 0 < number < math.inf:
        raise ConfigError(f"{name} must be above 0, but is {number:g}", where="objective")
    return number
