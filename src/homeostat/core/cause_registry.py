"""What the loop and people need to know about a cause, and the registry of all that are declared."""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Cause:
    """Everything that the loop and people need to know about a cause.

    `sentence`: describes it to people, with `{where}` for the place. `title`: the title of its alert. `advice`: what a
    person can do about it. `fault`: something broke or became uneven. A fault that comes up during a trial makes a
    verdict impossible. `state_risk`: the state is at risk, but the speed is not affected, so other actions go on.
    `harmless`: other actions do not have to wait until it is fixed. `mended_by`: the kinds of action that can fix it;
    empty if only a person can. `workers_help`: whether more workers can fix it. `alerts`: sends an alert, because no
    action fixes it or because people must know even while one does. `alert_after_patience`: the alert waits for a
    while, because the problem often ends by itself. `culprit`: what takes the time of a batch, as the subject of a
    sentence; empty if the cause takes no time. `unusual`: a healthy batch loses almost no time to it, so it is a
    symptom even if it has always been there.
    """

    name: str
    sentence: str
    title: str = "A problem was diagnosed"
    advice: str = "`homeostat explain` shows the evidence"
    fault: bool = False
    state_risk: bool = False
    harmless: bool = False
    mended_by: tuple[str, ...] = ()
    workers_help: bool = False
    alerts: bool = False
    alert_after_patience: bool = False
    culprit: str = ""
    unusual: bool = False

    @property
    def speed_unaffected(self) -> bool:
        """Whether the cause does not affect the speed, so that the loop scales as if it did not exist."""
        return self.state_risk or (self.harmless and not self.mended_by)


_DECLARED: dict[str, Cause] = {}


def declare(cause: Cause) -> str:
    """Register a cause and return its name, which diagnoses carry."""
    if _DECLARED.get(cause.name, cause) != cause:
        raise ConfigError(f"the cause {cause.name!r} is declared twice", fix="give one of them another name")
    _DECLARED[cause.name] = cause
    return cause.name


def cause_of(name: str) -> Cause:
    """Return the entry of a cause. A name that was not declared gets an entry without a remedy."""
    return _DECLARED.get(name) or Cause(name, f"{{where}} has the problem '{name}'")


def declared_causes() -> tuple[Cause, ...]:
    return tuple(_DECLARED.values())
