"""What joins of sliding windows are over: their inputs, what makes their rows match, and when it has something to emit.

An **instant** is a multiple of one of the slides. A row that came at t begins at the least multiple of its own slide
that is not before t, and ends at the least one that is not before t + length; so what is alive changes at instants
alone (semantics.md, "windows").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.schema import held_type
from transom.kernels import scalar
from transom.kernels.columns import is_text
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.slide_join.fold import Fold
from transom.kernels.window.range import end_after
from transom.kernels.window.slide_range import ceil_to
from transom.plan.expression import Expression, columns_of, remap

HASH = "#hash"
KEY = "#key"
"""Columns behind those of the rows; the bytes of the key are there only where the hash does not tell it."""


@dataclass(frozen=True)
class SlideSide:
    """One input; as `SlideInput` of plan/slide_join.py, with the columns that the join has of it."""

    length: int
    slide: int
    predicate: Expression | None
    expressions: tuple[Expression, ...]
    keys: tuple[Expression, ...]
    same: Expression | None = None

    @cached_property
    def keyed(self) -> bool:
        """Whether equal hashes do not yet mean equal keys."""
        (first, *others) = self.keys
        return bool(others) or is_text(first.type) or pa.types.is_decimal(first.type)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows that are kept."""
        fields = [pa.field(str(i), held_type(e.type)) for i, e in enumerate(self.expressions)]
        fields.append(pa.field(HASH, pa.uint64()))
        return pa.schema([*fields, pa.field(KEY, pa.binary())] if self.keyed else fields)

    def lifetimes(self, t: Int64s) -> tuple[Int64s, Int64s]:
        """When rows that came at t begin and end."""
        return ceil_to(t, self.slide), ceil_to(end_after(t, self.length), self.slide)

    def kept(self, values: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s]:
        """The rows that can match anything, in `schema`, and where they were."""
        rows = np.arange(len(values), dtype=np.int64)
        if self.predicate is not None and (kept := scalar.keep(self.predicate, values)) is not None:
            values, rows = values.take(kept), rows[kept.to_numpy()]
        arrays = [scalar.evaluate(e, values) for e in self.expressions]
        names = [str(i) for i in range(len(arrays))]
        batch = pa.RecordBatch.from_arrays(arrays, names=names)
        if self.same is not None and (kept := scalar.keep(self.same, batch)) is not None:
            batch, rows = batch.take(kept), rows[kept.to_numpy()]
        hashes, null, key = _hashed([scalar.evaluate(e, batch) for e in self.keys], len(batch))
        arrays = [*batch.columns, pa.array(hashes), *([] if key is None else [key])]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if null.any():
            alive = np.flatnonzero(~null)
            batch, rows = batch.take(pa.array(alive)), rows[alive]
        return batch, rows


def _hashed(keys: Sequence[pa.Array], rows: int) -> tuple[Hashes, npt.NDArray[np.bool_], pa.Array | None]:
    if single_word(keys):
        return *hash_words(keys), None
    encoded = encode_keys(keys, rows)
    buffers = [None, pa.py_buffer(encoded.offsets.astype(np.int32)), pa.py_buffer(encoded.data)]
    return encoded.hashes, encoded.null, pa.Array.from_buffers(pa.binary(), rows, buffers)


@dataclass(frozen=True)
class ColumnReading:
    """An expression list over some columns of some inputs: `columns[i]` are those of input i, in this order."""

    expressions: tuple[Expression, ...]
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TupleSpec:
    """What tuples of rows, one of each side, come to: `residual` and `expressions`, which make the results, are over
    the columns of all sides, side by side."""

    sides: tuple[SlideSide, ...]
    residual: Expression | None
    expressions: tuple[Expression, ...]

    @cached_property
    def check(self) -> ColumnReading | None:
        return None if self.residual is None else self._reading((self.residual,))

    @cached_property
    def emitted(self) -> ColumnReading:
        return self._reading(self.expressions)

    def _reading(self, expressions: tuple[Expression, ...]) -> ColumnReading:
        used = sorted(set().union(*(columns_of(e) for e in expressions)))
        at = {old: new for new, old in enumerate(used)}
        columns, first = [], 0
        for side in self.sides:
            columns.append(tuple(n - first for n in used if first <= n < first + len(side.expressions)))
            first += len(side.expressions)
        return ColumnReading(tuple(remap(e, at) for e in expressions), tuple(columns))


@dataclass(frozen=True)
class SlideSpec:
    """The results of a slide are those of all `joins`, whose inputs are numbered one after the other. With a `fold`
    they are folded into groups, and those are what is emitted."""

    joins: tuple[TupleSpec, ...]
    names: tuple[str, ...]
    fold: Fold | None = None

    @cached_property
    def sides(self) -> tuple[SlideSide, ...]:
        return tuple(side for join in self.joins for side in join.sides)

    @cached_property
    def inputs(self) -> tuple[range, ...]:
        """The numbers of the inputs of every join."""
        ends = list(accumulate(len(join.sides) for join in self.joins))
        return tuple(range(first, end) for first, end in pairwise([0, *ends]))

    @cached_property
    def always(self) -> bool:
        """Whether a slide has a row even where nothing is joined: that of an aggregate over everything."""
        return self.fold is not None and not self.fold.aggregate.keys

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of what is emitted."""
        if self.fold is not None:
            names, expressions = self.fold.names, self.fold.expressions
        else:
            names, expressions = self.names, self.joins[0].expressions
        return pa.schema([pa.field(n, held_type(e.type)) for n, e in zip(names, expressions, strict=True)])

    @cached_property
    def slides(self) -> tuple[int, ...]:
        return tuple(sorted({side.slide for side in self.sides}))

    def instant_from(self, t: int) -> int:
        """The first instant that is not before t."""
        return min(-(-t // slide) * slide for slide in self.slides)
