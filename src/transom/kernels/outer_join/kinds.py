"""What the kinds of outer, semi and anti joins show, and how a row looks without its partner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

SIDES: Final = {"left": (0,), "right": (1,), "full": (0, 1), "semi": (0,), "anti": (0,)}
"""Of which sides it matters whether a row has a partner."""

PAIRS: Final = ("left", "right", "full")
"""Those that show pairs."""


def side_schema(both: pa.Schema, width: int, side: int) -> pa.Schema:
    """The columns of the left (0), which are so many, or of the right side (1)."""
    return pa.schema([both.field(i) for i in (range(width) if side == 0 else range(width, len(both)))])


def padded(own: Sequence[pa.Array], schema: pa.Schema, side: int) -> pa.RecordBatch:
    """Columns of the left (0) or the right side (1) with NULLs for those of the other, if the schema has them."""
    rows = len(own[0])
    types = schema.types[len(own) :] if side == 0 else schema.types[: len(schema) - len(own)]
    nulls = [pa.nulls(rows, type_) for type_ in types]
    return pa.RecordBatch.from_arrays([*own, *nulls] if side == 0 else [*nulls, *own], schema=schema)
