"""What the loop learns from earlier actions: which ones not to repeat, for how long, and when to try them again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from homeostat.core.findings import Verdict

DAY_S = 86_400.0
_SUCCESS: tuple[Verdict, ...] = ("helped", "shrunk")
_FAILURE: tuple[Verdict, ...] = ("failed", "harmful")


class ActionKey(NamedTuple):
    """What is remembered: this action, against this cause, at this component."""

    cause: str
    action: str
    component: str


@dataclass(frozen=True, slots=True)
class Context:
    """The circumstances of an action. A failure under other circumstances says little about these.

    Without `values` the configuration does not matter.
    """

    arrival_per_s: float = float("nan")
    values: Mapping[str, float] = field(default_factory=dict)
    plan: str = ""
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One judged action. `context` is that of the judgement; `…_before` is what the action started from."""

    key: ActionKey
    verdict: Verdict
    at_s: float
    context: Context = Context()
    values_before: Mapping[str, float] = field(default_factory=dict)
    hosts_before: frozenset[str] = frozenset()


Entries = tuple[MemoryEntry, ...]


class MemoryRule(Protocol):
    def learn(self, entries: Entries, entry: MemoryEntry) -> Entries: ...

    def block_reason(self, entries: Entries, key: ActionKey, context: Context, now_s: float, settle_s: float) -> str:
        """Why this action may not be taken now; empty if it may."""
        ...

    def success_rate(self, entries: Entries, key: ActionKey) -> float: ...


# One success and one failure are assumed at the start, so that a single outcome does not decide. Laplace's rule.
_ASSUMED_SUCCESSES, _ASSUMED_OUTCOMES = 1, 2


def _success_rate(entries: Entries, key: ActionKey) -> float:
    successes = sum(e.key == key and e.verdict in _SUCCESS for e in entries)
    failures = sum(e.key == key and e.verdict in _FAILURE for e in entries)
    return (_ASSUMED_SUCCESSES + successes) / (_ASSUMED_OUTCOMES + successes + failures)


@dataclass(frozen=True, slots=True)
class Blacklist:
    """The paper's memory: above a ratio of non-beneficial to all invocations, an action is never repeated."""

    # Lower gives up sooner on an action that is only sometimes right. A choice: the paper gives no number.
    threshold: float = 0.5
    # Invocations before the ratio counts: more are surer, and repeat a useless action more often. A choice.
    least_invocations: int = 1
    # Outcomes of one action that are remembered. Of an action that is repeated for years, these say enough. A choice.
    capacity: int = 200

    def learn(self, entries: Entries, entry: MemoryEntry) -> Entries:
        if entry.verdict not in _SUCCESS + _FAILURE:
            return entries
        mine = [e for e in entries if e.key == entry.key]
        forgotten = mine[0] if len(mine) >= self.capacity else None
        return (*(e for e in entries if e is not forgotten), entry)

    def block_reason(self, entries: Entries, key: ActionKey, context: Context, now_s: float, settle_s: float) -> str:
        mine = [e for e in entries if e.key == key]
        bad = sum(e.verdict in _FAILURE for e in mine)
        if len(mine) >= self.least_invocations and bad > self.threshold * len(mine):
            return f"blacklisted: {bad} of {len(mine)} times without benefit"
        return ""

    def success_rate(self, entries: Entries, key: ActionKey) -> float:
        return _success_rate(entries, key)


@dataclass(frozen=True, slots=True)
class DecayingMemory:
    """Repairs the paper's memory: failures fade, a success clears them, and other circumstances forgive them.

    With k = Σ 2^(−age / half_life) over failures an action rests for settle × `rest_settlings` × 2^(k−1), at most
    `longest_s`. Outcomes that prove nothing (confounded, unclear, untestable) never count.
    """

    # A failure of this age counts half: longer forgives later, shorter repeats mistakes. A choice: loads repeat daily.
    half_life_s: float = DAY_S
    # The longest rest: after a day, an action gets another chance. A choice.
    longest_s: float = DAY_S
    # A load that differs by this factor forgives a failure: smaller forgives sooner. A choice.
    load_ratio: float = 1.5
    # Outcomes that are remembered. More would only cost memory: older ones have faded. A choice.
    capacity: int = 500
    # Settling times that an action rests after its first failure: longer is safer and reacts later. A choice.
    rest_settlings: float = 4.0

    def learn(self, entries: Entries, entry: MemoryEntry) -> Entries:
        if entry.verdict in _SUCCESS:
            entries = tuple(e for e in entries if e.key != entry.key or e.verdict in _SUCCESS)
        elif entry.verdict not in _FAILURE:
            return entries
        return (*entries, entry)[-self.capacity :]

    def block_reason(self, entries: Entries, key: ActionKey, context: Context, now_s: float, settle_s: float) -> str:
        failures = [e for e in entries if e.key == key and e.verdict in _FAILURE and not self.forgiven(e, context)]
        if not failures:
            return ""
        weight = sum(2.0 ** (-(now_s - e.at_s) / self.half_life_s) for e in failures)
        rest_s = min(self.longest_s, self.rest_settlings * settle_s * 2.0 ** (weight - 1.0))
        until_s = max(e.at_s for e in failures) + rest_s
        if now_s >= until_s:
            return ""
        return (
            f"did not help {len(failures)}× under the same circumstances; blocked for another {until_s - now_s:.0f} s"
        )

    def forgiven(self, failure: MemoryEntry, context: Context) -> bool:
        then = failure.context
        ratio = context.arrival_per_s / then.arrival_per_s if then.arrival_per_s else math.nan
        if math.isfinite(ratio) and ratio > 0 and abs(math.log(ratio)) > math.log(self.load_ratio):
            return True
        configurations = (dict(then.values), dict(failure.values_before))
        hosts = (then.hosts, failure.hosts_before or then.hosts)
        elsewhere = bool(then.values) and dict(context.values) not in configurations
        return elsewhere or context.plan != then.plan or context.hosts not in hosts

    def success_rate(self, entries: Entries, key: ActionKey) -> float:
        return _success_rate(entries, key)
