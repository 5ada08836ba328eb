"""What goes to disk when memory is full, and that what is kept stays within its part of the budget."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta
from transom.core.schema import BIGINT, VARCHAR
from transom.kernels.kernel import Step
from transom.kernels.slide_join.budget import limits_of, put_away, victim
from transom.kernels.slide_join.memory import BasicWindow, SlideJoinState, Stored
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.slide_join.sorted_run import sorted_run
from transom.kernels.slide_join.spec import SlideSide, SlideSpec
from transom.plan.expression import ColumnRef
from transom.state.open_ids import OpenIdPool
from transom.state.spill import SpillStore

K, V = ColumnRef(0, BIGINT, "k"), ColumnRef(1, VARCHAR, "v")
SIDE = SlideSide(40, 10, None, (K, V), (K,))
SPEC = SlideSpec((SIDE, SIDE), None, (K, V, ColumnRef(3, VARCHAR, "w")), ("k", "v", "w"))


def rows(count: int, first: int, keys: int) -> pa.RecordBatch:
    values = [(first + i) % keys for i in range(count)]
    return pa.record_batch({"k": values, "v": [f"{value:>20}" for value in values]})


def run_of_rows(source: int, ta: int) -> tuple[int, pa.RecordBatch]:
    return ta, SIDE.kept(rows(10, ta, 7))[0]


def test_stored_results_go_first_and_then_windows_the_oldest_of_each() -> None:
    store = SpillStore()
    result = pa.record_batch({"k": [1]})
    windows = [BasicWindow(at, [sorted_run(i, *(at, at + 40), [SIDE.kept(rows(5, 0, 3))[0]]) for i in (0, 1)])
               for at in (10, 20)]  # fmt: skip
    stored = [Stored(birth, 50, 1, 8, result) for birth in (20, 10)]
    state = SlideJoinState(windows=windows, stored=stored)
    gone = []
    while (found := victim(state)) is not None:
        put_away(found, store)
        gone.append((type(found).__name__, found.birth if isinstance(found, Stored) else found.at))
    assert gone == [("Stored", 10), ("Stored", 20), ("BasicWindow", 10), ("BasicWindow", 20)]
    assert state.bytes == 0 and all(run.rows == 5 and not run.in_memory for run in state.runs)
    assert len(state.files) == 6
    store.close()


def run(tactic: str, budget: int | None, keys: int) -> tuple[list[tuple[int, int]], SlideJoinState, int]:
    """Slides of 2 x 400 rows; how many rows each emitted, the state in the end, and the most that was kept."""
    store = SpillStore()
    kernel = SlideJoinKernel(SPEC, tactic, budget, marked=budget is not None)
    state = kernel.start()
    reported: dict[int, int] = {}
    most = 0
    limits = limits_of(budget)

    def emit_rows(delta: StreamDelta) -> None:
        nonlocal most
        most = max(most, state.bytes)
        for t in delta.t.tolist():
            reported[t] = reported.get(t, 0) + 1

    before = 0
    for slide in range(1, 12):
        frontier = 10 * slide + 1 if slide < 11 else 10_000
        t = np.repeat(np.arange(before, before + 10), 40) if slide < 11 else np.empty(0, dtype=np.int64)
        deltas = [StreamDelta(rows(len(t), 13 * i, keys), t, frontier) for i in (0, 1)]
        emit_rows(kernel.step(state, deltas, Step(before, frontier, 0, OpenIdPool(), spill=store, emit_rows=emit_rows)))
        assert state.bytes <= limits.room
        before = frontier
    assert not state.windows and not state.stored
    assert state.report.peak_bytes <= (budget or 1 << 40)
    store.close()
    marks = budget is not None
    return sorted((t, count - marks) for t, count in reported.items() if count > marks), state, most


def test_every_budget_gives_the_same_slides_and_is_kept_to() -> None:
    expected, state, _ = run("incremental", None, 400)
    assert len(expected) == 14 and not state.report.bytes_written
    for tactic in ("incremental", "full", "hybrid"):
        for budget in (150_000, 4_000_000):
            found, state, most = run(tactic, budget, 400)
            assert found == expected, (tactic, budget)
            assert most <= budget
            assert bool(state.report.bytes_written) == bool(state.report.bytes_read) == (budget == 150_000)


def test_the_bytes_of_a_state_are_those_of_its_parts() -> None:
    ta, batch = run_of_rows(0, 10)
    run = sorted_run(0, ta, 50, [batch])
    assert run.bytes >= batch.nbytes
    state = SlideJoinState(windows=[BasicWindow(10, [run])], stored=[Stored(10, 50, 1, 99, batch)])
    assert state.bytes == run.bytes + 99
