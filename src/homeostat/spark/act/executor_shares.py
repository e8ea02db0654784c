"""The queries of an application share its executors: each requests a number, and Spark runs the sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from homeostat.core.configuration import EXECUTORS_KNOB, Configuration, Knob, Value
from homeostat.core.events import Apply, Receipt
from homeostat.core.observation import Observation


@dataclass(frozen=True, slots=True)
class _Request:
    """A command of one query's manager, and the number of executors that it requests for this query."""

    query: str
    command_id: str
    executors: int


class ExecutorShares:
    """How many executors each query has, and the commands that may change that."""

    def __init__(self, shares: Mapping[str, int]) -> None:
        self._shares = dict(shares)
        self._requests: dict[str, _Request] = {}

    def as_dict(self) -> dict[str, int]:
        return dict(self._shares)

    @property
    def total(self) -> int:
        return _total(self._shares)

    def split_evenly(self, count: int) -> None:
        self._shares = split(count, list(self._shares))

    def request(self, query: str, command: Apply) -> Apply:
        """The same command for the whole application: with an id of its own, and the sum of all executors."""
        executors = int(command.desired.get(EXECUTORS_KNOB, self._shares[query]))
        id = f"{query}/{command.id}"  # the managers of two queries may use the same id
        self._requests[id] = _Request(query, command.id, executors)
        values = dict(command.desired.values)
        if EXECUTORS_KNOB in values:
            requested_executors = {request.query: request.executors for request in list(self._requests.values())}
            values[EXECUTORS_KNOB] = _total({**self._shares, **requested_executors, query: executors})
        return replace(command, id=id, desired=Configuration(values, command.desired.retired))

    def answer(self, receipt: Receipt) -> tuple[str, Receipt]:
        """The query whose command this is, and the receipt with the id that its manager knows."""
        request = self._requests.pop(receipt.command_id)
        if receipt.applied:
            self._shares = {**self._shares, request.query: request.executors}
        return request.query, replace(receipt, command_id=request.command_id)

    def configuration(self, query: str, own: Mapping[Knob, Value], whole: Configuration) -> Configuration:
        """One query's part of the application's configuration: its own knobs, and its share of the executors."""
        values: dict[Knob, Value] = {knob: value for knob, value in whole.values.items() if knob in own}
        if EXECUTORS_KNOB in whole.values:
            values[EXECUTORS_KNOB] = observed_share(self._shares, query, int(whole[EXECUTORS_KNOB]))
        return Configuration(values, whole.retired)

    def observation(self, query: str, whole: Observation) -> Observation:
        """The observation with only the query's share of the slots: fair scheduler pools give the rest to others."""
        if len(self._shares) == 1:
            return whole
        share = self._shares[query] / self.total
        return replace(whole, workers=replace(whole.workers, slots=whole.workers.slots * share))


def split(count: int, names: Sequence[str]) -> dict[str, int]:
    """Evenly, and at least one each. The first ones get the remainder."""
    each, rest = divmod(max(count, len(names)), len(names))
    return {name: each + (number < rest) for number, name in enumerate(names)}


def observed_share(shares: Mapping[str, int], query: str, alive: int) -> int:
    """A query's part of the executors that are alive: its share, or less if there are fewer than all shares."""
    requested_executors = _total(shares)
    if len(shares) == 1:
        return alive
    if alive >= requested_executors:
        return shares[query]
    return max(1, alive * shares[query] // requested_executors)


def _total(shares: Mapping[str, int]) -> int:
    return max(1, sum(shares.values()))
