"""The figures of queries as Prometheus reads them: its text format, version 0.0.4.

A query has its name as label, which it keeps over restarts; what it counts goes on with its checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from typing import Literal as OneOf

from transom.monitoring.snapshot import STATES

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, dict[str, str], float | None]
"""Its name, labels beside the query, and the value; None where there is none at the moment."""


@dataclass(frozen=True)
class Metric:
    name: str
    kind: OneOf["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ("query",)


_INPUT: Final = ("query", "input")
_OPERATOR: Final = ("query", "operator", "tactic")

METRICS: Final = (
    Metric("transom_query_state", "gauge", "1 for the state that the query is in", ("query", "runtime", "state")),
    Metric("transom_input_read_rows_total", "counter", "rows that were read of an input", _INPUT),
    Metric(
        "transom_input_rows_total", "counter", "rows by what became of them: used, late, rejected", (*_INPUT, "fate")
    ),
    Metric("transom_input_waiting_rows", "gauge", "rows that were read, and wait for time to come", _INPUT),
    Metric("transom_input_lag_seconds", "gauge", "how far the watermark of an input is behind the clock", _INPUT),
    Metric("transom_input_ended", "gauge", "1 once the input has been read to its end", _INPUT),
    Metric("transom_progress_seconds", "gauge", "the instant up to which the answer is final, since 1970"),
    Metric("transom_progress_lag_seconds", "gauge", "how far that is behind the clock"),
    Metric("transom_held_back_seconds", "gauge", "how far the input that time waits for is behind the others", _INPUT),
    Metric("transom_batches_total", "counter", "batches on Spark, steps in one process"),
    Metric("transom_batch_seconds", "gauge", "the last batch on Spark, the mean work of a step in one process"),
    Metric("transom_sink_rows_total", "counter", "rows of the answer that left for the sink"),
    Metric("transom_operator_input_rows_total", "counter", "rows that came to an operator", _OPERATOR),
    Metric("transom_operator_output_rows_total", "counter", "rows that left an operator", _OPERATOR),
    Metric("transom_operator_rows_kept", "gauge", "rows that an operator keeps", _OPERATOR),
    Metric("transom_operator_bytes_kept", "gauge", "memory of what an operator keeps", _OPERATOR),
    Metric("transom_operator_busy_seconds_total", "counter", "time that an operator was at work", _OPERATOR),
    Metric("transom_row_latency_seconds", "gauge", "from arrival to output, of stamped rows", ("query", "quantile")),
    Metric("transom_row_latency_rows_total", "counter", "rows of which the latency was measured"),
    Metric("transom_overload_rows_total", "counter", "rows of a shared join that are done or shed", ("query", "fate")),
    Metric("transom_overload_pending_rows", "gauge", "rows of a shared join that are put off"),
    Metric("transom_history_bytes", "gauge", "what is kept of past answers"),
)
"""The names are a promise: `docs/monitoring.md` lists them, and a test compares."""


def metrics_text(snapshots: Sequence[dict[str, Any]]) -> str:
    """The metrics of queries as `status_json` has them.

    >>> metrics_text([]).splitlines()[1]
    '# TYPE transom_query_state gauge'
    """
    lines_of: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
    for snapshot in snapshots:
        for name, labels, value in _samples(snapshot):
            if value is not None:
                lines_of[name].append(f"{name}{_labels({'query': snapshot['name'], **labels})} {_value(value)}")
    lines: list[str] = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *lines_of[metric.name]]
    return "\n".join(lines) + "\n"


def _samples(snapshot: dict[str, Any]) -> Iterator[Sample]:
    for state in STATES:
        yield "transom_query_state", {"runtime": snapshot["runtime"], "state": state}, float(snapshot["state"] == state)
    yield "transom_progress_seconds", {}, snapshot["progress_seconds"]
    yield "transom_progress_lag_seconds", {}, snapshot["lag_seconds"]
    yield "transom_batches_total", {}, snapshot["batches"]
    yield "transom_batch_seconds", {}, snapshot["batch_seconds"]
    yield "transom_sink_rows_total", {}, snapshot["rows_out"]
    if snapshot["held_back_by"] is not None:
        yield (
            "transom_held_back_seconds",
            {"input": snapshot["held_back_by"]["input"]},
            snapshot["held_back_by"]["seconds"],
        )
    for each in snapshot["inputs"]:
        yield from _of_input(each)
    for each in snapshot["operators"]:
        labels = {"operator": str(each["number"]), "tactic": each["title"]}
        yield "transom_operator_input_rows_total", labels, each["rows_in"]
        yield "transom_operator_output_rows_total", labels, each["rows_out"]
        yield "transom_operator_rows_kept", labels, each["state_rows"]
        yield "transom_operator_bytes_kept", labels, each["state_bytes"]
        yield "transom_operator_busy_seconds_total", labels, each["seconds"]
    yield from _of_latency(snapshot["latency"])
    if snapshot["overload"] is not None:
        for fate in ("processed", "shed"):
            yield "transom_overload_rows_total", {"fate": fate}, snapshot["overload"][fate]
        yield "transom_overload_pending_rows", {}, snapshot["overload"]["pending"]
    if snapshot["history"] is not None:
        yield "transom_history_bytes", {}, snapshot["history"]["bytes"]


def _of_input(each: dict[str, Any]) -> Iterator[Sample]:
    labels = {"input": each["name"]}
    yield "transom_input_read_rows_total", labels, each["rows_in"]
    for fate in ("used", "late", "rejected"):
        yield "transom_input_rows_total", {**labels, "fate": fate}, each[fate]
    yield "transom_input_waiting_rows", labels, each["waiting"]
    yield "transom_input_lag_seconds", labels, each["lag_seconds"]
    yield "transom_input_ended", labels, float(each["ended"])


def _of_latency(latency: dict[str, Any] | None) -> Iterator[Sample]:
    if latency is not None:
        for quantile, name in (("0.5", "p50"), ("0.99", "p99"), ("0.999", "p999"), ("1", "max")):
            yield "transom_row_latency_seconds", {"quantile": quantile}, latency[name] / 1e6
        yield "transom_row_latency_rows_total", {}, latency["count"]


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    r"""
    >>> print(_escaped('a"b\\c\nd'))
    a\"b\\c\nd
    """
    text = text.encode("utf-8", "replace").decode()  # half a character has no code in UTF-8
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _value(value: float) -> str:
    """
    >>> _value(3), _value(0.25), _value(float("inf"))
    ('3', '0.25', '+Inf')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
