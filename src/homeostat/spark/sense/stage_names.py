"""Stable, readable names for the stages of a query. Spark gives all of them the same name. Pure functions.

A stage is recognised by its operators and by the stages that feed it. Numbers that change from batch to batch or with
the number of partitions are ignored, so that a stage keeps its name across batches, restarts and changes of
parallelism.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    Knob,
)
from homeostat.core.topology import Component
from homeostat.spark.sense.declared_steps import NO_STEPS, DeclaredSteps, combine_name
from homeostat.spark.sense.plan_graph import Exchange, StageGraph

_SCOPES_KEPT = 200  # a choice: the exchanges of many recent batches; an older scope does not come back
_CURIOUS_BATCHES = 20  # a choice: exchanges that are in no plan of this many batches belong to jobs of the sink
_WORD = re.compile(r"[A-Za-z]+")
# Adaptive execution adds and removes these from batch to batch.
_ADAPTIVE = ("AQEShuffleRead", "CustomShuffleReader", "ShuffleQueryStage", "ResultQueryStage", "AdaptiveSparkPlan")
_AGGREGATE, _OWN_STATE, _JOIN = "aggregate", "state", "join"
_STATE_WORDS = (
    ("StateStoreSave", _AGGREGATE),
    ("SymmetricHashJoin", _JOIN),
    ("StreamingDeduplicate", "dedupe"),
    ("StreamingGlobalLimit", "limit"),
    ("WithState", _OWN_STATE),
    ("StateStore", _OWN_STATE),
)
_UNSPREAD = {
    _AGGREGATE: "Spark already combines the rows of a key before the shuffle, where the aggregate allows it",
    _JOIN: "a join needs all rows of a key in one place, from both sides",
    "dedupe": "finding duplicates needs all rows of a key in one place",
    "limit": "a limit counts all rows in one place",
}
_CANNOT_MERGE = (
    "it does not use hs.keyed(…, spread=ctx.spread(…)), so Homeostat does not know how to merge partial results"
)
_OTHERS_AMONG = (
    "operators of hs.keyed are matched with calls of ctx.spread by their order, but in this query the number of "
    "operators with custom state ({processors}) differs from the number of calls ({spreads})"
)
_NOT_REBALANCED = "the pipeline does not use ctx.rebalanced, so rows stay in the partition that read them"
_PYTHON_WORDS = ("Python", "Pandas", "MapInArrow", "Generate", "MapElements", "MapPartitions")


@dataclass(frozen=True, slots=True)
class RanStage:
    """A stage of one batch that ran. Without a `graph` (over REST alone), it is assumed to read the stage before it."""

    id: int
    job: int
    graph: StageGraph | None = None


@dataclass(frozen=True, slots=True)
class NamedStage:
    """A component of a query. `inputs` are the signatures of the stages that feed it, `scans` the number of its
    streaming scans, and `state` the kind of its state, or an empty string. `joins` is true if it brings together the
    rows of a key from several inputs."""

    name: str
    signature: str
    work: str
    inputs: tuple[str, ...] = ()
    state: str = ""
    keyed: bool = False
    scans: int = 0
    repartition: str = ""
    joins: bool = False

    @property
    def stateful(self) -> bool:
        return bool(self.state)

    def partitions(self, query: str) -> Knob | None:
        """The knob that sets its number of tasks."""
        if self.repartition:
            return Knob(PARALLELISM, f"{query}/{self.repartition}")
        if self.stateful:
            return Knob(STATE_PARTITIONS, query)
        return Knob(SOURCE_PARTITIONS, query) if self.scans else None


def qualify(name: str, query: str, *, prefixed: bool) -> str:
    return f"{query}/{name}" if prefixed else name


@dataclass
class NameBook:
    """The names of the stages of one query. A stage keeps its name once it has one.

    `steps` has the names that the pipeline declared. Repartitions are matched with them through the plan, or by
    position until a plan was read.
    """

    query: str
    steps: DeclaredSteps = NO_STEPS
    parts: dict[str, NamedStage] = field(default_factory=dict)
    _exchanges: dict[str, Exchange] = field(default_factory=dict)
    _repartitions: dict[str, str] = field(default_factory=dict)
    _understood: set[str] = field(default_factory=set)
    _batches: int = 0

    @property
    def curious(self) -> bool:
        """Whether a plan could still name a stage. Exchanges in the sink's own jobs are in no plan, so after some
        batches this is False."""
        is_understood = all(not part.inputs or part.signature in self._understood for part in self.parts.values())
        return not (self.parts and is_understood) and self._batches < _CURIOUS_BATCHES

    def learn(self, exchanges: Sequence[Exchange]) -> None:
        """Learn from the plan of any batch. Spark never uses a scope twice, so the plan need not be the current one."""
        numbered_exchanges = [exchange for exchange in exchanges if exchange.by_number]
        self._exchanges |= {exchange.scope: exchange for exchange in exchanges}
        names = self.steps.repartitions
        self._repartitions |= {exchange.scope: name for exchange, name in zip(numbered_exchanges, names, strict=False)}
        for scope in list(self._exchanges)[:-_SCOPES_KEPT]:
            del self._exchanges[scope]
            self._repartitions.pop(scope, None)

    def find(self, stages: Sequence[RanStage]) -> dict[int, NamedStage]:
        """The component of each stage of one batch, if it is known from earlier batches."""
        return self._resolve(stages, new=False)

    def assign(self, stages: Sequence[RanStage]) -> dict[int, NamedStage]:
        """The component of each stage of a finished batch. A new stage gets a name."""
        self._batches += 1
        return self._resolve(stages, new=True)

    def _resolve(self, stages: Sequence[RanStage], *, new: bool) -> dict[int, NamedStage]:
        graphs = _own_graphs(stages)
        by_position = self._by_position(graphs)
        named_stages: dict[int, NamedStage] = {}
        jobs: dict[int, list[NamedStage]] = {}
        for position, stage in enumerate(sorted(stages, key=lambda stage: stage.id), start=1):
            graph = graphs.get(stage.id)
            work = f"stage {position}" if graph is None else _hash(_operators(graph))
            feeding = list(named_stages)[-1:] if graph is None else _feeding(graph, graphs)
            inputs = tuple(dict.fromkeys(named_stages[other].signature for other in feeding if other in named_stages))
            earlier = jobs.setdefault(stage.job, [])
            part = self._recognise(work, inputs, earlier)
            if new:
                part = self._complete(
                    part or NamedStage("", _signature(work, inputs, earlier), work, inputs),
                    graph,
                    by_position.get(stage.id, ""),
                )
                self.parts[part.signature] = part
            if part is not None:
                named_stages[stage.id] = part
                earlier.append(part)
        return named_stages

    def _recognise(self, work: str, inputs: tuple[str, ...], earlier: Sequence[NamedStage]) -> NamedStage | None:
        """By its work and its inputs. Inputs can be missing from a batch in which a source had no new rows."""
        exact = self.parts.get(_signature(work, inputs, earlier))
        if exact is not None:
            return exact
        used_signatures = {part.signature for part in earlier}
        alike = [part for part in self.parts.values() if part.work == work and part.signature not in used_signatures]
        if len(alike) != 1:
            return None
        old_inputs, new_inputs = set(alike[0].inputs), set(inputs)
        if old_inputs <= new_inputs:
            return replace(alike[0], inputs=inputs)
        return alike[0] if new_inputs <= old_inputs else None

    def components(self, *, prefixed: bool) -> tuple[Component, ...]:
        """All stages seen so far: adaptive execution skips stages in batches that do not need them."""
        return tuple(
            Component(
                qualify(part.name, self.query, prefixed=prefixed),
                kind="operator" if part.inputs else "source",
                scaled_by=EXECUTORS_KNOB,
                inputs=tuple(qualify(self.parts[name].name, self.query, prefixed=prefixed) for name in part.inputs),
                query=self.query,
                keyed=part.keyed,
                partitions=self._partitions(part),
                spread=self._spread(part),
                unspread=self._unspread(part),
                watched=self._watched_name(part),
                joins=part.joins,
            )
            for part in self._from_sources_on()
        )

    def _partitions(self, part: NamedStage) -> Knob | None:
        """The knob for its number of tasks. For a stage that combines or rebalances rows, this is the spread."""
        dealt = {name: name for name in self.steps.rebalances}
        dealt |= {combine_name(name): name for name in self.steps.spreads}
        if part.repartition in dealt:
            return Knob(SPREAD, f"{self.query}/{dealt[part.repartition]}")
        return part.partitions(self.query)

    def _spread(self, part: NamedStage) -> Knob | None:
        """Sources and keyed operators are matched by order, so the numbers of stages and names must agree."""
        sources = [other.signature for other in self._from_sources_on() if not other.inputs]
        for signatures, names in ((sources, self.steps.rebalances), (self._processors(), self.steps.spreads)):
            if len(signatures) == len(names) and part.signature in signatures:
                return Knob(SPREAD, f"{self.query}/{names[signatures.index(part.signature)]}")
        return None

    def _processors(self) -> list[str]:
        return [part.signature for part in self._from_sources_on() if part.state == _OWN_STATE]

    def _unspread(self, part: NamedStage) -> str:
        """Why the rows of a stage without a knob for it cannot be spread."""
        if not part.inputs:
            return _NOT_REBALANCED
        processors, spreads = len(self._processors()), len(self.steps.spreads)
        if part.state == _OWN_STATE and spreads and processors != spreads:
            return _OTHERS_AMONG.format(processors=processors, spreads=spreads)
        return _UNSPREAD.get(part.state, _CANNOT_MERGE)

    def _watched_name(self, part: NamedStage) -> str:
        others = [other.signature for other in self._from_sources_on() if other.state and self._spread(other) is None]
        if len(others) != len(self.steps.watches) or part.signature not in others:
            return ""
        return f"{self.query}/{self.steps.watches[others.index(part.signature)]}"

    def source_names(self, count: int) -> tuple[str, ...]:
        """For each source, in the order of the plan, the component that reads it."""
        reading = [part.name for part in self.parts.values() for _ in range(part.scans)]
        if not reading:
            reading = [part.name for part in self.parts.values() if not part.inputs]
        if len(reading) == count:
            return tuple(reading)
        if len(set(reading)) == 1:
            return (reading[0],) * count
        return tuple("scan" if number == 1 else f"scan-{number}" for number in range(1, count + 1))

    def _complete(self, part: NamedStage, graph: StageGraph | None, by_position: str) -> NamedStage:
        """The stage, completed from its graph and the plan. A name from the plan replaces one given by position."""
        exchange = self._exchange_before(graph)
        repartition = part.repartition or ("" if part.name else by_position)
        if exchange is not None:
            self._understood.add(part.signature)
            repartition = self._repartitions.get(exchange.scope, repartition)
        if part.name and repartition == part.repartition:
            return part if exchange is None else replace(part, keyed=part.stateful or exchange.hashed)
        state = "" if graph is None else _state_word(graph)
        used_names = {other.name for other in self.parts.values() if other.signature != part.signature}
        return replace(
            part,
            name=_unique(repartition or _word(graph, part.inputs), used_names),
            state=state,
            keyed=bool(state) or (exchange is not None and exchange.hashed),
            scans=_operators(graph).count("MicroBatchScan") if graph is not None else 0,
            repartition=repartition,
            joins=state == _JOIN or (graph is not None and len(graph.reads) > 1 and not _unites(graph)),
        )

    def _from_sources_on(self) -> list[NamedStage]:
        in_order: dict[str, NamedStage] = {}
        remaining = dict(self.parts)
        while ready := [signature for signature, part in remaining.items() if in_order.keys() >= set(part.inputs)]:
            in_order |= {signature: remaining.pop(signature) for signature in ready}
        return list(in_order.values())

    def _exchange_before(self, graph: StageGraph | None) -> Exchange | None:
        """The exchange that a stage reads from: it is the first of its operators."""
        if graph is None or not graph.reads or not graph.operators:
            return None
        return self._exchanges.get(graph.operators[0].scope)

    def _by_position(self, graphs: Mapping[int, StageGraph]) -> dict[int, str]:
        reading_stages = [stage for stage, graph in sorted(graphs.items()) if graph.reads and not _state_word(graph)]
        names = self.steps.repartitions
        return dict(zip(reading_stages, names, strict=True)) if names and len(reading_stages) == len(names) else {}


def _own_graphs(stages: Sequence[RanStage]) -> dict[int, StageGraph]:
    """The graph of each stage, without operators whose results an earlier stage of the batch has cached."""
    graphs: dict[int, StageGraph] = {}
    cached_rdds: frozenset[int] = frozenset()
    for stage in sorted(stages, key=lambda stage: stage.id):
        if stage.graph is not None:
            graphs[stage.id] = stage.graph.without_cached(cached_rdds)
            cached_rdds |= stage.graph.cached
    return graphs


def _feeding(graph: StageGraph, graphs: Mapping[int, StageGraph]) -> list[int]:
    """The stages whose RDDs it reads."""
    return [number for number in sorted(graphs) if graph.reads & graphs[number].rdds]


def _signature(work: str, inputs: Sequence[str], earlier: Sequence[NamedStage]) -> str:
    """The same for the same work on the same inputs. Identical stages of one job are numbered in order."""
    name = _hash([work, *sorted(inputs)])
    twins = sum(part.signature.startswith(name) for part in earlier)
    return f"{name}-{twins + 1}"


def plan_version(books: Iterable[NameBook], *, prefixed: bool) -> str:
    """The same as long as the application has the same components with the same connections."""
    components = [component for book in books for component in book.components(prefixed=prefixed)]
    return _hash(sorted(f"{component.query} {component.name} {component.inputs}" for component in components))


def _hash(words: Sequence[str]) -> str:
    return hashlib.sha1("\n".join(words).encode(), usedforsecurity=False).hexdigest()[:10]


def _operators(graph: StageGraph) -> list[str]:
    words = [_WORD.match(operator.name) for operator in graph.operators]
    return [word.group() for word in words if word and word.group() not in _ADAPTIVE]


def _state_word(graph: StageGraph) -> str:
    operators = _operators(graph)
    return next((word for mark, word in _STATE_WORDS if any(mark in operator for operator in operators)), "")


def _unites(graph: StageGraph) -> bool:
    """Whether it only appends the rows of its inputs to each other. Code generation hides the operator of a join."""
    return any("Union" in operator for operator in _operators(graph))


def _word(graph: StageGraph | None, inputs: tuple[str, ...]) -> str:
    """A name that a person would use."""
    if graph is None:
        return "stage"
    if state := _state_word(graph):
        return state
    if not inputs:
        return "scan"
    if graph.feeds or any(mark in operator for operator in _operators(graph) for mark in _PYTHON_WORDS):
        return "map"
    return "sink"


def _unique(word: str, used_names: set[str]) -> str:
    if word not in used_names:
        return word
    number = 2
    while f"{word}-{number}" in used_names:
        number += 1
    return f"{word}-{number}"
