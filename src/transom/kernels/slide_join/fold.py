"""What becomes of the results of a slide under GROUP BY, DISTINCT or an aggregate: they are folded into groups as they
are made.

Totals are exact, in whatever order results come (`kernels/aggregate`), so a slide may be made share by share, merged
with stored results and left for later; its groups are emitted when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s, no_int64s
from transom.kernels import scalar
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateState
from transom.plan.expression import Expression
from transom.state import codec
from transom.state.checks import need
from transom.state.slots import grown

_AT_ONCE: Final = 1 << 13
"""Groups that are emitted together."""

_KEPT_AT_ONCE: Final = 1 << 12
"""Results that are taken together where each has a slot for its text until it is known whether it stays."""


@dataclass(eq=False)
class FoldedGroups:
    """The groups of a slide as far as it is made; by group `words`, what it would show now."""

    totals: AggregateState
    words: Int64s
    bytes: int = 0


@dataclass(frozen=True)
class Fold:
    """`aggregate` is one over rows that stay, whose columns are those of the results. Of the groups those that satisfy
    the predicate are emitted, as the expressions say."""

    aggregate: AggregateKernel
    predicate: Expression | None
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def start(self) -> FoldedGroups:
        groups = FoldedGroups(self.aggregate.start(), np.zeros((0, self.aggregate.result_words), dtype=np.int64))
        if not self.aggregate.keys:
            groups.words = self.aggregate.begin_unseen(groups.totals)
        return groups

    def check(self, groups: FoldedGroups) -> None:
        self.aggregate.check_groups(groups.totals)
        used = self._used(groups)
        need(groups.words.ndim == 2 and groups.words.shape[1] == self.aggregate.result_words)
        need(int(used.max(initial=-1)) < len(groups.words))

    def add(self, groups: FoldedGroups, results: pa.RecordBatch) -> None:
        at_once = _KEPT_AT_ONCE if self.aggregate.keeps_texts else max(len(results), 1)
        for first in range(0, len(results), at_once):
            _, changed, words = self.aggregate.run_unseen(groups.totals, results.slice(first, at_once))
            if len(groups.totals.rows) > len(groups.words):
                size = len(groups.totals.rows)
                groups.words = np.ascontiguousarray(grown(groups.words.T, size).T)
            groups.words[changed] = words

    @staticmethod
    def measure(groups: FoldedGroups) -> None:
        """How much it is by now: to look at all of it for every few results would take longer than to fold them."""
        groups.bytes = codec.saved_bytes(groups.totals, whole=True) + groups.words.nbytes

    def results(self, groups: FoldedGroups) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        used = self._used(groups)
        for first in range(0, len(used), _AT_ONCE):
            some = used[first : first + _AT_ONCE]
            columns = self.aggregate.results(groups.totals, some, groups.words[some], no_int64s())
            rows = pa.RecordBatch.from_arrays(columns, schema=self.aggregate.schema)
            if self.predicate is not None and (kept := scalar.keep(self.predicate, rows)) is not None:
                rows = rows.take(kept)
            if len(rows):
                yield scalar.project(self.expressions, self.names, rows)

    def _used(self, groups: FoldedGroups) -> Int64s:
        """The numbers of the groups."""
        return groups.totals.keys.slots.used() if self.aggregate.keys else np.zeros(1, dtype=np.int64)
