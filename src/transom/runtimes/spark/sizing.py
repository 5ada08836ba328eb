"""How many tasks and how large batches a query begins with on Spark, by its plan and by what lies in its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from transom.connectors.connector import Limits, Source
from transom.core.schema import Schema
from transom.core.time import SECOND
from transom.pipeline.layout import Definition, Layout
from transom.plan.algebra import Aggregate, Join
from transom.program.batch_size import (
    BACKLOG_ROWS,
    DEFAULT_ROWS,
    FIRST_ROWS,
    MOST_ROWS,
    WANTED_SECONDS,
    BatchSize,
    most_rows,
)
from transom.program.run import Ending

MUCH: Final = 1 << 19
"""So many rows of a batch are worth that several tasks share them."""

MANY_TASKS: Final = 4
"""So many tasks share a join to advantage: what they hand over takes as much time again as a join of it."""


def worth_sharing(layout: Layout, open_source: Callable[[Definition], Source], tasks: int) -> bool:
    """Whether a run that ends with what there is has so much to read at once, and to do with it, that so many tasks
    share it.

    Where partitions or a latency are given it is left at that. Rows without a join or an aggregate go through
    faster than they can be handed over.
    """
    options = layout.catalogue.options
    if "latency" in options or "partitions" in options:
        return False
    joins = any(isinstance(operator.node, Join) for operator in layout.operators)
    aggregates = any(isinstance(operator.node, Aggregate) for operator in layout.operators)
    if tasks < MANY_TASKS if joins else not aggregates:
        return False
    limits = Limits(options.get("batch_rows", MUCH), options.get("batch_files"))
    rows = 0
    for definition in layout.sources.values():
        source = open_source(definition)
        if definition.time is not None and source.distributed:
            rows += source.plan({}, limits).rows
    return rows >= MUCH


def first_size(layout: Layout, read: Iterable[Schema], ending: Ending, by_tasks: bool) -> BatchSize:
    """The size of the first batch, where no number of rows or files is given.

    `read` are the columns that are read of each input. `by_tasks`: the tasks write the answer, and the driver does not
    see it.
    """
    latency: int | None = layout.catalogue.options.get("latency")
    most = min(MOST_ROWS if by_tasks else DEFAULT_ROWS, *map(most_rows, read))
    first = FIRST_ROWS
    if ending != "stopped" and latency is None:
        quick = by_tasks and all(operator.tactic.cheap for operator in layout.operators)
        first = MOST_ROWS if quick else BACKLOG_ROWS
    return BatchSize(WANTED_SECONDS if latency is None else latency / SECOND, min(first, most), most)
