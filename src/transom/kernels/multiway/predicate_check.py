"""Which tuples of positions pass a predicate: by a compiled loop where it is a formula of plain numbers, else by Arrow.

Of the rows only the columns that the predicate reads are gathered, and for a formula none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels import scalar
from transom.kernels.formula import NO_MEMBERS, Formula, passing
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway.graph import Check, JoinGraph
from transom.kernels.multiway.input_rows import InputRows

_NONE: Final = no_int64s()


class PredicateCheck:
    """Predicates over the rows of some inputs, which are kept where `addresses` says."""

    def __init__(self, graph: JoinGraph, inputs: Sequence[InputRows], addresses: ColumnAddresses) -> None:
        self._graph = graph
        self._inputs = inputs
        self._addresses = addresses

    def tuples(self, check: Check, tuples: Int64s) -> Int64s | None:
        """Which tuples pass, None where all do; `tuples[n, i]` is the position of the member of input i."""
        kept = self._by_formula(check, tuples, _NONE, NO_MEMBERS, -1)
        if kept is None:
            return self._by_arrow(check, lambda i: np.ascontiguousarray(tuples[:, i]), len(tuples))
        return kept if len(kept) < len(tuples) else None

    def pairs(self, check: Check, tuples: Int64s, of: Int64s, members: Int64s, target: int) -> Int64s | None:
        """Which pairs pass, None where all do: of tuple number of[n] and the row of input `target` at members[n, 0]."""
        if not len(of):
            return None
        kept = self._by_formula(check, tuples, of, members, target)
        if kept is None:

            def positions(i: int) -> Int64s:
                return np.ascontiguousarray(members[:, 0]) if i == target else tuples[of, i]

            return self._by_arrow(check, positions, len(of))
        return kept if len(kept) < len(of) else None

    def formula(self, check: Check | None) -> Formula | None:
        """What is asked; None where there is nothing, or where it is for Arrow."""
        formula = None if check is None else check.formula
        return None if formula is None or formula.columns & ~self._addresses.plain else formula

    def _by_formula(self, check: Check, tuples: Int64s, of: Int64s, members: Int64s, target: int) -> Int64s | None:
        formula = self.formula(check)
        if formula is None:
            return None
        passed: Int64s = passing(
            formula.program, formula.constants, formula.depth, self._addresses.addresses, tuples, of, members, target
        )
        return passed

    def _by_arrow(self, check: Check, positions: Callable[[int], Int64s], count: int) -> Int64s | None:
        arrays: list[pa.Array] = []
        for i, columns in check.columns:
            arrays += self._inputs[i].gather(positions(i), columns, self._graph.types[i])
        if not arrays:  # a constant
            arrays = [pa.nulls(count)]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(n) for n in range(len(arrays))])
        kept = scalar.keep_by(check.parts, batch)
        return None if kept is None else kept.to_numpy().astype(np.int64)
