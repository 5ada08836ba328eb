"""The form of an answer and its columns, by the way in which it leaves."""

from __future__ import annotations

import pyarrow as pa

from transom.core.schema import CHANGE_COLUMN, TIMESTAMP, Schema, unique_names
from transom.kernels.operator import Operator
from transom.plan.algebra import Stream
from transom.planner.answer_key import answer_key


def output_form(root: Operator, emit: str) -> str:
    """A stream has one form, whatever was asked for."""
    return "stream" if isinstance(root.node, Stream) else emit


def meeting_columns(root: Operator, emit: str) -> tuple[int, ...] | None:
    """Rows of the answer that agree on these columns are written in one partition; None: each may be anywhere.

    What leaves in one partition and enters in another at once would be emitted as changes that are none.
    """
    if output_form(root, emit) not in ("changes", "net"):
        return None
    key = answer_key(root) if emit == "net" else None
    return tuple(range(len(root.schema))) if key is None else key


def output_key(root: Operator, emit: str) -> tuple[str, ...] | None:
    """The columns of the output that name a row, where changes are emitted by key."""
    key = answer_key(root) if output_form(root, emit) == "net" else None
    return None if key is None else tuple(output_schema(emit, root.schema).names[1 + at] for at in key)


def output_schema(emit: str, schema: Schema) -> pa.Schema:
    """The columns of the output as people see it, with distinct names."""
    return _output_columns(emit, schema.arrow())


def held_output(emit: str, schema: Schema) -> pa.Schema:
    """The columns of the output in the types in which kernels hold them until they leave."""
    return _output_columns(emit, schema.held())


def _output_columns(emit: str, columns: pa.Schema) -> pa.Schema:
    row = list(columns)
    at = pa.field("at", TIMESTAMP)
    fields = {
        "stream": [at, *row],
        "changes": [CHANGE_COLUMN, at, *row],
        "net": [CHANGE_COLUMN, *row],
        "lifetimes": [*row, pa.field("ta", TIMESTAMP), pa.field("te", TIMESTAMP)],
        "latest": row,
    }[emit]
    own = {"stream": 1, "changes": 2, "net": 1}.get(emit, 0)
    names = unique_names([f.name for f in fields[:own]] + [f.name for f in fields[own:]])
    return pa.schema([f.with_name(name) for f, name in zip(fields, names, strict=True)])
