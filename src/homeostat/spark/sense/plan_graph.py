"""What Spark says about the shape of its work: the operators of a stage, and the exchanges of a query's plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CLUSTER = re.compile(r"subgraph cluster_(\S+) \{")
_LABEL = re.compile(r'label="(.*?)";')
_RDD = re.compile(r'(\d+) \[id="node_\d+" labelType="html" label="(.*)"\];')
_EDGE = re.compile(r"RDDOperationEdge\((\d+),(\d+)\)")
_PLAN_LINE = re.compile(r"^([\s:|+\-]*)(.*)$")
_PLAN_ID = re.compile(r"\[plan_id=(\d+)\]")
_NUMBERED_STAGE = re.compile(r"^(\*?\(\d+\) |\* )")


@dataclass(frozen=True, slots=True)
class Operator:
    """`scope` is Spark's id for it within one batch; an exchange has the same one on both of its sides."""

    scope: str
    name: str
    first_rdd: int


@dataclass(frozen=True, slots=True)
class StageGraph:
    """One stage: its operators from first to last, its datasets, and those of other stages that it reads."""

    operators: tuple[Operator, ...]
    rdds: frozenset[int]
    cached: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()

    @property
    def feeds(self) -> bool:
        """Whether its rows go into an exchange, which is then the last operator but not the one it reads from."""
        last = self.operators[-1:]
        return bool(last) and last[0].name == "Exchange" and not (self.reads and len(self.operators) == 1)

    def without_cached(self, computed: frozenset[int]) -> StageGraph:
        """Without what an earlier stage has computed and kept: that is read, not worked out again."""
        kept = self.cached & computed
        if not kept:
            return self
        last = max(kept)
        return StageGraph(
            tuple(operator for operator in self.operators if operator.first_rdd > last),
            frozenset(rdd for rdd in self.rdds if rdd > last),
            frozenset(rdd for rdd in self.cached if rdd > last),
            frozenset({last}),
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """`by_number` was asked for with a number of partitions, as `repartition(n)` does."""

    scope: str
    by_number: bool
    hashed: bool


def read_dot(dot: str, incoming: str) -> StageGraph:
    """A stage's graph in the form that Spark draws it from, and the edges that lead into it."""
    names: dict[str, str] = {}
    first: dict[str, int] = {}
    rdds, cached = set[int](), set[int]()
    open_scopes: list[str | None] = []
    for line in map(str.strip, dot.splitlines()):
        if line.startswith("subgraph "):
            cluster = _CLUSTER.match(line)
            open_scopes.append(cluster.group(1) if cluster else None)
        elif line == "}" and open_scopes:
            open_scopes.pop()
        elif (label := _LABEL.match(line)) and open_scopes and open_scopes[-1] is not None:
            names[open_scopes[-1]] = label.group(1)
        elif node := _RDD.match(line):
            rdd = int(node.group(1))
            rdds.add(rdd)
            if "[Cached]" in node.group(2):
                cached.add(rdd)
            for scope in filter(None, open_scopes):
                first[scope] = min(rdd, first.get(scope, rdd))
    reads = {int(source) for source, target in _EDGE.findall(incoming) if int(target) in rdds}
    return StageGraph(_ordered(names, first), frozenset(rdds), frozenset(cached), frozenset(reads))


def from_scopes(
    rdds: Iterable[tuple[int, str, str]], reads: Iterable[int] = (), cached: Iterable[int] = ()
) -> StageGraph:
    """From an event log: each dataset's number with the id and name of its scope (empty if it has none)."""
    listed = list(rdds)
    names = {scope: name for _, scope, name in listed if scope}
    first = {scope: min(rdd for rdd, other, _ in listed if other == scope) for scope in names}
    return StageGraph(_ordered(names, first), frozenset(r for r, _, _ in listed), frozenset(cached), frozenset(reads))


def _ordered(names: dict[str, str], first: dict[str, int]) -> tuple[Operator, ...]:
    found = [Operator(scope, names[scope], first[scope]) for scope in names if scope in first]
    return tuple(sorted(found, key=lambda operator: operator.first_rdd))


def exchanges(plan: str) -> tuple[Exchange, ...]:
    """The shuffles of a physical plan as `explain` prints it, what comes first in the data first."""
    executed = plan.partition("== Initial Plan ==")[0]
    found: list[Exchange] = []
    above: list[tuple[int, Exchange | None]] = []
    for line in executed.splitlines():
        indent, text = _PLAN_LINE.match(line).groups()  # type: ignore[union-attr]
        if not text:
            continue
        while above and above[-1][0] >= len(indent):
            _keep(above.pop()[1], found)
        above.append((len(indent), _exchange(_NUMBERED_STAGE.sub("", text))))
    while above:
        _keep(above.pop()[1], found)
    return tuple(found)


def _keep(exchange: Exchange | None, found: list[Exchange]) -> None:
    if exchange is not None:
        found.append(exchange)


def _exchange(text: str) -> Exchange | None:
    number = _PLAN_ID.search(text)
    if not text.startswith("Exchange ") or number is None:
        return None
    return Exchange(f"spark_plan_{number.group(1)}", "REPARTITION_BY_NUM" in text, "hashpartitioning(" in text)
