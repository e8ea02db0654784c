"""The operators of a stage and the exchanges of a query's plan, parsed from what Spark prints. Pure functions."""

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
class PlanOperator:
    """`scope` is Spark's id of the operator within one batch. An exchange has the same scope on both sides."""

    scope: str
    name: str
    first_rdd: int


@dataclass(frozen=True, slots=True)
class StageGraph:
    """One stage: its operators from first to last, its RDDs, and the RDDs of other stages that it reads."""

    operators: tuple[PlanOperator, ...]
    rdds: frozenset[int]
    cached: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()

    @property
    def feeds(self) -> bool:
        """Whether its rows go into an exchange, which is then its last operator, and not the one it reads from."""
        last = self.operators[-1:]
        return bool(last) and last[0].name == "Exchange" and not (self.reads and len(self.operators) == 1)

    def without_cached(self, computed_rdds: frozenset[int]) -> StageGraph:
        """Without the operators whose result an earlier stage has cached: this stage does not compute them again."""
        reused_rdds = self.cached & computed_rdds
        if not reused_rdds:
            return self
        last = max(reused_rdds)
        return StageGraph(
            tuple(operator for operator in self.operators if operator.first_rdd > last),
            frozenset(rdd for rdd in self.rdds if rdd > last),
            frozenset(rdd for rdd in self.cached if rdd > last),
            frozenset({last}),
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """A shuffle. `by_number` is True if it has a requested number of partitions, as from `repartition(n)`."""

    scope: str
    by_number: bool
    hashed: bool


def read_dot(dot: str, incoming: str) -> StageGraph:
    """From the DOT text that Spark's web UI draws a stage from, and the edges that lead into the stage."""
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
    return StageGraph(_in_order(names, first), frozenset(rdds), frozenset(cached), frozenset(reads))


def from_scopes(
    rdds: Iterable[tuple[int, str, str]], reads: Iterable[int] = (), cached: Iterable[int] = ()
) -> StageGraph:
    """From an event log: the number of each RDD with the id and name of its scope (empty if it has none)."""
    scopes = list(rdds)
    names = {scope: name for _, scope, name in scopes if scope}
    first = {scope: min(rdd for rdd, other, _ in scopes if other == scope) for scope in names}
    return StageGraph(_in_order(names, first), frozenset(r for r, _, _ in scopes), frozenset(cached), frozenset(reads))


def _in_order(names: dict[str, str], first: dict[str, int]) -> tuple[PlanOperator, ...]:
    operators = [PlanOperator(scope, names[scope], first[scope]) for scope in names if scope in first]
    return tuple(sorted(operators, key=lambda operator: operator.first_rdd))


def exchanges(plan: str) -> tuple[Exchange, ...]:
    """The shuffles of a physical plan that `explain` printed, in the order in which rows pass them."""
    executed_plan = plan.partition("== Initial Plan ==")[0]
    in_order: list[Exchange] = []
    above: list[tuple[int, Exchange | None]] = []
    for line in executed_plan.splitlines():
        indent, text = _PLAN_LINE.match(line).groups()  # type: ignore[union-attr]
        if not text:
            continue
        while above and above[-1][0] >= len(indent):
            _append(above.pop()[1], in_order)
        above.append((len(indent), _exchange(_NUMBERED_STAGE.sub("", text))))
    while above:
        _append(above.pop()[1], in_order)
    return tuple(in_order)


def _append(exchange: Exchange | None, in_order: list[Exchange]) -> None:
    if exchange is not None:
        in_order.append(exchange)


def _exchange(text: str) -> Exchange | None:
    number = _PLAN_ID.search(text)
    if not text.startswith("Exchange ") or number is None:
        return None
    return Exchange(f"spark_plan_{number.group(1)}", "REPARTITION_BY_NUM" in text, "hashpartitioning(" in text)
