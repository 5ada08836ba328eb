"""The form of an answer and its columns, by the way in which it leaves."""

from __future__ import annotations

import pyarrow as pa

from transom.core.schema import CHANGE_COLUMN, TIMESTAMP, Schema, unique_names
from transom.plan.algebra import Stream
from transom.planner.operator import Operator


def output_form(root: Operator, emit: str) -> str:
    """A stream has one form, whatever was asked for."""
    return "stream" if isinstance(root.node, Stream) else emit


def output_schema(emit: str, schema: Schema) -> pa.Schema:
    """The columns of the output, with distinct names."""
    row = list(schema.arrow())
    at = pa.field("at", TIMESTAMP)
    fields = {
        "stream": [at, *row],
        "changes": [CHANGE_COLUMN, at, *row],
        "lifetimes": [*row, pa.field("ta", TIMESTAMP), pa.field("te", TIMESTAMP)],
        "latest": row,
    }[emit]
    own = {"stream": 1, "changes": 2}.get(emit, 0)
    names = unique_names([f.name for f in fields[:own]] + [f.name for f in fields[own:]])
    return pa.schema([f.with_name(name) for f, name in zip(fields, names, strict=True)])
