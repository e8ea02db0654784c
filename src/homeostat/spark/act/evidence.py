"""The capabilities that have worked in this run. Others were not tried yet, or failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from homeostat.core.configuration import Configuration, Knob
from homeostat.core.events import Apply, Event, Observed, Receipt

# After this many batches in a row without tasks, tasks count as unreadable. One batch may lack them only because Spark
# was slow to answer. A choice.
_BATCHES_WITHOUT = 3
_NOTHING: Mapping[Knob, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Evidence:
    """`way` is the source of the status of executors and tasks, and `errors` are the errors of the other sources.

    `without_tasks` counts the latest batches that had rows but whose tasks could not be read. `changed` are the knobs
    whose new value was seen to be in effect, and `failed` those whose last change was not, with the reason.
    """

    progress: bool = False
    executors: bool = False
    tasks: bool = False
    without_tasks: int = 0
    way: str = ""
    errors: str = ""
    replaced: bool = False
    replace_failure: str = ""
    changed: frozenset[Knob] = frozenset()
    failed: Mapping[Knob, str] = field(default_factory=lambda: _NOTHING)

    @property
    def lacks_tasks(self) -> bool:
        return self.without_tasks >= _BATCHES_WITHOUT


NO_EVIDENCE = Evidence()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A command under way: the knobs that it changes, and whether it replaces executors."""

    knobs: frozenset[Knob]
    replaces: bool


class Witness:
    """Collects the evidence of a run from its commands and events."""

    def __init__(self) -> None:
        self.evidence = NO_EVIDENCE
        self._attempts: dict[str, _Attempt] = {}

    def expect(self, command: Apply, before: Configuration) -> None:
        changed = frozenset(knob for knob, value in command.desired.values.items() if before.values.get(knob) != value)
        replaces = bool(set(command.desired.retired) - set(before.retired))
        self._attempts[command.id] = _Attempt(changed, replaces)

    def note(self, event: Event, way: str, errors: Iterable[str]) -> bool:
        """Record the event. Return whether it changed the evidence."""
        before = self.evidence
        match event:
            case Observed(observation):
                rows = any(flow.rows > 0 for flow in observation.flows)
                missing = before.without_tasks + 1 if rows and not observation.tasks else before.without_tasks
                self.evidence = replace(
                    before,
                    progress=True,
                    executors=before.executors or bool(observation.workers.ids),
                    tasks=before.tasks or bool(observation.tasks),
                    without_tasks=0 if observation.tasks else min(missing, _BATCHES_WITHOUT),
                    way=way,
                    errors="; ".join(errors),
                )
            case Receipt():
                self._on_receipt(event)
        return self.evidence != before

    def _on_receipt(self, receipt: Receipt) -> None:
        attempt = self._attempts.pop(receipt.command_id, None)
        if attempt is None:
            return
        before = self.evidence
        failed = {knob: why for knob, why in before.failed.items() if knob not in attempt.knobs}
        if not receipt.applied:
            failed |= dict.fromkeys(attempt.knobs, receipt.detail)
        self.evidence = replace(
            before,
            changed=before.changed | attempt.knobs if receipt.applied else before.changed,
            failed=failed,
            replaced=before.replaced or (attempt.replaces and receipt.applied),
            replace_failure="" if receipt.applied or not attempt.replaces else receipt.detail,
        )
