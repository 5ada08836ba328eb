"""The benchmarks by name: the module that declares each, and what it measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Entry:
    """`module` has a `BENCHMARK`; it is imported when it is run, since that takes seconds."""

    module: str
    purpose: str


BENCHMARKS: Final[dict[str, Entry]] = {
    "adapt": Entry(
        "benchmarks.adapt.benchmark",
        "joins, of two with an aggregate or of three, whose rates and matches change twice: fixed or changing tactics",
    ),
    "aggregates": Entry(
        "benchmarks.aggregates",
        "aggregates over a window, from COUNT and SUM to quantiles and STRING_AGG: what a row costs, by window",
    ),
    "console": Entry(
        "benchmarks.console",
        "what a console costs the queries that it shows, watched by ten pages of a real browser, and by nobody",
    ),
    "control": Entry(
        "benchmarks.control",
        "what it takes to keep 16 to 400 partitions together: control bytes of a batch and driver time, simulated",
    ),
    "join": Entry(
        "benchmarks.join",
        "rows a second through the window join of two streams, by the size of the window, or by --partitions N",
    ),
    "joinagg": Entry(
        "benchmarks.joinagg.benchmark",
        "aggregates over joins: time and state of pc, ic, tc and factorised, by window, rate, groups, inputs, matches",
    ),
    "kafka": Entry(
        "benchmarks.kafka",
        "a join from topics to a topic beside the same from files to a file, and how fast one partition is read",
    ),
    "lifetimes": Entry(
        "benchmarks.lifetimes.benchmark",
        "direct lifetimes against negative tuples, by query, window and batch; with --soak ROWS what grows meanwhile",
    ),
    "multiway": Entry(
        "benchmarks.multiway.benchmark",
        "joins of many streams: latency, state and rate of tree, mjoin, their parallel forms and auto, in three parts",
    ),
    "nexmark": Entry(
        "benchmarks.nexmark.benchmark",
        "the queries of NEXMark in one process and on Spark, beside Spark's own streaming and Flink, answers checked",
    ),
    "outer_join": Entry(
        "benchmarks.outer_join",
        "left, full, semi and anti joins beside the inner join: what a row costs, by window, as changes and lifetimes",
    ),
    "overlap": Entry(
        "benchmarks.overlap.benchmark",
        "joins of sliding windows within a memory budget: a slide by incremental, full and hybrid, memory, and a burst",
    ),
    "shared": Entry(
        "benchmarks.shared.benchmark",
        "many queries on one join: which work goes first when not all can be; rate and state, shared or not; overload",
    ),
    "spark-join": Entry(
        "benchmarks.spark_join.benchmark",
        "the same join on Spark, beside Spark's own stream-stream join, with equal files, sinks and answers",
    ),
    "top_n": Entry(
        "benchmarks.top_n",
        "the first rows of an order, of all rows and of each key, with numbers and ranks: what a row costs, by window",
    ),
    "windows": Entry(
        "benchmarks.windows",
        "TUMBLE, HOP and SESSION as tables, beside windows that slide, and sessions: what a row costs, by window",
    ),
}
