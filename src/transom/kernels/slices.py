"""A step cut into shorter ones, for kernels that compare the rows of a step with each other.

An aggregate below a join gives a row for every change of a group, and most of them end in the step in which they begin.
Whoever links all rows of a step before it looks for matches compares each with all versions of its group, though no
more than one is alive at a time. A kernel may be stepped in any cut, so such a step is taken slice by slice: what has
ended is gone in the next one. To the others it stays one step: a row that ends in a later slice is given with its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.delta import NO_HOLDER, Delta, Ends, Int64s
from transom.kernels.kernel import Step, select_rows
from transom.state.holders import OPEN, HolderPool

SLICE = 1 << 10  # rows of all inputs that are stepped together, if so many come and go in a step


def in_slices(one: Callable[[Any, Any, Step], Delta], state: Any, inputs: Sequence[Delta], step: Step) -> Delta:
    """What a kernel gives whose step is `one`."""
    come_and_go = sum([int(np.count_nonzero(delta.te < step.upto)) for delta in inputs if len(delta.te)])
    if come_and_go < SLICE:
        return one(state, tuple(inputs), step)
    begins = np.sort(np.concatenate([delta.ta for delta in inputs]))
    cuts = np.unique(np.append(begins[SLICE::SLICE], step.upto))
    cuts = cuts[cuts > step.before]
    parts = []
    edges = pairwise([step.before, *cuts.tolist()])
    for given, (before, upto) in zip(zip(*[_slices(delta, cuts) for delta in inputs], strict=True), edges, strict=True):
        parts.append(one(state, given, replace(step, before=before, upto=upto)))
    return _as_one(parts, step.holders, step.upto)


def _slices(delta: Delta, cuts: Int64s) -> Iterator[Delta]:
    """The rows and the ends before each of the cuts, and behind the one before it."""
    if not (delta.ta[1:] >= delta.ta[:-1]).all():
        order = np.argsort(delta.ta, kind="stable")
        values = delta.values.take(pa.array(order))
        delta = Delta(values, delta.ta[order], delta.te[order], delta.holder[order], delta.upto, delta.ends)
    holders, ends = delta.ends.arrays()
    order = np.argsort(ends, kind="stable")
    holders, ends = holders[order], ends[order]
    row = end = 0
    for upto, next_row, next_end in zip(
        cuts.tolist(), np.searchsorted(delta.ta, cuts).tolist(), np.searchsorted(ends, cuts).tolist(), strict=True
    ):
        rows = slice(row, next_row)
        yield Delta(
            delta.values.slice(row, next_row - row),
            delta.ta[rows],
            delta.te[rows],
            delta.holder[rows],
            upto,
            Ends.of(holders[end:next_end], ends[end:next_end]),
        )
        row, end = next_row, next_end


def _as_one(parts: Sequence[Delta], holders: HolderPool, upto: int) -> Delta:
    """What the slices gave as the delta of one step: no row is open in it that ends in it, too."""
    given = [part for part in parts if len(part)] or list(parts[:1])
    ta, te, holder = (np.concatenate([getattr(part, name) for part in given]) for name in ("ta", "te", "holder"))
    values = pa.concat_batches([part.values for part in given])
    ends = Ends(tuple(chunk for part in parts for chunk in part.ends.chunks))
    is_open = np.flatnonzero(holder != NO_HOLDER)
    ended = is_open[holders.end[holder[is_open]] != OPEN]
    if len(ended):
        te[ended] = holders.end[holder[ended]]
        of, at = ends.arrays()
        earlier = ~np.isin(of, holder[ended])
        ends = Ends.of(of[earlier], at[earlier])
        holder[ended] = NO_HOLDER
    return select_rows(Delta(values, ta, te, holder, upto, ends), ta < te)
