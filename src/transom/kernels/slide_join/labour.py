"""The work on a slide, unit by unit: a share of the join, or a stored result of the merge."""

from __future__ import annotations

import time
from functools import cached_property
from math import prod

import pyarrow as pa

from transom.kernels.decisions import Decisions
from transom.kernels.slide_join.budget import BudgetPool, MemoryLimits
from transom.kernels.slide_join.combine import Combination, Shares, Term, terms_of
from transom.kernels.slide_join.estimates import Counted, Estimates, Situation, choose
from transom.kernels.slide_join.fold import Fold
from transom.kernels.slide_join.memory import SlideJoinState, SlideWork, Stored
from transom.kernels.slide_join.outlet import COMPLETE, Outlet
from transom.kernels.slide_join.sorted_run import SortedRun, held_bytes
from transom.kernels.slide_join.spec import SlideSpec
from transom.state.spill import SpillStore

UNIT_ROWS = 1 << 16
"""Rows to probe with in a unit, about."""

MOST_BITS = 12


class Labour:
    def __init__(
        self,
        spec: SlideSpec,
        forced: str,
        limits: MemoryLimits,
        state: SlideJoinState,
        outlet: Outlet,
        store: SpillStore,
        pool: BudgetPool,
        decisions: Decisions,
        estimates: Estimates,
    ) -> None:
        self._spec = spec
        self._forced = forced
        self._limits = limits
        self._state = state
        self._outlet = outlet
        self._store = store
        self._pool = pool
        self._decisions = decisions
        self._estimates = estimates
        """The estimates that a tactic is chosen by."""
        self.worked = 0
        """Rows probed with, found and merged."""
        self._buffers: dict[int, list[pa.RecordBatch]] = {}
        self._buffered = 0
        self._disk = self._disk_now()

    def done(self, work: SlideWork) -> bool:
        if not work.kind:
            return False
        if work.merging:
            return work.unit >= len(self._merged(work))
        return work.unit >= work.units and work.kind == "full"

    def do(self, work: SlideWork) -> None:
        """The next unit."""
        if not work.kind:
            self._begin(work)
        started, disk, writing = time.perf_counter(), self._disk_seconds(), self._pool.write_seconds
        if not work.merging and work.unit < work.units:
            loading = self._join(work)
            seconds = time.perf_counter() - started
            work.join_seconds += max(seconds - loading - (self._pool.write_seconds - writing), 0.0)
        elif work.unit < len(self._merged(work)):
            self._merge(work)
            seconds = time.perf_counter() - started
            work.merge_seconds += max(seconds - (self._disk_seconds() - disk), 0.0)
        else:
            seconds = 0.0
        if not work.merging and work.unit >= work.units:
            self.flush(work)
            if work.kind == "incremental":
                work.merging, work.unit = True, 0
        work.seconds += seconds
        if work.groups is not None:
            Fold.measure(work.groups)
            self._pool.make_room_of_results(self._limits.room)
            self._note_peak(0)

    def _give(self, work: SlideWork, results: pa.RecordBatch) -> None:
        """On their way out, or into their groups."""
        fold = self._spec.fold
        if fold is None:
            self._outlet.add(work.at, work.attempt, results)
            return
        if work.groups is None:
            work.groups = fold.start()
        fold.add(work.groups, results)

    def give_groups(self, work: SlideWork) -> None:
        """The slide is complete: what its results have come to."""
        fold = self._spec.fold
        if fold is not None:
            for rows in self._of_nothing if work.groups is None else fold.results(work.groups):
                self._outlet.add(work.at, work.attempt, rows)
            work.groups = None

    @cached_property
    def _of_nothing(self) -> list[pa.RecordBatch]:
        """What a slide emits that has no results."""
        fold = self._spec.fold
        return [] if fold is None or not self._spec.always else list(fold.results(fold.start()))

    def finish_empty(self, at: int) -> None:
        """A slide at which no row is alive."""
        work = SlideWork(at, kind="full")
        self.give_groups(work)
        self._outlet.end(at, work.attempt, COMPLETE)
        self._state.report.finish(_label(work), at, 0, 0.0, work.attempt, 0)

    # --- how ---------------------------------------------------------------------------------------------------------

    def _begin(self, work: SlideWork) -> None:
        """Algorithm 2; what was put off is joined in full, and changes nothing for the others."""
        now = self._situation(work.at)
        work.kind, work.stores = ("full", False) if work.put_off else self._decisions.make(lambda: self._chosen(now))
        if work.kind == "full" and not work.put_off:
            self.forget_stored()
        work.candidates = now.all.tuples - now.old.tuples if work.kind == "incremental" else now.all.tuples
        terms = self._terms(work)
        units = [unit for term in terms for unit in term.units]
        on_disk = sum({id(unit): unit.bytes for unit in units if not unit.in_memory}.values())
        probes = sum(run.rows for term in terms for run in term.starts)
        answer = self._answer_bytes(work)
        work.from_disk = on_disk > 0
        work.bits = work.cuts = 0
        while work.bits < MOST_BITS and (
            on_disk >> work.bits > self._limits.shares // 2 or probes >> work.bits > UNIT_ROWS
        ):
            work.bits += 1
        # One key may have most results: rows are dealt out then, whatever their hashes.
        while work.bits + work.cuts < MOST_BITS and answer >> (work.bits + work.cuts) > self._limits.answer // 4:
            work.cuts += 1

    def _answer_bytes(self, work: SlideWork) -> int:
        """About so many bytes come of the join that nobody takes before the step is over."""
        estimates = self._estimates
        if not self._outlet.gathers or self._spec.fold is not None:
            return 0
        return int(work.candidates * (estimates.selectivity.value or 0.0) * (estimates.row_bytes.value or 0.0))

    def _chosen(self, now: Situation) -> tuple[str, bool]:
        decision = choose(self._forced, self._estimates, now)
        learned = self._state.estimates
        learned.reuse_cost, learned.join_cost = self._estimates.reuse_cost, self._estimates.join_cost
        return decision.kind, decision.stores

    def _situation(self, at: int) -> Situation:
        state = self._state
        alive = [run for run in state.runs if run.alive(at)]
        older = [run for run in alive if run.ta < at]
        following = self._spec.instant_from(at + 1)

        def counted(runs: list[SortedRun]) -> Counted:
            rows = [sum(run.rows for run in runs if run.source == i) for i in range(len(self._spec.sides))]
            return Counted(sum(rows), sum(prod(rows[i] for i in inputs) for inputs in self._spec.inputs))

        old = counted(older)
        covered = state.covered or not old.tuples  # where an input has no older rows, no result is older
        return Situation(
            counted(alive),
            old,
            counted([run for run in alive if run.te > following]).tuples,
            counted([run for run in older if run.te > following]).tuples,
            sum(run.bytes for run in alive),
            all(run.in_memory for run in alive),
            self._limits.room - self._pool.beside(state),
            covered,
            max(-(-side.length // side.slide) for side in self._spec.sides),
        )

    def _terms(self, work: SlideWork) -> list[Term]:
        return terms_of(list(self._state.runs), self._spec, work.at, work.kind == "incremental")

    # --- the join ----------------------------------------------------------------------------------------------------

    def _join(self, work: SlideWork) -> float:
        """One unit, a share or a cut of it; how long it took to read from disk, which is the same for either kind."""
        shares = Shares(self._limits.shares)
        combination = Combination(self._spec.names, shares, self._limits.chunk)
        following = self._spec.instant_from(work.at + 1)
        most = 0
        share, cut = divmod(work.unit, 1 << work.cuts)
        for term in (term.bundled(work.stores, starts=not work.cuts) for term in self._terms(work)):
            for death, rows in combination.results(term, share, work.bits, cut, 1 << work.cuts):
                size = held_bytes(rows)
                work.rows += len(rows)
                work.results += len(rows)
                self.worked += len(rows)
                work.result_bytes += size
                self._give(work, rows)
                if work.stores and death > following:
                    self._buffers.setdefault(death, []).append(rows)
                    self._buffered += size
                    if self._buffered > self._limits.buffer:
                        self.flush(work)
                most = max(most, shares.bytes + size + self._buffered + self._outlet.bytes)
        self._note_peak(max(most - self._buffered - self._outlet.bytes, 0))
        work.probes += combination.probes
        self.worked += combination.probes
        work.unit += 1
        return shares.seconds

    def flush(self, work: SlideWork) -> None:
        """Results that live on are stored: in memory if there is room, or else the oldest ones go to disk."""
        for death, parts in self._buffers.items():
            batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            part = Stored(work.at, death, len(batch), held_bytes(batch), batch)
            part.reader = self._store
            self._pool.store_results(self._state, self._store, part, self._limits.room)
            self._note_peak(0)
        self._buffers, self._buffered = {}, 0

    # --- the merge ---------------------------------------------------------------------------------------------------

    def _merged(self, work: SlideWork) -> list[Stored]:
        return [part for part in self._state.stored if part.birth < work.at < part.death]

    def _merge(self, work: SlideWork) -> None:
        """Some of them: a window of many slides has thousands, of a few rows each."""
        rows = size = largest = 0
        for part in self._merged(work)[work.unit :]:
            work.merged_from_disk |= part.batch is None
            self._give(work, part.read())
            work.unit += 1
            rows += part.rows
            size += part.bytes
            largest = max(largest, part.bytes)
            if rows >= UNIT_ROWS or size >= self._limits.chunk:
                break
        work.rows += rows
        work.merged += rows
        self.worked += rows
        self._note_peak(largest)

    def forget_stored(self) -> None:
        self._buffers, self._buffered = {}, 0
        self._state.drop(self._state.stored, self._store)
        self._state.covered = False

    # --- what was learned --------------------------------------------------------------------------------------------

    def finish(self, work: SlideWork, delay: int) -> None:
        state = self._state
        if not work.put_off:
            state.covered = work.stores
        estimates = state.estimates
        estimates.selectivity.learn(work.results, work.candidates)
        estimates.row_bytes.learn(work.result_bytes, work.results)
        estimates.joining.learn(work.join_seconds, work.probes + work.results)
        estimates.merging.learn(work.merge_seconds, work.merged)
        self.note_disk()
        state.report.finish(_label(work), work.at, work.rows, work.seconds, work.attempt, delay)

    def note_disk(self) -> None:
        """What the disk did, and how fast it was."""
        now = self._disk_now()
        written, read, write_seconds, read_seconds = (b - a for a, b in zip(self._disk, now, strict=True))
        self._disk = now
        report, estimates = self._state.report, self._state.estimates
        report.bytes_read += int(read)
        estimates.writing.learn(write_seconds, written)
        estimates.reading.learn(read_seconds, read)

    def _disk_now(self) -> tuple[float, float, float, float]:
        store = self._store
        return store.written, store.read_back, store.write_seconds, store.read_seconds

    def _disk_seconds(self) -> float:
        return self._pool.write_seconds + self._store.read_seconds

    def _note_peak(self, working: int) -> None:
        self._pool.note_peak(self._state, working + self._buffered + self._outlet.bytes, self._limits)


def _label(work: SlideWork) -> str:
    """
    >>> _label(SlideWork(0, kind="incremental", merged_from_disk=True))
    'one-pass incremental, two-pass merge'
    """
    passes = ("one-pass", "two-pass")
    join = f"{passes[work.from_disk]} {work.kind}"
    return join if work.kind == "full" else f"{join}, {passes[work.merged_from_disk]} merge"
