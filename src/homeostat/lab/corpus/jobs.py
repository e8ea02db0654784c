"""The kinds of streaming query that are recorded. Without a fault, each is limited by a different resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.lab.corpus import row_work
from homeostat.lab.corpus.row_work import RowWork
from homeostat.lab.corpus.sinks import sink_function
from homeostat.lab.corpus.switches import Switches
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_control import FORMAT
from homeostat.sim.scenario.spec import Noise, WorkloadSpec

if TYPE_CHECKING:
    from pandas import DataFrame as Pandas
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CONTROL, SECOND_CONTROL, INPUT, OUTPUT, TABLE = "control.json", "second-control.json", "input", "output", "table"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
# A batch takes at most the rows of this many triggers, so that no batch takes minutes after a slow start.
MOST_TRIGGERS_A_BATCH = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """How a job is set up. Faults of configuration change it; the others leave it alone.

    `forever` keeps state without a watermark, by a key that is new for each row. `plan_columns` is the number of
    computed columns that make the plan large. `files` is the number of files that a batch of the file sink writes, and
    `rows_per_file` the number of rows in each file that arrives. `static_hot_rows` is the number of extra rows with the
    most frequent word in the static table of the join.
    """

    rate_per_s: float
    trigger_s: float = 2.0
    source_partitions: int = 3
    partitions: int = 6
    wait_ms: float = 0.0
    burn_us: float = 0.0
    rows_a_row: int = 1
    payload_bytes: int = 0
    plan_columns: int = 0
    forever: bool = False
    files: int = 2
    rows_per_file: int = 300
    old_files: int = 0
    static_hot_rows: int = 0
    bound: float = 0.0
    noise: float = 0.1
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a run takes place: its session, its own directory, its switches, and the port of the service."""

    spark: SparkSession
    directory: Path
    shape: Shape
    switches: Switches
    service_port: int
    seed: int

    def rows(self, control: str = CONTROL) -> DataFrame:
        shape = self.shape
        workload = WorkloadSpec(rate_per_s=shape.rate_per_s, noise=Noise(sigma=shape.noise))
        bound = shape.bound or MOST_TRIGGERS_A_BATCH * shape.rate_per_s * shape.trigger_s
        reader = self.spark.readStream.format(FORMAT).option("profile", Profile(workload, seed=self.seed).to_json())
        reader = reader.option("partitions", shape.source_partitions).option("rowsPerTrigger", round(bound))
        reader = reader.option("hold", self.switches.path("source-bound"))
        return reader.option("control", str(self.directory / control)).load()

    def work(self, costly: str = "") -> Callable[[Iterator[Pandas]], Iterator[Pandas]]:
        shape = self.shape
        port = self.service_port if shape.wait_ms else 0
        return row_work.worker(RowWork(port, shape.wait_ms, shape.burn_us, self.switches.path("."), costly))

    def path(self, name: str) -> str:
        return str(self.directory / name)


@dataclass(frozen=True, slots=True)
class Job:
    """`build` makes the query. `working` is the component that does the work for each row."""

    name: str
    shape: Shape
    build: Callable[[Workplace], DataStreamWriter]
    working: str = "scan"


def _service(place: Workplace) -> DataStreamWriter:
    """Each row calls a service, in the stage that reads the source."""
    return place.rows().mapInPandas(place.work(), "row long, word string, arrived timestamp").writeStream.format("noop")


def _keyed(place: Workplace) -> DataStreamWriter:
    """Rows are shuffled by their key, and each calls a service after the shuffle."""
    colliding = colliding_keys(place.spark, place.shape.partitions)
    keyed = place.rows().mapInPandas(
        row_work.rekeyer(place.switches.path("."), colliding), "row long, word string, key string"
    )
    dealt = keyed.repartition(place.shape.partitions, "key")
    return dealt.mapInPandas(place.work("key"), "row long, word string, key string").writeStream.format("noop")


def colliding_keys(spark: SparkSession, partitions: int) -> tuple[str, ...]:
    """Keys that Spark sends to the same partition."""
    keys = spark.range(400 * partitions).selectExpr("concat('key-', id) AS key")
    first = keys.where(f"pmod(hash(key), {partitions}) = 0").limit(200)
    return tuple(str(row.key) for row in first.collect())


def _writing(place: Workplace) -> DataStreamWriter:
    """Each row needs CPU time, and a function on the driver writes each batch as a table."""
    computed = place.rows().mapInPandas(place.work(), "row long, word string, arrived timestamp")
    return computed.writeStream.foreachBatch(sink_function(place.switches, Path(place.path(OUTPUT))))


def _state(place: Workplace) -> DataStreamWriter:
    """Words are counted in windows of a few seconds, with state in RocksDB."""
    from pyspark.sql import functions as f

    rows = place.rows()
    if place.shape.plan_columns:
        rows = _with_columns(rows, place.shape.plan_columns)
    if place.shape.forever:
        counts = rows.groupBy("row", "word").count()
    else:
        counts = rows.withWatermark("arrived", "3 seconds").groupBy(f.window("arrived", "4 seconds"), "word").count()
    return counts.writeStream.outputMode("update").format("noop")


def _with_columns(rows: DataFrame, count: int) -> DataFrame:
    """The same rows, with a plan that takes the driver long to analyse, optimise and compile."""
    from pyspark.sql import functions as f

    for level in range(4):
        names = {
            f"c{level}_{n}": f.expr(f"abs(hash(word, {n}, {level})) % 7 + length(word)") for n in range(count // 4)
        }
        rows = rows.withColumns(names)
    columns = [f"c{level}_{n}" for level in range(4) for n in range(count // 4)]
    return rows.where(f.expr(" + ".join(columns)) >= 0).select("row", "word", "arrived")


def _shuffle(place: Workplace) -> DataStreamWriter:
    """Each row becomes many with a long text, which are shuffled and sorted. No Python runs after the source."""
    from pyspark.sql import functions as f

    shape = place.shape
    text = f.repeat(f.md5(f.concat("word", f.col("copy").cast("string"))), max(1, shape.payload_bytes // 32))
    many = place.rows().withColumn("copy", f.explode(f.sequence(f.lit(1), f.lit(shape.rows_a_row))))

    def write(frame: DataFrame, batch: int) -> None:
        dealt = frame.withColumn("text", text).repartition(shape.partitions, "word", "copy")
        dealt.sortWithinPartitions("text").write.format("noop").mode("overwrite").save()

    return many.writeStream.foreachBatch(write)


def _join(place: Workplace) -> DataStreamWriter:
    """A stream is joined with a static table, by sorting both sides."""
    from pyspark.sql import functions as f

    table = place.path(TABLE)
    once = place.spark.range(1000).selectExpr("concat('word-', id) AS word", "id AS number")
    hot = place.spark.range(place.shape.static_hot_rows).selectExpr("'word-0' AS word", "id AS number")
    once.unionByName(hot).repartition(2).write.mode("overwrite").parquet(table)
    joined = place.rows().join(place.spark.read.parquet(table).hint("merge"), "word")
    weighed = joined.withColumn("sum", f.length(f.sha2(f.concat("word", f.col("number").cast("string")), 512)))
    return weighed.where("sum > 0").writeStream.format("noop")


def _pairs(place: Workplace) -> DataStreamWriter:
    """Two streams are joined by row number, within a few seconds of event time."""
    from pyspark.sql import functions as f

    left = place.rows().withWatermark("arrived", "2 seconds").select("row", "word", "arrived")
    right = place.rows(SECOND_CONTROL).withWatermark("arrived", "2 seconds")
    right = right.select(f.col("row").alias("other"), f.col("arrived").alias("at"))
    near = f.expr("row = other AND at >= arrived - interval 3 seconds AND at <= arrived + interval 3 seconds")
    return left.join(right, near).writeStream.format("noop")


def _files(place: Workplace) -> DataStreamWriter:
    """Files arrive in a directory. Their rows are written as files again."""
    source = place.spark.readStream.schema("row long, word string").option("maxFilesPerTrigger", 1000)
    rows = source.json(place.path(f"{INPUT}/*")).selectExpr("row", "word", "sha2(word, 256) AS hash")
    spread = rows.repartition(place.shape.files)
    return spread.writeStream.format("parquet").option("path", place.path(OUTPUT))


def _memory(place: Workplace) -> DataStreamWriter:
    """Each row becomes a long text and is split into words, which are all on the executor's heap for a moment."""
    words = f"size(split(repeat(concat(word, ' '), {place.shape.rows_a_row}), ' ')) AS words"
    return place.rows().selectExpr("row", words).where("words > 0").writeStream.format("noop")


JOBS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("service", Shape(rate_per_s=240, wait_ms=4.0, source_partitions=3), _service),
        Job("compute", Shape(rate_per_s=200, burn_us=300, source_partitions=3), _service),
        Job("keyed", Shape(rate_per_s=200, wait_ms=6.0, source_partitions=2, partitions=6), _keyed, working="map"),
        Job("writing", Shape(rate_per_s=150, burn_us=100, source_partitions=2), _writing),
        Job("state", Shape(rate_per_s=300, source_partitions=2, partitions=2), _state, working="aggregate"),
        Job(
            "shuffle",
            Shape(rate_per_s=100, source_partitions=2, partitions=2, rows_a_row=100, payload_bytes=256),
            _shuffle,
            working="sink",
        ),
        Job("join", Shape(rate_per_s=300, source_partitions=2, partitions=2), _join, working="sink"),
        Job("pairs", Shape(rate_per_s=100, source_partitions=2, partitions=2), _pairs, working="join"),
        Job("files", Shape(rate_per_s=200, trigger_s=2.0), _files),
        Job("memory", Shape(rate_per_s=60, source_partitions=2, rows_a_row=200), _memory),
    )
}


def start(place: Workplace, job: Job, name: str) -> Any:
    """Start the query under this name."""
    for setting, value in {SHUFFLE_PARTITIONS: str(place.shape.partitions), **place.shape.settings}.items():
        place.spark.conf.set(setting, value)
    writer = job.build(place).queryName(name).option("checkpointLocation", place.path("checkpoint"))
    return writer.trigger(processingTime=f"{round(place.shape.trigger_s * 1000)} milliseconds").start()
