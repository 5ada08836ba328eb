"""Rows of an answer that the tasks which made them write themselves: the driver is told what they wrote."""

from __future__ import annotations

from collections.abc import Sequence

from transom.connectors.connector import TaskWriter
from transom.pipeline.cargo import FILES, OUT, CargoPart, Parcel, pack, unpack


def written(writer: TaskWriter, parcels: Sequence[Parcel]) -> list[Parcel]:
    """The parcels of a bucket; in the place of rows of the answer what the writer tells of them."""
    told = [parcel for parcel in parcels if parcel.kind == OUT]
    rows = [part.rows for parcel in told for part in unpack(parcel.blob) if part.rows is not None]
    count = sum(map(len, rows))
    others = [parcel for parcel in parcels if parcel.kind != OUT]
    if not count:
        return others
    about = {"kind": "part", "part": writer.write(rows), "bucket": told[0].bucket, "rows": count}
    return [Parcel(told[0].fragment, told[0].bucket, FILES, pack([CargoPart(about)])), *others]
