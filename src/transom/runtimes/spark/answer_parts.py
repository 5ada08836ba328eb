"""Rows of answers that the tasks which made them write themselves: the driver is told what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from transom.connectors.connector import TaskWriter
from transom.pipeline.cargo import FILES, OUT, CargoPart, Parcel, pack, unpack


def written(writers: Mapping[str, TaskWriter], parcels: Sequence[Parcel]) -> Iterator[Parcel]:
    """The parcels of a bucket; in the place of the answer to a query that has a writer what that tells of it."""
    for parcel in parcels:
        (answer,) = unpack(parcel.blob) if parcel.kind == OUT else (None,)  # which is told in one parcel
        if answer is None or answer.about["query"] not in writers:
            yield parcel
        elif answer.rows is not None and len(answer.rows):
            query, rows = answer.about["query"], answer.rows
            part = writers[query].write([rows])
            about = {"kind": "part", "query": query, "part": part, "bucket": parcel.bucket, "rows": len(rows)}
            yield Parcel(parcel.fragment, parcel.bucket, FILES, pack([CargoPart(about)]))
