"""What goes to disk when memory is full, and that what is kept stays within its part of the budget."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transom.core.delta import StreamDelta
from transom.core.schema import BIGINT, VARCHAR
from transom.kernels.kernel import Step
from transom.kernels.slide_join.budget import BudgetPool, RunBudget, limits_of
from transom.kernels.slide_join.memory import BasicWindow, SlideJoinState, SlideWork, Stored
from transom.kernels.slide_join.slide_join import SlideJoinKernel
from transom.kernels.slide_join.sorted_run import sorted_run
from transom.kernels.slide_join.spec import SlideSide, SlideSpec, TupleSpec
from transom.plan.expression import ColumnRef
from transom.state.open_ids import OpenIdPool
from transom.state.spill import SpillStore

K, V = ColumnRef(0, BIGINT, "k"), ColumnRef(1, VARCHAR, "v")
SIDE = SlideSide(40, 10, None, (K, V), (K,))
SPEC = SlideSpec((TupleSpec((SIDE, SIDE), None, (K, V, ColumnRef(3, VARCHAR, "w"))),), ("k", "v", "w"))


def rows(count: int, first: int, keys: int) -> pa.RecordBatch:
    values = [(first + i) % keys for i in range(count)]
    return pa.record_batch({"k": values, "v": [f"{value:>20}" for value in values]})


def run_of_rows(source: int, ta: int) -> tuple[int, pa.RecordBatch]:
    return ta, SIDE.kept(rows(10, ta, 7))[0]


def of_age(*ages: int) -> SlideJoinState:
    """Basic windows and stored results of these ages, of both inputs."""
    result = pa.record_batch({"k": [1]})
    windows = [
        BasicWindow(at, [sorted_run(i, *(at, at + 40), [SIDE.kept(rows(5, 0, 3))[0]]) for i in (0, 1)]) for at in ages
    ]
    return SlideJoinState(windows=windows, stored=[Stored(birth, 50, 1, 8, result) for birth in reversed(ages)])


def test_stored_results_go_first_and_then_windows_the_oldest_of_all_joins() -> None:
    pool, store = BudgetPool(), SpillStore()
    states = [of_age(10, 30), of_age(20, 30)]
    for state in states:
        pool.join(state, store)
    gone = []
    while (found := pool.victim()) is not None:
        state, _, part = found
        gone.append((type(part).__name__, part.birth if isinstance(part, Stored) else part.at, states.index(state)))
        pool.make_room(0, pool.bytes - 1)
    ages = [(10, 0), (20, 1), (30, 0), (30, 1)]
    assert gone == [*(("Stored", *age) for age in ages), *(("BasicWindow", *age) for age in ages)]
    assert pool.bytes == 0 and all(not run.in_memory for state in states for run in state.runs)
    assert [len(state.files) for state in states] == [6, 6]
    assert all(state.report.bytes_written == store.written / 2 for state in states)
    store.close()


def test_slides_of_another_join_are_put_off_when_their_windows_go() -> None:
    pool, store = BudgetPool(), SpillStore()
    mine, other = of_age(20), of_age(10)
    other.works = [SlideWork(10, kind="incremental", stores=True)]
    for state in (mine, other):
        pool.join(state, store)
    pool.make_room(0, mine.bytes)
    (work,) = other.works
    assert (work.put_off, work.attempt, work.kind) == (True, 2, "") and other.voided == [[10, 1]]
    assert not other.stored and not other.covered and other.report.put_off == 1
    assert mine.window_bytes and not mine.stored_bytes, "no window goes while there are stored results"
    store.close()


def test_what_waits_in_sinks_counts_in_the_pools_of_all_partitions() -> None:
    budget = RunBudget()
    budget.sinks += [lambda: 60, lambda: 40]
    assert budget.pool(0, 1).bytes == 100 and [budget.pool(i, 2).bytes for i in (0, 1)] == [50, 50]
    assert budget.pool(0, 1) is budget.pool(0, 1) and not len(budget.pool(0, 1))


def test_a_slide_under_way_keeps_what_it_merges_when_a_later_one_is_put_off() -> None:
    """Its own windows were on disk before it began; that of the later one goes now."""
    store = SpillStore()
    state = of_age(10, 20)
    older, newer = state.windows
    state.works = [SlideWork(10, kind="incremental", stores=True, merging=True), SlideWork(20)]
    state.void(newer, store)
    under_way, later = state.works
    assert state.voided == [[20, 1]] and later.put_off and not under_way.put_off
    assert state.stored and not under_way.stores, "what comes after both cannot build on what it would store"
    state.void(older, store)
    assert state.voided == [[20, 1], [10, 1]] and not state.stored
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
