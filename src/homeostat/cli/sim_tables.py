"""Prints simulated runs: one in detail, or several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from homeostat.cli.output import KIND_STYLES, clock, console, heading, print_table

if TYPE_CHECKING:
    from homeostat.core.records import Record
    from homeostat.sim.scenario.spec import Scenario
    from homeostat.sim.simulation import RunResult

COMPARISON = ("policy", "converged", "steps", "since", "unhealthy", "cost", "needless", "at end")
LEGEND = (
    "since: start of the final healthy stretch · unhealthy: total time · cost: instance-seconds ÷ the oracle's · "
    "at end: {names}"
)


def print_run(scenario: Scenario, result: RunResult) -> None:
    """The actions of the run, the alerts and advice on the way, and how it ended."""
    out = console()
    heading(f"{scenario.name}: {scenario.title} (policy {result.policy}, seed {result.seed})")
    rows = [("0:00:00", "start", "", parallelism_text(_at_start(scenario)))]
    styles = [""]
    for step in result.trajectory:
        because = f"{step.because} (needless)" if step.needless else step.because
        rows.append((clock(step.time_s), step.action, because, parallelism_text(step.parallelism)))
        styles.append("yellow" if step.needless else "")
    columns = ("time", "action", "because", "instances afterwards")
    print_table(columns, rows, right=("time",), fold=columns[1:], styles=styles)
    messages = sorted((*result.alerts, *result.advice), key=lambda record: record.at_s)
    for _, group in groupby(messages, key=lambda record: (record.kind, record.component, record.text)):
        same = list(group)
        again = f" ({len(same)} times until {clock(same[-1].at_s)})" if len(same) > 1 else ""
        out.print(f"{_message(same[0])}{again}", style=KIND_STYLES.get(same[0].kind, ""), markup=False)
    out.print()
    for label, value in _summary(result).items():
        out.print(f"{label:<24}{value}", markup=False)


def _message(record: Record) -> str:
    from homeostat.sim.referee import because

    line = f"{clock(record.at_s)}  {record.kind}: {record.text}"
    return f"{line}, because of {because(record)}" if record.kind == "advice" else line


def print_comparison(results: Sequence[RunResult]) -> None:
    rows = [_comparison_row(result) for result in results]
    styles = ["" if result.healthy_since_s is not None else "red" for result in results]
    print_table(COMPARISON, rows, right=COMPARISON[2:7], fold=("policy", "at end"), styles=styles)
    console().print(LEGEND.format(names="/".join(results[0].final_parallelism)), style="dim", markup=False)


def parallelism_text(parallelism: Mapping[str, int | float]) -> str:
    """
    >>> parallelism_text({"count": 8, "split": 4})
    'count=8 split=4'
    """
    return " ".join(f"{name}={value:g}" for name, value in parallelism.items())


def _at_start(scenario: Scenario) -> dict[str, int | float]:
    from homeostat.sim.referee import parallelism_json
    from homeostat.sim.simulation import build_engine

    return parallelism_json(build_engine(scenario).describe().configuration)


def _summary(result: RunResult) -> dict[str, str]:
    values = result.as_json()
    return {
        "converged": "yes" if values["converged"] else "no: not healthy at the end",
        "steps": str(values["steps"]),
        "healthy for good since": _time(values["time_to_healthy_s"]),
        "unhealthy for": f"{values['slo_violation_s']:,.0f} s of {result.duration_s:,.0f} s",
        "instance-seconds": f"{values['instance_seconds']:,.0f} (oracle {values['oracle_instance_seconds']:,.0f})",
        "needless actions": str(values["needless_actions"]),
        "instances at the end": parallelism_text(result.final_parallelism),
    }


def _comparison_row(result: RunResult) -> tuple[str, ...]:
    values = result.as_json()
    oracle = values["oracle_instance_seconds"]
    return (
        result.policy,
        "yes" if values["converged"] else "no",
        str(values["steps"]),
        _time(values["time_to_healthy_s"]),
        f"{values['slo_violation_s']:,.0f} s",
        f"{values['instance_seconds'] / oracle:.2f}" if oracle else "-",
        str(values["needless_actions"]),
        "/".join(f"{value:g}" for value in result.final_parallelism.values()),
    )


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else clock(seconds)
