"""Asks the sources of running queries, even during a batch, how many rows are waiting. It never delays a query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from homeostat.core.events import Event, SourceSeen
from homeostat.core.observation import NAN
from homeostat.core.source_sample import SourceSample
from homeostat.spark.sense.file_source import FORMATS, FileSource, TooManyFilesError, local_path
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.kafka_client import CannotAskError, KafkaClient
from homeostat.spark.sense.kafka_source import KafkaSource
from homeostat.spark.sense.known_queries import QueryBook, QueryRun
from homeostat.spark.sense.progress import Progress
from homeostat.spark.sense.published_offsets import PublishedOffsets
from homeostat.spark.sense.source_formats import SourceOptions

LOOK_EVERY_S = 1.0  # a choice: three small requests to each broker
_KAFKA = "kafka"


class Source(Protocol):
    """A source that can report how many rows wait there."""

    name: str
    latest: SourceSample | None

    def look(self, offset: Any, rows_per_offset: float) -> SourceSample: ...

    def end_at(self, at_s: float) -> float: ...


@dataclass(slots=True)
class _Watched:
    """The sources of one run, in Spark's order; None for those that Homeostat cannot query."""

    options: tuple[SourceOptions, ...]
    sources: list[Source | None] = field(default_factory=list)


class SourceWatch:
    """`clock` is the time for all samples. Every sample goes to `emit`."""

    def __init__(
        self, queries: QueryBook, guard: GuardedWork, emit: Callable[[Event], None], clock: Callable[[], float]
    ) -> None:
        self._queries, self._guard, self._emit, self._clock = queries, guard, emit, clock
        self._watched: dict[str, _Watched] = {}
        self._partitions: dict[str, int] = {}
        self._published: PublishedOffsets | None = None
        self._lock = threading.Lock()

    def publish_as(self, group: str) -> None:
        """From now on, commit the offsets at which batches end for this consumer group. An empty name ends this."""
        self._published = PublishedOffsets(group, self._guard, self._clock) if group else None

    def look(self) -> None:
        """Ask every source of the queries that run. Takes seconds where a broker does not answer."""
        runs = self._queries.running()
        names = {run.handle.name for run in runs}
        with self._lock:
            self._watched = {name: watched for name, watched in self._watched.items() if name in names}
        for run in runs:
            for index, source in enumerate(self._sources(run)):
                if source is not None:
                    self._look(run, index, source)

    def _look(self, run: QueryRun, index: int, source: Source) -> None:
        try:
            usual = NAN if isinstance(source, FileSource) else 1.0
            sample = source.look(self._read_to(run, index), run.query.rows_per_offset.get(index, usual))
        except TooManyFilesError as error:
            self._guard.note("files", f"the number of waiting rows is unknown: {error}")
            self._watched_sources(run)[index] = None
            return
        self._note_growth(sample)
        self._emit(SourceSeen(sample))
        if self._published is not None and isinstance(source, KafkaSource) and not sample.silent_s:
            self._published.publish((run.handle.name, index), source, self._read_to(run, index))

    def positioned(self, run: QueryRun, progress: Progress) -> Progress:
        """The same progress, but in bytes for file sources, for which Spark reports only the number of files."""
        sources = self._watched_sources(run)
        before = run.query.latest
        parts = list(progress.sources)
        for index, (part, source) in enumerate(zip(parts, sources, strict=False)):
            if isinstance(source, FileSource):
                end = source.position(part.offset)
                start = 0.0 if progress.batch == 0 else NAN
                if before is not None and index < len(before.sources):
                    start = before.sources[index].end
                parts[index] = replace(part, start=start, end=end, latest=source.end_at(progress.started_s))
        return replace(progress, sources=tuple(parts))

    def samples(self, run: QueryRun) -> tuple[SourceSample, ...]:
        """The last reports of the sources of a run."""
        sources = self._watched_sources(run)
        return tuple(source.latest for source in sources if source is not None and source.latest is not None)

    def silent(self, query: str) -> str:
        """Which source of a query does not answer; empty if all do."""
        with self._lock:
            watched = self._watched.get(query)
        samples = [source.latest for source in watched.sources if source is not None] if watched is not None else []
        return "; ".join(
            f"{sample.name} has not answered for {sample.silent_s:.0f} s"
            for sample in samples
            if sample is not None and sample.silent_s > 0
        )

    def end_at(self, run: QueryRun, index: int, at_s: float) -> float:
        """The number of offsets up to the end of a source at a given time; NaN if only Spark knows it."""
        sources = self._watched_sources(run)
        source = sources[index] if index < len(sources) else None
        return NAN if source is None else source.end_at(at_s)

    def _watched_sources(self, run: QueryRun) -> list[Source | None]:
        with self._lock:
            watched = self._watched.get(run.handle.name)
        return watched.sources if watched is not None and watched.options == run.handle.sources else []

    def _sources(self, run: QueryRun) -> list[Source | None]:
        """The sources of a run. They are kept when the query restarts, with their history."""
        sources = self._watched_sources(run)
        if not sources and run.handle.sources:
            sources = [self._source(run, index, options) for index, options in enumerate(run.handle.sources)]
            with self._lock:
                self._watched[run.handle.name] = _Watched(run.handle.sources, sources)
        return sources

    def _source(self, run: QueryRun, index: int, options: SourceOptions) -> Source | None:
        query = run.handle.name
        if options.format.rpartition(".")[2] in FORMATS:
            return self._files(run, index, options)
        if options.format != _KAFKA:
            return None
        topics = next(filter(None, map(options.option, ("subscribe", "subscribePattern", "assign"))), "")
        name = f"{topics} at {options.option('kafka.bootstrap.servers')}"
        unread = f"cannot read the number of waiting rows of {name}"
        try:
            return KafkaSource(query, name, KafkaClient(options), self._clock)
        except CannotAskError as error:
            self._guard.note("Kafka", f"{unread}: {error}")
        except Exception as error:  # librdkafka rejects a setting
            self._guard.note("Kafka", f"{unread}: {type(error).__name__}: {error}")
        return None

    def _files(self, run: QueryRun, index: int, options: SourceOptions) -> FileSource | None:
        log = local_path(run.handle.checkpoint) if run.handle.checkpoint else None
        if log is None or local_path(options.option("path")) is None:
            return None  # files on another machine are not listed, because that may cost money
        return FileSource(run.handle.name, options, log / "sources" / str(index), self._clock)

    def _read_to(self, run: QueryRun, index: int) -> object:
        latest = run.query.latest
        return latest.sources[index].offset if latest is not None and index < len(latest.sources) else None

    def _note_growth(self, sample: SourceSample) -> None:
        before, now = self._partitions.get(sample.name), len(sample.partitions)
        if before is not None and now > before:
            more = f"{sample.name} has {now} partitions, {now - before} more than before"
            self._guard.note("Kafka", f"{more}; Spark reads them from the next batch on")
        if now:
            self._partitions[sample.name] = now
