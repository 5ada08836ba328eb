"""New rows of one input on their way through the waves: probed at once where that is sooner, then put together.

The answer, its order, and what is remembered of the probes do not depend on who probed, or on how many at a time: a
step may be taken again in another place, and must give the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from transom.core.delta import Int64s
from transom.kernels.mould import ColumnAddresses
from transom.kernels.multiway.graph import Check, Hop, JoinGraph
from transom.kernels.multiway.input_rows import LazyRows, RingRows
from transom.kernels.multiway.match_sets import Matches, MatchSets
from transom.kernels.multiway.pace import Paces
from transom.kernels.multiway.predicate_check import PredicateCheck
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.multiway.semi_join import semi_join, semi_join_passing
from transom.kernels.multiway.waves import Wave, WavedRoute
from transom.kernels.worker_pool import WorkerPool

Mask = npt.NDArray[np.bool_]

_ALL: Final[Mask] = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True)
class ProbeResult:
    """What the probe of one input gave: its matches, how many entries were looked at, and the time that took."""

    matches: Matches
    entries: int
    nanoseconds: int


@dataclass
class Meeting:
    """Rows of input i, not linked yet. `made` gets the products that nothing more is asked of, or tuples.

    `block` is how many numbers are written down at a time.
    """

    graph: JoinGraph
    route: WavedRoute
    inputs: Sequence[LazyRows | RingRows]
    addresses: ColumnAddresses
    order: ProbeOrder
    paces: Paces
    i: int
    unlinked: Int64s | None
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
        self._link()

    def _link(self) -> None:
        """Nobody probes the input that the rows are of, so this may be done meanwhile."""
        if self.unlinked is not None:
            self.inputs[self.i].link(self.unlinked)
            self.unlinked = None

    # --- probes ------------------------------------------------------------------------------------------------------

    def _wave(self, number: int, tuples: Int64s) -> None:
        """As many tuples at a time as there is room for their matches."""
        first = 0
        while first < len(tuples):
            some = tuples[first:] if first else tuples
            found = self._probed(self.route.waves[number].hops, some)
            done = min(map(len, found))
            if all(len(one.members) for one in found):
                self._merge(number, 0, some[:done], np.arange(done), found)
            first += done

    def _probed(self, hops: tuple[Hop, ...], tuples: Int64s) -> list[Matches]:
        """The matches of the tuples on each input of a wave."""
        paces = [self.paces.of(self.i, hop.target) for hop in hops]
        wanted = np.ones(len(tuples), dtype=np.bool_)
        checked = len(tuples)
        found: list[Matches] = []
        while len(found) < len(hops):
            at = len(found)
            if not checked:
                found += [Matches.none(len(tuples))] * (len(hops) - at)
                break
            probe = partial(self._probe, tuples=tuples, wanted=_ALL if checked == len(tuples) else wanted)
            if self.worker_pool is not None and self.paces.at_once(self.worker_pool, paces[at:], checked):
                tasks: list[Callable[[], ProbeResult | None]] = [partial(probe, hop) for hop in hops[at:]]
                started = time.perf_counter_ns()
                some = [one for one in self.worker_pool.each([*tasks, self._link]) if one is not None]
                self.paces.waited(self.worker_pool, [one.nanoseconds for one in some], time.perf_counter_ns() - started)
            else:
                some = [probe(hops[at])]
            were = checked
            for one, its_pace in zip(some, paces[at:], strict=False):
                any_found = one.matches.counts > 0
                its_pace.note(were, int(np.count_nonzero(any_found)), were + one.entries, one.nanoseconds)
                wanted[: len(any_found)] &= any_found
                found.append(one.matches)
            checked = int(np.count_nonzero(wanted))
        self._note(hops, found)
        return found

    def _note(self, hops: tuple[Hop, ...], found: list[Matches]) -> None:
        """As if the inputs were probed in turn."""
        done = min(map(len, found))
        if done == 1:  # most often
            for hop, matches in zip(hops, found, strict=True):
                count = int(matches.offsets[1])
                self.order.note(self.i, hop.target, 1, count)
                if not count:
                    return
            return
        alive = np.ones(done, dtype=np.bool_)
        for hop, matches in zip(hops, found, strict=True):
            counts = matches.counts[:done]
            self.order.note(self.i, hop.target, int(alive.sum()), int(counts[alive].sum()))
            alive &= counts > 0

    def _probe(self, hop: Hop, tuples: Int64s, wanted: Mask) -> ProbeResult:
        started = time.perf_counter_ns()
        member, ta, te = (np.ascontiguousarray(tuples[:, at]) for at in (hop.source, -2, -1))
        mine = self.inputs[hop.source].arrays(hop.source_index)
        other = self.inputs[hop.target].arrays(hop.target_index)
        limit = self.block // 3
        formula = self._predicates.formula(hop.check)
        if formula is not None:  # nearly all of a task is this call, in which nobody needs the interpreter
            offsets, members, entries = semi_join_passing(
                member, ta, te, mine, other, wanted, limit,
                (formula.program, formula.constants, formula.depth), self.addresses.addresses, tuples, hop.target,
            )  # fmt: skip
            return ProbeResult(Matches(offsets, members), entries, time.perf_counter_ns() - started)
        offsets, members, _ = semi_join(member, ta, te, mine, other, wanted, limit)
        matches = Matches(offsets, members)
        if hop.check is not None and len(members):
            matches = self._checked(hop, hop.check, tuples, matches)
        return ProbeResult(matches, len(members), time.perf_counter_ns() - started)

    def _checked(self, hop: Hop, check: Check, tuples: Int64s, matches: Matches) -> Matches:
        of_tuple = np.repeat(np.arange(len(matches)), matches.counts)
        kept = self._predicates.pairs(check, tuples, of_tuple, matches.members, hop.target)
        return matches if kept is None else matches.kept(kept)

    # --- tuples ------------------------------------------------------------------------------------------------------

    def _merge(self, number: int, at: int, tuples: Int64s, addresses: Int64s, found: list[Matches]) -> None:
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
            whole_product = MatchSets(tuples, addresses, [hop.target for hop in wave.hops], found, self.frontier)
            limit = self.block // (self.graph.count + 2)
            for block, its_addresses in whole_product.blocks(limit, checked, self.addresses.addresses):
                self._merge(number, len(wave.merges), block, its_addresses, found)
            return
        merge = wave.merges[at]
        targets = [hop.target for hop in wave.hops[merge.first : merge.last]]
        product = MatchSets(tuples, addresses, targets, found[merge.first : merge.last], self.frontier)
        if last_wave and at + 1 == len(wave.merges) and merge.check is None and self.graph.whole is None:
            self.made.append(product)
            return
        for block, its_addresses in product.blocks(self.block // (self.graph.count + 2)):
            kept = slice(None) if merge.check is None else self._kept(merge.check, block)
            self._merge(number, at + 1, block[kept], its_addresses[kept], found)

    def _kept(self, check: Check, tuples: Int64s) -> Int64s | slice:
        """The numbers of the tuples that pass."""
        kept = self._predicates.tuples(check, tuples)
        return slice(None) if kept is None else kept
