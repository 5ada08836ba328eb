"""The last rows of a file that was written, for whoever wants to see what is in it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from transom.connectors.properties import FileProperties

_TAIL = 256 * 1024
"""Bytes of a text that are read, from its end."""


def last_rows(path: str, properties: FileProperties, schema: pa.Schema, most: int) -> list[pa.RecordBatch]:
    """At most so many of the last rows, in order; none of a file that is gone by now, or cannot be read as it is."""
    try:
        table = _of_parquet(path, most) if properties.format == "parquet" else _of_text(path, properties, schema)
        table = table.select(schema.names).cast(schema)
    except (OSError, KeyError, pa.ArrowException):
        return []
    return [batch for batch in table.slice(max(len(table) - most, 0)).to_batches() if len(batch)]


def _of_parquet(path: str, most: int) -> pa.Table:
    with pq.ParquetFile(path) as file:
        groups: list[int] = []
        rows = 0
        for group in reversed(range(file.num_row_groups)):
            if rows >= most:
                break
            groups.insert(0, group)
            rows += file.metadata.row_group(group).num_rows
        return file.read_row_groups(groups)


def _of_text(path: str, properties: FileProperties, schema: pa.Schema) -> pa.Table:
    csv = properties.format == "csv"
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL, 0))
        text = file.read()
    if csv or size > _TAIL:  # a header, or what is left of a line
        text = text.partition(b"\n")[2]
    if not text:
        return schema.empty_table()
    if not csv:
        explicit = pyarrow.json.ParseOptions(explicit_schema=schema)
        return pyarrow.json.read_json(pa.BufferReader(text), parse_options=explicit)
    return pyarrow.csv.read_csv(
        pa.BufferReader(text),
        pyarrow.csv.ReadOptions(column_names=schema.names),
        pyarrow.csv.ParseOptions(delimiter=properties.delimiter or ","),
        pyarrow.csv.ConvertOptions(
            column_types=schema,
            null_values=[properties.null or ""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
