"""GROUP BY over TUMBLE or HOP with a bound of the window among the keys: totals as rows come, emitted when it is over.

Meaning: one row for each group of a window, on [window_end - tick, forever): its key and the aggregates of its rows.
Emits: the row of each group once, when progress is past window_end - tick.
Keeps: the totals of each group of a window that is not over, and nothing of its rows.
Needs: rows in time order; of the calls none that needs rows again.
Costs: a hash look-up and O(1) a row and window that holds it; a look at the groups of open windows when one is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Changelog, Delta, Int64s, StreamDelta, forever, no_int64s, no_open_ids
from transom.core.time import FOREVER
from transom.kernels.aggregate.aggregate import AggregateKernel, AggregateState
from transom.kernels.columns import empty_batch
from transom.kernels.kernel import Step
from transom.kernels.select.select import ProjectKernel
from transom.kernels.window_table.time_windows import TimeGrid, repeated, with_bounds
from transom.state.checks import need
from transom.state.slots import grown


@dataclass
class WindowAggregateState:
    """By group: `words`, what it would show now, and the instant at which its window `enters`."""

    groups: AggregateState
    words: Int64s
    enters: Int64s = field(default_factory=no_int64s)
    next_timer: int = FOREVER

    def check(self) -> None:
        used = self.groups.keys.slots.used()
        need(len(self.words) == len(self.enters) and int(used.max(initial=-1)) < len(self.enters))
        need(self.next_timer == int(self.enters[used].min(initial=FOREVER)))


@dataclass(frozen=True)
class WindowAggregateKernel:
    """`project` makes the columns that `aggregate` reads, which is one over rows that stay."""

    grid: TimeGrid
    project: ProjectKernel
    aggregate: AggregateKernel
    negative: bool = False

    def start(self) -> WindowAggregateState:
        return WindowAggregateState(self.aggregate.start(), np.zeros((0, self.aggregate.result_words), dtype=np.int64))

    def next_timer(self, state: WindowAggregateState) -> int:
        return state.next_timer

    def check(self, state: WindowAggregateState) -> None:
        self.aggregate.check_groups(state.groups)

    def step(self, state: WindowAggregateState, inputs: tuple[StreamDelta], step: Step) -> Delta | Changelog:
        (rows,) = inputs
        if len(rows):
            self._add(state, rows, step)
        if state.next_timer >= step.frontier:
            return self._out(empty_batch(self.aggregate.schema), no_int64s(), step)
        groups = state.groups.keys.slots.used()
        due = groups[state.enters[groups] < step.frontier]
        due = due[np.argsort(state.enters[due], kind="stable")]
        results = self.aggregate.results(state.groups, due, state.words[due], no_int64s())
        values, enter = pa.RecordBatch.from_arrays(results, schema=self.aggregate.schema), state.enters[due]
        state.groups.rows[due] = 0
        self.aggregate.forget(state.groups, due, np.zeros((0, len(due)), dtype=np.int64))
        rest = state.groups.keys.slots.used()
        state.next_timer = int(state.enters[rest].min(initial=FOREVER))
        return self._out(values, enter, step)

    def _add(self, state: WindowAggregateState, rows: StreamDelta, step: Step) -> None:
        """Each row to the group of each of its windows."""
        at, k = repeated(self.grid.first_holding(rows.t), self.grid.last_holding(rows.t))
        *columns, enter = self.grid.bounds(k)
        values = with_bounds(rows.values.take(pa.array(at)), tuple(columns))
        moving = self.project.step(None, (StreamDelta(values, enter, step.frontier),), step)
        if not len(values):
            return
        group, changed, words = self.aggregate.run_unseen(state.groups, moving.values)
        if len(state.groups.rows) > len(state.enters):
            state.enters = grown(state.enters, len(state.groups.rows))
            state.words = np.vstack(
                [state.words, np.zeros((len(state.enters) - len(state.words), words.shape[1]), np.int64)]
            )
        state.words[changed] = words
        state.enters[group] = enter
        state.next_timer = min(state.next_timer, int(enter.min(initial=FOREVER)))

    def _out(self, values: pa.RecordBatch, enter: Int64s, step: Step) -> Delta | Changelog:
        if self.negative:
            return Changelog(values, enter, 0, step.frontier)
        return Delta(values, enter, forever(len(enter)), no_open_ids(len(enter)), step.frontier)
