"""EXPLAIN ANALYZE: the query is run to the end of its bounded input, and its answer is thrown away."""

from __future__ import annotations

from collections.abc import Callable

from transom.connectors.connector import OpenSink, Source
from transom.planner.explain import Measured
from transom.program.explained import measured
from transom.program.inputs import Definition
from transom.program.nowhere import Nowhere
from transom.program.planned import Planned
from transom.program.run import QuerySpec
from transom.runtimes.local.job import LocalJob


def measure(planned: Planned, open_source: Callable[[Definition], Source], emit: str) -> list[Measured]:
    """What each operator did, in the order of EXPLAIN; `state_bytes` is the most that it kept after a step."""
    spec = QuerySpec(planned, "query", emit, OpenSink(lambda opening: Nowhere()))
    (query,) = LocalJob([spec], open_source).queries
    most = [0] * len(query.pipeline.operators)
    try:
        while query.step():
            kept = [operator.state_bytes for operator in query.status().operators]
            most = [max(pair) for pair in zip(most, kept, strict=True)]
    finally:
        query.abort()
    return measured(query.status().operators, most)
