"""Rows that stay forever once they have begun.

Meaning: a row that is alive on [ta, te) in the input is alive on [ta, forever).
Emits: each row once, as it comes; nothing when it ends.
Keeps: nothing.
Needs: rows that know their end when they come, so that none of them turns out to be a ghost; or negative tuples.
Costs: nothing a row.

>>> import numpy as np, pyarrow as pa
>>> from transom.core.delta import NO_OPEN_ID
>>> from transom.state.open_ids import OpenIdPool
>>> rows = Delta(pa.record_batch({"a": [1]}), np.array([1]), np.array([3]), np.full(1, NO_OPEN_ID), frontier=5)
>>> KeptForeverKernel().step(None, (rows,), Step(0, 5, 0, OpenIdPool())).te[0] == FOREVER
np.True_
"""

from __future__ import annotations

from dataclasses import dataclass

from transom.core.delta import Changelog, Delta, forever, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.kernel import Step


@dataclass(frozen=True)
class KeptForeverKernel:
    def start(self) -> None:
        return None

    def next_timer(self, state: None) -> int:
        return FOREVER

    def step(self, state: None, inputs: tuple[Delta | Changelog], step: Step) -> Delta | Changelog:
        (rows,) = inputs
        if isinstance(rows, Changelog):
            return Changelog(rows.values[rows.departed :], rows.t[rows.departed :], 0, rows.frontier)
        return Delta(rows.values, rows.ta, forever(len(rows)), no_open_ids(len(rows)), rows.frontier)
