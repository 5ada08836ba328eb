"""From changing multiplicities to rows with lifetimes.

When a value is to be there more often, rows begin, open; when less often, the youngest of its rows end. Which of
several equal rows ends is nobody's business: snapshots are bags.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Delta, Int64s, no_int64s
from transom.kernels.jit import jit
from transom.kernels.kernel import OPEN_END, Step, open_rows
from transom.kernels.sound import lengths, listed_in_use
from transom.kernels.tally import Tally
from transom.state.checks import need, rooms
from transom.state.slots import SlotPool, grown


@dataclass
class Shown:
    """The open output rows of each value: `top[key]` starts a list of nodes, `nodes[:, n]` is next and open row id."""

    top: Int64s = field(default_factory=no_int64s)
    slots: SlotPool = field(default_factory=SlotPool)
    nodes: Int64s = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))

    def check(self) -> None:
        rooms(self.slots.high, self.nodes)
        listed_in_use(self.top, self.nodes[0], self.slots)

    def check_counts(self, counts: Int64s) -> None:
        """A value is shown as often as it is there."""
        capacity = len(self.top)
        need(bool((lengths(self.top, self.nodes[0]) == counts[:capacity]).all()) and not counts[capacity:].any())

    def owned(self) -> list[Int64s]:
        return [self.nodes[1, self.slots.used()]]


def show(
    shown: Shown, tally: Tally, t: Int64s, key: Int64s, before: Int64s, after: Int64s, schema: pa.Schema, step: Step
) -> Delta:
    """Make each value `key[i]` be there `after[i]` times from `t[i]` on (it was `before[i]` times); ascending in t."""
    if tally.counts.shape[1] > len(shown.top):
        shown.top = grown(shown.top, tally.counts.shape[1], -1)
    begin = int(np.maximum(after - before, 0).sum())
    nodes = shown.slots.take(begin)
    if shown.slots.high > shown.nodes.shape[1]:
        shown.nodes = grown(shown.nodes, shown.slots.high)
    out_key, ta, te, closed_id, closed_te, freed = change_lists(t, key, before, after, nodes, shown.top, shown.nodes)
    ends = step.open_ids.close(closed_id, closed_te)
    values = pa.RecordBatch.from_arrays(tally.values.gather(out_key, schema.types), schema=schema)
    delta, open_id = open_rows(values, ta, te, step, ends)
    still = te == OPEN_END
    shown.nodes[1, nodes[still]] = open_id[still]
    shown.slots.give_back(freed)
    return delta


@jit
def change_lists(t, key, before, after, fresh, top, nodes):  # type: ignore[no-untyped-def]
    """A node's open row id is -2 - i while it is output row i of this step."""
    out_key = np.empty(len(fresh), dtype=np.int64)
    ta = np.empty(len(fresh), dtype=np.int64)
    te = np.full(len(fresh), OPEN_END, dtype=np.int64)
    ends = 0
    for i in range(len(t)):
        ends += max(before[i] - after[i], 0)
    closed_id = np.empty(ends, dtype=np.int64)
    closed_te = np.empty(ends, dtype=np.int64)
    freed = np.empty(ends, dtype=np.int64)
    made = 0
    closed = 0
    gone = 0
    for i in range(len(t)):
        k = key[i]
        for _ in range(after[i] - before[i]):
            node = fresh[made]
            nodes[0, node] = top[k]
            nodes[1, node] = -2 - made
            top[k] = node
            out_key[made] = k
            ta[made] = t[i]
            made += 1
        for _ in range(before[i] - after[i]):
            node = top[k]
            top[k] = nodes[0, node]
            open_id = nodes[1, node]
            if open_id >= 0:
                closed_id[closed] = open_id
                closed_te[closed] = t[i]
                closed += 1
            else:
                te[-2 - open_id] = t[i]
            freed[gone] = node
            gone += 1
    return out_key, ta, te, closed_id[:closed], closed_te[:closed], freed
