"""Rows instead of messages in Spark's own figures of a query.

A message of ours holds many rows, and Spark counts what its scan gives. That count is a metric of the scan in the plan
of the batch at hand, of which the progress of the batch is made once `foreachBatch` has returned: so it is set before.
Who listens to the query, and the pages of Spark's own UI, then see rows.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from pyspark.sql.streaming.query import StreamingQuery

_SCAN: Final = "MicroBatchScan"
_METRIC: Final = "numOutputRows"


def count_rows(query: StreamingQuery | None, rows: int) -> None:
    """Note that our own source read so many rows in the batch that `query` is in.

    What Spark's plan is like is not ours to promise: where it is another one the count stays as it is.
    """
    try:
        metric = None if query is None else _metric(query)
        if metric is not None:
            metric.set(rows)
    except Exception as error:  # a figure is not worth a batch
        logging.getLogger(__name__).debug("the rows of a batch are counted as messages: %s", error)


def _metric(query: StreamingQuery) -> Any:
    """The count of the one scan that is ours; None where it is not to be found."""
    execution = query._jsq.streamingQuery().lastExecution()
    leaves = execution.executedPlan().collectLeaves()
    scans = [leaf for leaf in (leaves.apply(i) for i in range(leaves.size())) if leaf.nodeName().startswith(_SCAN)]
    return scans[0].metrics().apply(_METRIC) if len(scans) == 1 else None
