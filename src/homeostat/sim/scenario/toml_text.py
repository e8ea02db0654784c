"""A micro-batch scenario with a load in steps, written as the TOML that `catalogue` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import isfinite

from homeostat.core.errors import ConfigError
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Scenario


def to_toml(scenario: Scenario) -> str:
    if not isinstance(scenario.engine, MicrobatchSpec) or scenario.workload.kind != "steps":
        raise ConfigError("only micro-batch scenarios with a load in steps can be written as TOML", where=scenario.name)
    parts = [
        *(f"# {note}" for note in scenario.notes),
        *_table(
            ("name", json.dumps(scenario.name)),
            ("title", json.dumps(scenario.title, ensure_ascii=False)),
            ("engine", '"microbatch"'),
            ("duration", _duration(scenario.duration_s)),
            ("service_noise", f"{{ sigma = {scenario.service_noise.sigma!r}, phi = {scenario.service_noise.phi!r} }}"),
        ),
        "",
        "[microbatch]",
        *_engine(scenario.engine),
        "",
        "[workload]",
        'kind = "steps"',
        "steps = [",
        *(f"  {{ at = {_duration(at_s)}, rate = {_rate(rate)} }}," for at_s, rate in scenario.workload.steps),
        "]",
    ]
    for component in scenario.components:
        parts += ["", "[[component]]", *_component(component)]
    return "\n".join(parts) + "\n"


def _engine(engine: MicrobatchSpec) -> Iterator[str]:
    yield from _table(("trigger", _duration(engine.trigger_s)))
    if isfinite(engine.rows_per_trigger):
        yield from _table(("rows_per_trigger", str(int(engine.rows_per_trigger))))
    yield from _table(
        ("executors", str(engine.executors)),
        ("slots", str(engine.slots)),
        ("max_executors", str(engine.max_executors)),
        ("executor_start", _duration(engine.executor_start_s)),
        ("warm_up", repr(float(engine.warm_up))),
        ("locality_wait", _duration(engine.locality_wait_s)),
        ("driver", _duration(engine.driver_s)),
        ("dispatch", _duration(engine.dispatch_s)),
        ("commit", _duration(engine.commit_s)),
        ("restart", _duration(engine.restart_s)),
        ("hosts", str(engine.hosts)),
        ("straggler_share", repr(float(engine.straggler_share))),
        ("straggler_factor", repr(float(engine.straggler_factor))),
        ("run_sigma", repr(float(engine.run_sigma))),
    )


def _component(component: ComponentSpec) -> Iterator[str]:
    yield from _table(("name", json.dumps(component.name)))
    if component.kind == "source":
        yield from _table(("kind", '"source"'))
    else:
        yield from _table(("inputs", json.dumps(component.inputs)))
    yield from _table(
        ("parallelism", str(component.parallelism)),
        ("rate", _rate(component.rate_per_s)),
        ("selectivity", repr(float(component.selectivity))),
        ("combining", repr(float(component.combining))),
        ("task", _duration(component.task_s)),
        ("crowding", repr(float(component.crowding))),
        ("key", _duration(component.key_s)),
    )
    if component.keyed:
        yield from _table(("keyed", "true"), ("keys", str(component.keys)), ("zipf", repr(float(component.zipf))))
    if component.stateful:
        yield from _table(("stateful", "true"))


def _table(*entries: tuple[str, str]) -> Iterable[str]:
    return (f"{key} = {value}" for key, value in entries)


def _duration(seconds: float) -> str:
    return f'"{seconds!r} s"'


def _rate(per_s: float) -> str:
    return f'"{per_s!r} rows/s"'
