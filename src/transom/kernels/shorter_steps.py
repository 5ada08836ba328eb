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

from transom.core.delta import NO_OPEN_ID, Delta, Ends, Int64s
from transom.kernels.kernel import Step, select_rows
from transom.state.open_ids import OPEN, OpenIdPool

SLICE = 1 << 10  # rows of all inputs that are stepped together, if so many come and go in a step


def in_slices(whole_step: Callable[[Any, Any, Step], Delta], state: Any, inputs: Sequence[Delta], step: Step) -> Delta:
    """What a kernel gives whose step is `whole_step`."""
    come_and_go = sum([int(np.count_nonzero(delta.te < step.frontier)) for delta in inputs if len(delta.te)])
    if come_and_go < SLICE:
        return whole_step(state, tuple(inputs), step)
    begins = np.sort(np.concatenate([delta.ta for delta in inputs]))
    cuts = np.unique(np.append(begins[SLICE::SLICE], step.frontier))
    cuts = cuts[cuts > step.before]
    parts = []
    edges = pairwise([step.before, *cuts.tolist()])
    for given, (before, frontier) in zip(
        zip(*[_slices(delta, cuts) for delta in inputs], strict=True), edges, strict=True
    ):
        parts.append(whole_step(state, given, replace(step, before=before, frontier=frontier)))
    return _as_one(parts, step.open_ids, step.frontier)


def _slices(delta: Delta, cuts: Int64s) -> Iterator[Delta]:
    """The rows and the ends before each of the cuts, and behind the one before it."""
    if not (delta.ta[1:] >= delta.ta[:-1]).all():
        order = np.argsort(delta.ta, kind="stable")
        values = delta.values.take(pa.array(order))
        delta = Delta(values, delta.ta[order], delta.te[order], delta.open_id[order], delta.frontier, delta.ends)
    open_ids, ends = delta.ends.arrays()
    order = np.argsort(ends, kind="stable")
    open_ids, ends = open_ids[order], ends[order]
    row = end = 0
    for frontier, next_row, next_end in zip(
        cuts.tolist(), np.searchsorted(delta.ta, cuts).tolist(), np.searchsorted(ends, cuts).tolist(), strict=True
    ):
        rows = slice(row, next_row)
        yield Delta(
            delta.values.slice(row, next_row - row),
            delta.ta[rows],
            delta.te[rows],
            delta.open_id[rows],
            frontier,
            Ends.of(open_ids[end:next_end], ends[end:next_end]),
        )
        row, end = next_row, next_end


def _as_one(parts: Sequence[Delta], open_ids: OpenIdPool, frontier: int) -> Delta:
    """What the slices gave as the delta of one step: no row is open in it that ends in it, too."""
    given = [part for part in parts if len(part)] or list(parts[:1])
    ta, te, open_id = (np.concatenate([getattr(part, name) for part in given]) for name in ("ta", "te", "open_id"))
    values = pa.concat_batches([part.values for part in given])
    ends = Ends(tuple(chunk for part in parts for chunk in part.ends.chunks))
    is_open = np.flatnonzero(open_id != NO_OPEN_ID)
    ended = is_open[open_ids.end[open_id[is_open]] != OPEN]
    if len(ended):
        te[ended] = open_ids.end[open_id[ended]]
        of, at = ends.arrays()
        earlier = ~np.isin(of, open_id[ended])
        ends = Ends.of(of[earlier], at[earlier])
        open_id[ended] = NO_OPEN_ID
    return select_rows(Delta(values, ta, te, open_id, frontier, ends), ta < te)
