"""The benchmarks by name: the module with their `main(options) -> int`, and what they measure."""

from __future__ import annotations

from typing import Final

BENCHMARKS: Final[dict[str, tuple[str, str]]] = {
    "join": (
        "transom.benchmarks.join",
        "rows a second through the window join of two streams, by the size of the window",
    ),
    "spark-join": (
        "transom.benchmarks.spark_join",
        "the same join on Spark, beside Spark's own stream-stream join, with equal files, sinks and answers",
    ),
}
