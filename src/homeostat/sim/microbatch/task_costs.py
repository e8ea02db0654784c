"""How the tasks of a simulated stage spent their time, as Spark's sensors would report it.

The numbers of a healthy task are of the size that Spark 4 shows for word counts on a local cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from homeostat.core.observation import Array, TaskCosts
from homeostat.sim.microbatch.batches import Stage
from homeostat.sim.microbatch.burdens import Burden
from homeostat.sim.microbatch.task_scheduling import NOWHERE

# The bytes of a row, on the wire, on disk and in memory.
ROW_BYTES, MEMORY_ROW_BYTES = 100.0, 250.0
# Parts of the running time of a healthy task.
CPU_PART, GC_PART, FETCH_PART, WRITE_PART = 0.93, 0.015, 0.004, 0.01
# Seconds in addition to the running time of a healthy task.
DESERIALISE_S, SERIALISE_S, DELAY_S = 0.002, 0.0005, 0.003
# The levels of locality.
SAME_PROCESS, NO_PREFERENCE, ANYWHERE = 0.0, 2.0, 4.0
# How far healthy values vary from task to task: the standard deviation of their logarithm.
SIGMA = 0.2
# One row of random numbers for each of these: CPU, collection, fetch wait, shuffle write, deserialisation,
# serialisation, delay.
DRAWS = 7


def task_costs(stage: Stage, cpu_left: Mapping[int, float], rng: np.random.Generator) -> TaskCosts:
    """`cpu_left` is the share of the CPU that other processes leave, by executor; 1 if an executor is not listed."""
    rows, burden = stage.work.rows, stage.burden
    tasks = len(rows)
    noise = np.exp(SIGMA * rng.standard_normal((DRAWS, tasks)))
    run_s, zeros = stage.run_s, np.zeros(tasks)
    is_source = stage.spec.kind == "source"
    working_s = run_s - stage.frozen_s if burden is None else run_s - stage.frozen_s - burden.inner_s
    gc_s = GC_PART * working_s * noise[1]
    if burden is not None:
        gc_s = gc_s + working_s * _share(burden.gc_s, stage.work.seconds)
    left_share = _cpu_left(stage, cpu_left)
    cpu_s = np.minimum((working_s - gc_s) * left_share, CPU_PART * working_s * left_share * noise[0] ** 0.1)
    read_bytes, sent_bytes = ROW_BYTES * rows, ROW_BYTES * stage.rows_out
    memory_bytes = MEMORY_ROW_BYTES * rows
    return TaskCosts(
        cpu_s=np.maximum(cpu_s, 0.0),
        gc_s=gc_s,
        fetch_wait_s=(zeros if is_source else FETCH_PART * working_s * noise[2]) + _of(burden, "fetch_wait_s", zeros),
        shuffle_write_s=zeros if stage.is_sink else WRITE_PART * working_s * noise[3],
        deserialise_s=DESERIALISE_S * noise[4],
        serialise_s=SERIALISE_S * noise[5] + _of(burden, "serialise_s", zeros),
        delay_s=DELAY_S * noise[6] + stage.delay_s,
        peak_memory_bytes=memory_bytes - MEMORY_ROW_BYTES * _of(burden, "spilled_rows", zeros),
        spilled_memory_bytes=MEMORY_ROW_BYTES * _of(burden, "spilled_rows", zeros),
        spilled_disk_bytes=ROW_BYTES * _of(burden, "spilled_rows", zeros),
        input_bytes=read_bytes if is_source else zeros,
        output_bytes=sent_bytes if stage.is_sink else zeros,
        shuffle_read_bytes=zeros if is_source else read_bytes,
        shuffle_write_bytes=zeros if stage.is_sink else sent_bytes,
        locality=_locality(stage),
        attempts=1.0 + stage.lost_attempts + _of(burden, "failures", zeros),
        failed_s=stage.lost_s + _of(burden, "failed_s", zeros),
    )


def _of(burden: Burden | None, name: str, zeros: Array) -> Array:
    column: Array = zeros if burden is None else getattr(burden, name)
    return column


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _cpu_left(stage: Stage, cpu_left: Mapping[int, float]) -> Array | float:
    if not cpu_left:
        return 1.0
    return np.array([cpu_left.get(executor, 1.0) for executor in stage.placement.executor.tolist()])


def _locality(stage: Stage) -> Array:
    """A task is local on the executor that holds its state. Anywhere else it must fetch the state."""
    if stage.homes is None:
        return np.full(len(stage.work.rows), NO_PREFERENCE)
    homes = stage.homes
    at_home = np.where(homes == stage.placement.executor, SAME_PROCESS, ANYWHERE)
    return np.where(homes == NOWHERE, NO_PREFERENCE, at_home)
