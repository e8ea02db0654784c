"""What ContTune's authors measured: rows per second by parallelism."""

from __future__ import annotations

# The observations of the mapper of NEXMark's query 1 in the README of ContTune's repository.
QUERY_1 = {
    1: 529573.16752,
    2: 966817.36242,
    4: 1829695.58,
    6: 2535502.7616,
    7: 2936888.579,
    8: 3118477.8826,
    10: 3721099.1836,
    13: 4624714.165666,
    15: 4967828.2586,
    20: 6350677.0454,
    21: 6465249.805,
    25: 7089387.3074,
    26: 7476391.84,
}
