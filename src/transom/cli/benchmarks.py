"""The benchmarks by name: the module with their `main(options) -> int`, and what they measure."""

from __future__ import annotations

from typing import Final

BENCHMARKS: Final[dict[str, tuple[str, str]]] = {
    "control": (
        "transom.benchmarks.control",
        "what it takes to keep 16 to 400 partitions together: control bytes of a batch and driver time, simulated",
    ),
    "join": (
        "transom.benchmarks.join",
        "rows a second through the window join of two streams, by the size of the window, or by --partitions N",
    ),
    "joinagg": (
        "transom.benchmarks.joinagg",
        "aggregates over joins: time and state of pc, ic, tc and factorised, by window, rate, groups, inputs, matches",
    ),
    "lifetimes": (
        "transom.benchmarks.lifetimes",
        "direct lifetimes against negative tuples, by query, window and batch; with --soak ROWS what grows meanwhile",
    ),
    "multiway": (
        "transom.benchmarks.multiway",
        "joins of many streams: latency, state and rate of tree, mjoin, their parallel forms and auto, in three parts",
    ),
    "nexmark": (
        "transom.benchmarks.nexmark",
        "the queries of NEXMark in one process and on Spark, beside Spark's own streaming and Flink, answers checked",
    ),
    "overlap": (
        "transom.benchmarks.overlap",
        "joins of sliding windows within a memory budget: a slide by incremental, full and hybrid, memory, and a burst",
    ),
    "shared": (
        "transom.benchmarks.shared",
        "many queries on one join: which work goes first when not all can be; rate and state, shared or not; overload",
    ),
    "spark-join": (
        "transom.benchmarks.spark_join",
        "the same join on Spark, beside Spark's own stream-stream join, with equal files, sinks and answers",
    ),
}
