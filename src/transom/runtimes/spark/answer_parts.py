"""Rows of answers that the tasks which made them write themselves: the driver is told what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from transom.connectors.connector import TaskWriter
from transom.pipeline.cargo import FILES, OUT, CargoPart, Parcel


def written(writers: Mapping[str, TaskWriter], parcels: Sequence[Parcel]) -> Iterator[Parcel]:
    """The parcels of a bucket; in the place of the answer to a query that has a writer what that tells of it."""
    for parcel in parcels:
        answer = list(parcel.opened()) if parcel.kind == OUT else []  # to one query, which is told in one parcel
        if not answer or answer[0].about["query"] not in writers:
            yield parcel if len(answer) < 2 else replace(parcel, blob=b"", parts=(_together(answer),))
            continue
        query = answer[0].about["query"]
        rows = [part.rows for part in answer if part.rows is not None and len(part.rows)]
        if rows:
            part = writers[query].write(rows)
            count = sum(map(len, rows))
            about = {"kind": "part", "query": query, "part": part, "bucket": parcel.bucket, "rows": count}
            yield Parcel(parcel.fragment, parcel.bucket, FILES, parts=(CargoPart(about),))


def _together(answer: Sequence[CargoPart]) -> CargoPart:
    """In the order in which it was told, so that nobody has to find it again."""
    return replace(answer[0], rows=pa.concat_batches([part.rows for part in answer if part.rows is not None]))
