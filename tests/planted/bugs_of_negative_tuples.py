"""Bugs in the operators under negative tuples."""

from __future__ import annotations

from tests.planted.bug import Bug

NEGATIVE: tuple[Bug, ...] = (
    Bug(
        "negative_rows_window_pushes_out_late",
        "kernels/negative/window.py",
        "max(state.alive - self.rows, 0)",
        "max(state.alive - self.rows - 1, 0)",
        "a ROWS window holds a row too many",
    ),
    Bug(
        "negative_window_shows_ghosts",
        "kernels/negative/window.py",
        "if own and (te[earlier:] == arrived.t[:own]).any():",
        "if False:",
        "a row that comes and goes at one instant departs before it arrives",
    ),
    Bug(
        "negative_range_forgets_the_count",
        "kernels/negative/window.py",
        "due[: len(te)] = np.minimum(due[: len(te)], te)",
        "pass",
        "ROWS N RANGE T ends rows by time alone",
    ),
    Bug(
        "departures_of_the_same_step_forgotten",
        "kernels/negative/departures.py",
        "gone = np.flatnonzero(determined & (rows.te < step.frontier))",
        "gone = np.flatnonzero(determined & (rows.te < step.before))",
        "a row of a partition that begins and ends within a batch never leaves",
    ),
    Bug(
        "filter_miscounts_departures",
        "kernels/select/select.py",
        "departed = int(np.searchsorted(kept, rows.departed))",
        "departed = min(rows.departed, len(kept))",
        "rows that arrived are taken for rows that departed",
    ),
    Bug(
        "negative_tuples_split_wrongly_over_partitions",
        "pipeline/exchange.py",
        "return int(np.searchsorted(positions, delta.departed)) if",
        "return min(len(positions), delta.departed) if",
        "the same, behind an exchange",
    ),
    Bug(
        "open_row_id_queue_reuses_too_early",
        "state/open_ids.py",
        "if region[0] + count <= oldest:",
        "if region[0] + count <= oldest + 1:",
        "two open rows share an open row id, and one ends with the other",
    ),
)
