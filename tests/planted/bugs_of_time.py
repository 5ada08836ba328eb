"""Bugs of windows, of progress, of lifetimes and of restarts."""

from __future__ import annotations

from typing import Final

from tests.planted.bug import Bug

WINDOWS: Final = (
    Bug(
        "rows_window_lost_close",
        "kernels/window/rows.py",
        "close(step.open_ids, te[:waiting])",
        "close(step.open_ids, te[:waiting][:-1])",
        "a row that is pushed out of a ROWS window stays in the answer for longer",
    ),
    Bug(
        "rows_range_ignores_range",
        "kernels/window/tactic.py",
        "return RowsWindow(spec.rows, _length(spec))",
        "return RowsWindow(spec.rows)",
        "ROWS N RANGE T ends by count alone",
    ),
    Bug(
        "partition_range_ignores_earlier_end",
        "kernels/window/partition_rows.py",
        "end = min(t[i], nodes[2, old])",
        "end = t[i]",
        "a row of PARTITION BY .. ROWS N RANGE T that ended by time lives on to the row that pushes it out",
    ),
    Bug(
        "partition_window_lost_close",
        "kernels/window/partition_rows.py",
        "elif open_id >= 0:\n                closed_id[closed] = open_id\n                closed_te[closed] = end",
        "elif open_id > 0:\n                closed_id[closed] = open_id\n                closed_te[closed] = end",
        "the row with the first open row id is pushed out of its partition and never ends",
    ),
    Bug(
        "partition_range_ends_the_wrong_row",
        "kernels/window/partition_rows.py",
        "if nodes[3, node] != serials[i]:",
        "if nodes[3, node] < 0:",
        "the time of a row that is long gone ends the row that has its place now",
    ),
    Bug(
        "slide_rounds_down",
        "kernels/window/slide_range.py",
        "-(-t[i] // slide) * slide",
        "t[i] // slide * slide",
        "a row shows at the multiple before it arrived",
    ),
    Bug(
        "slide_rows_ends_a_step_late",
        "kernels/window/slide_rows.py",
        'side="right"',
        'side="left"',
        "the last row that a sample of ROWS N SLIDE M should lose is never taken out",
    ),
    Bug(
        "window_beyond_the_end_of_time",
        "kernels/window/range.py",
        "np.minimum(t, FOREVER - length) + length",
        "t + length",
        "a long window near the end of time ends after forever, or overflows into the past",
    ),
    Bug(
        "now_lasts_a_microsecond",
        "kernels/window/tactic.py",
        "return RangeWindow(tick)",
        "return RangeWindow(1)",
        "NOW ends within the tick, between two instants",
    ),
)

WINDOW_TABLES: Final = (
    Bug(
        "tumble_enters_at_its_end",
        "kernels/window_table/time_windows.py",
        "return k * self.slide + self.offset + self.size - self.tick",
        "return k * self.slide + self.offset + self.size",
        "a window is due a tick after its rows enter, so they come too late or into the past",
    ),
    Bug(
        "hop_forgets_its_last_window",
        "kernels/window_table/time_windows.py",
        "done = int(np.searchsorted(last, due.stop))",
        "done = int(np.searchsorted(first, due.stop))",
        "a row of HOP is forgotten once its first window is over",
    ),
    Bug(
        "window_start_said_to_end_like_the_end",
        "planner/sealed.py",
        "return {width: spec.size - tick, width + 1: -tick, width + 2: 0}",
        "return {width: -tick, width + 1: -tick, width + 2: 0}",
        "windows of different lengths that begin together are joined as if they were over together",
    ),
    Bug(
        "group_of_a_window_kept_on",
        "kernels/window_table/aggregate.py",
        "state.groups.rows[due] = 0",
        "state.groups.rows[due] += 0",
        "groups of windows that are over are not forgotten, and told again with the next window",
    ),
    Bug(
        "session_cut_at_the_gap",
        "kernels/window/open_sessions.py",
        "t[i] - known[1, s] > gap",
        "t[i] - known[1, s] >= gap",
        "a row exactly the gap after the last one begins a session of its own",
    ),
    Bug(
        "filter_below_a_session",
        "plan/rewrites/push_filters.py",
        "if window.rows is None and window.session is None:",
        "if window.rows is None:",
        "a selection hides rows that keep a session going",
    ),
)

PROGRESS: Final = (
    Bug(
        "late_row_used",
        "pipeline/admission.py",
        "codes[late if timed is None else timed[late]] = LATE",
        "codes[late if timed is None else timed[late]] = FIT",
        "what was final is revised",
    ),
    Bug(
        "row_on_the_watermark_is_late",
        "pipeline/admission.py",
        "late: Mask = t < np.maximum(",
        "late: Mask = t <= np.maximum(",
        "a row that came exactly as late as was allowed is lost",
    ),
    Bug(
        "lateness_judged_by_batch",
        "pipeline/admission.py",
        "before = np.maximum.accumulate(np.concatenate([[greatest], t[:-1]])) if len(t) else t",
        "before = np.full(len(t), greatest)",
        "whether a row is late depends on how the input was cut",
    ),
    Bug(
        "equal_times_turned_in_a_batch",
        "pipeline/admission.py",
        'order = np.argsort(t, kind="stable")\n            values, t',
        'order = np.argsort(-t, kind="stable")[::-1]\n            values, t',
        "rows of one instant lose their arrival order when a batch is sorted, and ROWS counts other rows",
    ),
    Bug(
        "equal_times_turned_across_batches",
        "pipeline/admission.py",
        'order = np.argsort(t, kind="stable")\n            values = pa',
        'order = np.argsort(-t, kind="stable")[::-1]\n            values = pa',
        "rows of one instant from several batches lose their arrival order",
    ),
    Bug(
        "row_at_progress_released",
        "pipeline/admission.py",
        "count = int(np.searchsorted(part.t, frontier))",
        'count = int(np.searchsorted(part.t, frontier, side="right"))',
        "a row of the instant that is not final yet is taken before those that may still come ahead of it",
    ),
    Bug(
        "watermark_between_ticks",
        "pipeline/admission.py",
        "return -floor_to_tick(-self.definition.time.bound, self.tick)",
        "return self.definition.time.bound",
        "with a bound that is no multiple of the tick, a row within it is late",
    ),
    Bug(
        "tick_not_applied",
        "pipeline/admission.py",
        "if self.tick > 1:",
        "if self.tick < 1:",
        "instants are not floored to the tick",
    ),
    Bug(
        "null_key_of_a_table_used",
        "pipeline/admission.py",
        "codes[null.to_numpy(zero_copy_only=False) & (codes == FIT)] = MISSING_KEY",
        "codes[null.to_numpy(zero_copy_only=False) & (codes == FIT)] = FIT",
        "an upsert without a key becomes a row that nothing can replace",
    ),
    Bug(
        "progress_of_the_fastest_input",
        "pipeline/input_gates.py",
        "least = min((self.watermark(name) for name in self._timed), default=FOREVER)",
        "least = max((self.watermark(name) for name in self._timed), default=FOREVER)",
        "rows of the slower input are taken after their time was called final",
    ),
    Bug(
        "origin_of_the_last_input",
        "pipeline/input_gates.py",
        "first = min((s.first for s",
        "first = max((s.first for s",
        "time begins when the last input has a row, and what came before it is lost",
    ),
    Bug(
        "set_origin_ignored",
        "plan/options.py",
        'catalogue.options.get("origin")',
        "None",
        "SET origin does nothing",
    ),
    Bug(
        "refused_change_counted_twice",
        "pipeline/admission.py",
        "ledger.used -= len(values)",
        "ledger.used -= 0",
        "the ledger of a table does not add up",
    ),
    Bug(
        "silent_stream_runs_ahead",
        "pipeline/input_gates.py",
        "return min((marks[name] for name in is_open), default=BEGINNING)",
        "return max((marks[name] for name in is_open), default=BEGINNING)",
        "an idle stream is raised past a stream that is slower than the fastest, and its rows become late",
    ),
    Bug(
        "heartbeat_speaks_over_a_backlog",
        "pipeline/input_gates.py",
        "if self.source_of[name] in at_end:",
        "if at_end is not None:",
        "rows that came while nobody ran are late",
    ),
    Bug(
        "silence_brings_nothing",
        "pipeline/timers.py",
        "return min(self._next_timers, default=FOREVER)",
        "return FOREVER",
        "what expires while nothing comes is not told before a row comes",
    ),
    Bug(
        "idle_row_called_late",
        "pipeline/admission.py",
        "codes[late] = np.where(t[late] < own, LATE, IDLE)",
        "codes[late] = LATE",
        "the dead-letter table gives the wrong reason",
    ),
)

LIFETIMES: Final = (
    Bug(
        "ghost_kept",
        "kernels/kernel.py",
        "step.frontier, ends), ta < te), open_id",
        "step.frontier, ends), ta <= te), open_id",
        "a row that ends when it begins is shown to the user",
    ),
    Bug(
        "ghost_emitted_as_a_lifetime",
        "pipeline/emit.py",
        "kept = np.flatnonzero(te > ta)",
        "kept = np.flatnonzero(te >= ta)",
        "a row that turned out a ghost is written with an empty lifetime",
    ),
    Bug(
        "end_at_progress_is_due",
        "kernels/lifetimes.py",
        'np.searchsorted(run.te, frontier, side="left")',
        'np.searchsorted(run.te, frontier, side="right")',
        "a row leaves a step before the row that replaces it comes: they do not cancel",
    ),
    Bug(
        "unsorted_ends_looked_at_too_late",
        "kernels/lifetimes.py",
        "int(te.min())",
        "int(te.max())",
        "rows outlive their end until the latest of their batch is due",
    ),
    Bug(
        "only_the_first_observer_hears",
        "kernels/lifetimes.py",
        "slot = following[slot]",
        "slot = -1",
        "of the rows that share an open end, all but one stay forever",
    ),
    Bug(
        "holder_reused_within_the_step",
        "state/open_ids.py",
        "self.closed.append(open_ids)",
        "self.slots.give_back(open_ids)",
        "a closing is taken for that of the row that has the open row id now",
    ),
    Bug(
        "holder_given_back_twice",
        "state/open_ids.py",
        "self.closed.clear()",
        "self.closed = self.closed[-1:]",
        "two open rows share an open row id, and the end of one ends the other",
    ),
    Bug(
        "union_loses_closings_of_the_right",
        "kernels/select/select.py",
        "left.ends + right.ends",
        "left.ends",
        "rows from the right of a UNION ALL never end",
    ),
)

RESTART: Final = (
    Bug(
        "restart_one_row_short",
        "state/codec.py",
        "return _checked(next(iter(reader)))",
        "return (batch := _checked(next(iter(reader)))).slice(0, max(len(batch) - 1, 1))",
        "the last of several waiting rows is lost by a restart",
    ),
    Bug(
        "restart_forgets_the_holders",
        "pipeline/driver.py",
        'self._state = saved["state"]',
        'saved["state"].part.open_ids = self._state.part.open_ids; self._state = saved["state"]',
        "after a restart the ends of open rows reach others",
    ),
    Bug(
        "restart_a_queue_one_short",
        "state/codec.py",
        "found = cls(**fields)",
        'found = cls(**fields | ({"last": max(fields["last"] - 1, 0)} if "first" in fields else {}))',
        "the youngest open row of a row-count window is forgotten by a restart and never ends",
    ),
    Bug(
        "restart_forgets_unsorted_ends",
        "state/codec.py",
        "for name in _fields(type(value))}",
        'for name in _fields(type(value)) if name != "unsorted"}',
        "a part of the state is not saved: rows whose end was known before a restart never leave",
    ),
)
