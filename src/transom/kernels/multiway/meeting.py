"""New rows of one input on their way through the waves: probed at once where that is sooner, then put together.

The answer, its order, and what is remembered of the probes do not depend on who probed, or on how many at a time: a
step may be taken again in another place, and must give the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.formula import NO_MEMBERS
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway.graph import Check, Hop, JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows
from transom.kernels.multiway.match_sets import Matches, MatchSets, WaveMatches
from transom.kernels.multiway.pace import note_probe
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.multiway.probe_wave import note_wave
from transom.kernels.multiway.probing import Probing
from transom.kernels.multiway.waves import Wave, WavedRoute
from transom.kernels.worker_pool import WorkerPool


@dataclass(frozen=True)
class ProbeResult:
    """What the probe of one input gave: its matches, how many entries were looked at, and the time that took."""

    matches: Matches
    entries: int
    nanoseconds: int


@dataclass
class Meeting:
    """Rows of input i. `made` gets the products that nothing more is asked of, or tuples.

    `block` is how many numbers are written down at a time.
    """

    graph: JoinGraph
    route: WavedRoute
    inputs: Sequence[LazyRows | RingRows]
    addresses: ColumnAddresses
    order: ProbeOrder
    probing: Probing
    i: int
    frontier: int
    block: int
    worker_pool: WorkerPool | None
    made: list[Int64s | MatchSets]

    def __post_init__(self) -> None:
        self._predicates = PredicateCheck(self.graph, self.inputs, self.addresses)

    def run(self, tuples: Int64s) -> None:
        """Find all tuples with rows that were linked before; those given are the rows alone."""
        if self.route.check is not None:
            tuples = tuples[self._kept(self.route.check, tuples)]
        self._wave(0, tuples)

    # --- probes ------------------------------------------------------------------------------------------------------

    def _wave(self, number: int, tuples: Int64s) -> None:
        """As many tuples at a time as there is room for their matches."""
        first = 0
        while first < len(tuples):
            some = np.ascontiguousarray(tuples[first:])
            matches = self._probed(self.route.waves[number].hops, some)
            done = matches.offsets.shape[1] - 1
            if len(matches.members):
                self._merge(number, 0, some[:done], np.arange(done), matches)
            first += done

    def _probed(self, hops: tuple[Hop, ...], tuples: Int64s) -> WaveMatches:
        """The matches of the tuples on each input of a wave; no members where one input has none for any."""
        if all(hop.check is None or self._predicates.formula(hop.check) is not None for hop in hops):
            return self.probing.wave(self.i, hops, tuples, self.block // 3, self.order, self.worker_pool)
        return self._probed_by_tasks(hops, tuples)

    def _probed_by_tasks(self, hops: tuple[Hop, ...], tuples: Int64s) -> WaveMatches:
        """Where Arrow is asked, which wants the interpreter back for every call."""
        paces, targets = self.probing.paces, np.array([hop.target for hop in hops])
        wanted = np.ones(len(tuples), dtype=np.int64)
        checked = len(tuples)
        results: list[Matches] = []
        while len(results) < len(hops):
            at = len(results)
            if not checked:
                results += [Matches.none(len(tuples))] * (len(hops) - at)
                break
            probe = partial(self._probe, tuples=tuples, wanted=wanted)
            if self.worker_pool is not None and paces.tasks_sooner(self.i, targets[at:], checked, self.worker_pool):
                tasks = [partial(probe, hop) for hop in hops[at:]]
                started = time.perf_counter_ns()
                done = self.worker_pool.each(tasks)
                took = np.array([result.nanoseconds for result in done])
                paces.waited_for_tasks(took, self.worker_pool, time.perf_counter_ns() - started)
            else:
                done = [probe(hops[at])]
            were = checked
            for result, target in zip(done, targets[at:], strict=False):
                any_match = result.matches.counts > 0
                finding = int(np.count_nonzero(any_match))
                note_probe(paces.probes[self.i, target], were, finding, were + result.entries, result.nanoseconds)
                wanted[: len(any_match)] &= any_match
                results.append(result.matches)
            checked = int(np.count_nonzero(wanted))
        matches = WaveMatches.of(results)
        counts = self.order.probes[self.i], self.order.matches[self.i]
        note_wave(targets, matches.offsets, matches.offsets.shape[1] - 1, *counts)
        return matches if all(len(result.members) for result in results) else WaveMatches(matches.offsets, NO_MEMBERS)

    def _probe(self, hop: Hop, tuples: Int64s, wanted: Int64s) -> ProbeResult:
        started = time.perf_counter_ns()
        by_formula = self._predicates.formula(hop.check) is not None
        matches, entries = self.probing.alone(hop, tuples, wanted, self.block // 3, by_formula)
        if hop.check is not None and not by_formula and len(matches.members):
            matches = self._checked(hop, hop.check, tuples, matches)
        return ProbeResult(matches, entries, time.perf_counter_ns() - started)

    def _checked(self, hop: Hop, check: Check, tuples: Int64s, matches: Matches) -> Matches:
        of_tuple = np.repeat(np.arange(len(matches)), matches.counts)
        kept = self._predicates.pairs(check, tuples, of_tuple, matches.members, hop.target)
        return matches if kept is None else matches.kept(kept)

    # --- tuples ------------------------------------------------------------------------------------------------------

    def _merge(self, number: int, at: int, tuples: Int64s, addresses: Int64s, matches: WaveMatches) -> None:
        """Put the sets of a wave together, from its merge number `at` on; then to the next wave."""
        wave: Wave = self.route.waves[number]
        last_wave = number + 1 == len(self.route.waves)
        if at == len(wave.merges):
            if not last_wave:
                self._wave(number + 1, tuples)
            elif len(tuples):
                whole = self.graph.whole
                self.made.append(tuples if whole is None else tuples[self._kept(whole, tuples)])
            return
        checked = wave.formulas if at == 0 else None
        if checked is not None and not checked.columns & ~self.addresses.plain:
            whole_product = MatchSets(tuples, addresses, [hop.target for hop in wave.hops], matches, self.frontier)
            limit = self.block // (self.graph.count + 2)
            for block, its_addresses in whole_product.blocks(limit, checked, self.addresses.addresses):
                self._merge(number, len(wave.merges), block, its_addresses, matches)
            return
        merge = wave.merges[at]
        targets = [hop.target for hop in wave.hops[merge.first : merge.last]]
        of_merge = WaveMatches(matches.offsets[merge.first : merge.last], matches.members)
        product = MatchSets(tuples, addresses, targets, of_merge, self.frontier)
        if last_wave and at + 1 == len(wave.merges) and merge.check is None and self.graph.whole is None:
            self.made.append(product)
            return
        for block, its_addresses in product.blocks(self.block // (self.graph.count + 2)):
            kept = slice(None) if merge.check is None else self._kept(merge.check, block)
            self._merge(number, at + 1, block[kept], its_addresses[kept], matches)

    def _kept(self, check: Check, tuples: Int64s) -> Int64s | slice:
        """The numbers of the tuples that pass."""
        kept = self._predicates.tuples(check, tuples)
        return slice(None) if kept is None else kept
