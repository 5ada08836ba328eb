"""The memory of a shared join carried over to one with other columns or windows, as queries come and go.

Rows that are kept already end where they would have: a query that has come since sees none of them. Columns that nobody
asked for until now have no values in them, for the same reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.kernels.join.join import JoinState
from transom.kernels.join.lazy_hash import LazySide
from transom.kernels.join.ring_hash import RingSide
from transom.kernels.join.side import TA, TE
from transom.kernels.row_store import RowStore
from transom.kernels.window.range import end_after


@dataclass(frozen=True)
class KeptSide:
    """What a side keeps: columns by any name that stays the same, their types, and for how long; None: it counts."""

    columns: tuple[Hashable, ...]
    types: tuple[pa.DataType, ...]
    length: int | None


def carried(state: JoinState, old: Sequence[KeptSide], new: Sequence[KeptSide]) -> JoinState:
    """The rows of `state`, in the columns of `new`."""
    for side, before, after in zip((state.left, state.right), old, new, strict=True):
        _carry(side, before, after)
    return JoinState(state.left, state.right, state.open_pairs)  # which finds the columns again


def _carry(side: RingSide | LazySide, old: KeptSide, new: KeptSide) -> None:
    if new.length is not None and isinstance(side, RingSide):
        # Of use where the widest window has left: what nobody can see any more is let go at once.
        assert old.length is not None, "a side that counts its rows goes on to"
        entries = side.entries
        entries[:, TE] = np.minimum(entries[:, TE], end_after(entries[:, TA], new.length))
    if isinstance(side, LazySide):
        side.rows = carried_rows(side.rows, old, new)
    elif old.columns != new.columns:
        side.rows = side.rows.carried(side.used(), [_known_at(name, old) for name in new.columns], new.types)


def _known_at(name: Hashable, kept: KeptSide) -> int | None:
    return kept.columns.index(name) if name in kept.columns else None


def carried_rows(rows: RowStore, old: KeptSide, new: KeptSide) -> RowStore:
    """Rows that were kept in the columns of `old`, in those of `new`."""
    if old.columns == new.columns:
        return rows
    old_columns = dict(zip(old.columns, rows.columns, strict=False))
    fresh = RowStore.of(new.types)
    fresh.reserve(rows.capacity)
    columns = [old_columns.get(name, column) for name, column in zip(new.columns, fresh.columns, strict=True)]
    return RowStore(rows.capacity, columns)
