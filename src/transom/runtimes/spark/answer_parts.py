"""Rows of answers that the tasks which made them write themselves: the driver is told what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from transom.connectors.connector import TaskWriter
from transom.kernels.nested import shown_rows
from transom.pipeline.frames import FILES, OUT, Frame, Message


def written(
    writers: Mapping[str, TaskWriter], shown: Mapping[str, pa.Schema], messages: Sequence[Message]
) -> Iterator[Message]:
    """The messages of a partition; in the place of the answer to a query that has a writer what that reports of it.

    `shown` are the columns of answers as people see them.
    """
    for message in messages:
        answer = list(message.opened()) if message.kind == OUT else []  # to one query, which is emitted in one message
        if not answer or answer[0].about["query"] not in writers:
            yield message if len(answer) < 2 else replace(message, blob=b"", parts=(_together(answer),))
            continue
        query = answer[0].about["query"]
        rows = [shown_rows(part.rows, shown[query]) for part in answer if part.rows is not None and len(part.rows)]
        if rows:
            part = writers[query].write(rows)
            count = sum(map(len, rows))
            about = {"kind": "part", "query": query, "part": part, "partition": message.partition, "rows": count}
            yield Message(message.fragment, message.partition, FILES, parts=(Frame(about),))


def _together(answer: Sequence[Frame]) -> Frame:
    """The rows in the order in which they were emitted, so that nobody has to find it again."""
    return replace(answer[0], rows=pa.concat_batches([part.rows for part in answer if part.rows is not None]))
