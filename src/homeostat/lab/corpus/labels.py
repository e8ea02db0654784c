"""The label of a recorded run: the injected faults, their times, strengths and effects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import homeostat.core.time_causes  # noqa: F401 - declares causes
from homeostat.core.causes import declared_causes
from homeostat.core.errors import ConfigError

T = TypeVar("T")

LABELS = "labels.jsonl"
# The quantities that an effect is a share of: see docs/reference/corpus.md.
BATCH_TIME, BACKLOG, FAILED_ATTEMPTS, STANDSTILL, STATE_GROWTH, IDLE_SLOTS, LOSSES = MEASURES = (
    "batch time",
    "backlog",
    "failed attempts",
    "standstill",
    "state growth",
    "idle slots",
    "losses",
)
# A smaller effect also occurs in clean runs, so such a fault cannot be detected. Measured on the clean runs of the
# recorded set, by comparing the last two thirds of each run with its first third: batch time up to 0.26, failed
# attempts 0.03, state growth 0.3, idle slots of the job `service` 0.58, and no backlog, losses or standstill.
LEAST_EFFECTS = {
    BATCH_TIME: 0.3,
    BACKLOG: 0.2,
    FAILED_ATTEMPTS: 0.1,
    STANDSTILL: 0.5,
    STATE_GROWTH: 0.5,
    IDLE_SLOTS: 0.6,
    LOSSES: 0.2,
}


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault of a run. Its `component` is empty if it concerns the whole query.

    Batches from `at_batch` to `until_batch` began while it acted, between `at_s` and `until_s` on the clock of the log.
    `strength` is in the unit of its kind. `effect` is a share of the quantity named by `measure`, and `before_s` and
    `during_s` are the mean duration of a batch without and with the fault.
    """

    cause: str
    component: str
    at_batch: int
    until_batch: int
    at_s: float
    until_s: float
    strength: float
    effect: float
    measure: str
    before_s: float
    during_s: float

    @property
    def is_case(self) -> bool:
        """Whether its effect is large enough that it should be diagnosed."""
        return self.effect >= LEAST_EFFECTS[self.measure]


@dataclass(frozen=True, slots=True)
class Label:
    """One recorded run. `others_cpu` is the share of the machine that processes outside the run used on average."""

    run: str
    log: str
    job: str
    spark_version: str
    trigger_s: float
    executors: int
    slots: int
    batches: int
    began_s: float
    ended_s: float
    others_cpu: float
    faults: tuple[InjectedFault, ...]
    seed: int

    @property
    def clean(self) -> bool:
        return not self.faults

    @property
    def cases(self) -> tuple[InjectedFault, ...]:
        """The faults that should be diagnosed."""
        return tuple(fault for fault in self.faults if fault.is_case)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}


def read_labels(directory: Path) -> tuple[Label, ...]:
    """The labels of all runs in a directory. Raise ConfigError if the fields of a line are not exactly a label's."""
    path = directory / LABELS
    if not path.exists():
        raise ConfigError(
            "the directory has no labels", where=str(path), fix="record some runs: homeostat corpus record"
        )
    labels: dict[str, Label] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            label = _label(json.loads(line))
            if label.run in labels:
                raise ValueError(f"the run {label.run!r} has two labels")
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"not a label: {error}", where=f"{path}:{number}", fix="record the run again") from error
        labels[label.run] = label
    return tuple(labels.values())


def write_labels(directory: Path, labels: Iterable[Label]) -> None:
    """Replace the file of labels. They are in the order of their runs' names."""
    lines = [json.dumps(label.as_json(), allow_nan=False) for label in sorted(labels, key=lambda label: label.run)]
    draft = directory / f".{LABELS}.draft"
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.replace(directory / LABELS)


def _label(values: Any) -> Label:
    clean = values.pop("clean")
    faults = tuple(_fault(each) for each in _checked(values["faults"], list))
    label = _typed(Label, {**values, "faults": faults})
    if clean is not label.clean:
        raise ValueError(f"clean = {clean!r}, but it has {len(faults)} faults")
    return label


def _fault(values: Any) -> InjectedFault:
    fault = _typed(InjectedFault, _checked(values, dict))
    if fault.cause not in {cause.name for cause in declared_causes()}:
        raise ValueError(f"unknown cause {fault.cause!r}")
    if fault.measure not in MEASURES:
        raise ValueError(f"unknown measure {fault.measure!r}")
    if not 0 <= fault.effect <= 1:
        raise ValueError(f"effect = {fault.effect!r} must be between 0 and 1")
    return fault


def _typed(kind: type[T], values: Mapping[str, Any]) -> T:
    """A value of a dataclass. The values must be exactly its fields, each with the right type."""
    names = {each.name: str(each.type) for each in fields(kind)}  # type: ignore[arg-type]
    if unexpected := sorted(set(values) ^ set(names)):
        raise ValueError(f"the key {unexpected[0]!r} is {'unknown' if unexpected[0] in values else 'missing'}")
    return kind(**{name: _value(name, values[name], type_name) for name, type_name in names.items()})


def _value(name: str, value: Any, type_name: str) -> Any:
    if type_name == "float":
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{name} = {value!r} must be a number")
        return float(value)
    if type_name == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{name} = {value!r} must be a whole number")
    if type_name == "str" and not isinstance(value, str):
        raise ValueError(f"{name} = {value!r} must be text")
    return value


def _checked(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not a {kind.__name__.lower()}")
    return value
