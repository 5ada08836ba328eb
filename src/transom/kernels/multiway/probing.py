"""What probes the inputs of a wave: one compiled call.

What is here belongs to a state and is no part of it: it decides on who does something, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transom.core.delta import Int64s
from transom.kernels.address import address_of
from transom.kernels.compiled_threads import blank_sheet, measured_call
from transom.kernels.multiway.directory import Directory
from transom.kernels.multiway.graph import Hop
from transom.kernels.multiway.match_sets import Matches, WaveMatches
from transom.kernels.multiway.pace import Paces
from transom.kernels.multiway.probe_order import ProbeOrder
from transom.kernels.multiway.probe_wave import HOP, help_probing, probe_alone, probe_wave
from transom.kernels.worker_pool import WorkerPool


@dataclass(frozen=True)
class HopTable:
    """Hops as a compiled loop reads them. The hops are kept, and with them the formulas whose addresses are in it."""

    rows: Int64s
    hops: Sequence[Hop]

    @staticmethod
    def of(hops: Sequence[Hop], first: Sequence[int]) -> HopTable:
        """`first` are the numbers of the first tables of the inputs."""
        rows = np.zeros((len(hops), HOP), dtype=np.int64)
        for row, hop in zip(rows, hops, strict=True):
            formula = None if hop.check is None else hop.check.formula
            row[:4] = hop.source, first[hop.source] + hop.source_index, hop.target, first[hop.target] + hop.target_index
            if formula is not None:
                row[4:6] = address_of(formula.program), len(formula.program)
                row[6:] = address_of(formula.constants), len(formula.constants), formula.depth
        return HopTable(rows, hops)


class Probing:
    def __init__(self, inputs: int, directory: Directory) -> None:
        self.paces = Paces(inputs)
        self.directory = directory
        self._sheet = blank_sheet()
        self._tables: dict[int, HopTable] = {}

    def wave(
        self,
        i: int,
        hops: tuple[Hop, ...],
        tuples: Int64s,
        limit: int,
        order: ProbeOrder,
        worker_pool: WorkerPool | None,
    ) -> WaveMatches:
        """The matches of tuples that began with input i, by each hop; whatever is asked are formulas."""
        if worker_pool is None or len(hops) < 2:
            return self._wave(i, hops, tuples, limit, order, self._sheet, 0)[0]
        threads = worker_pool.compiled(help_probing)
        if not threads.leading.acquire(blocking=False):  # those are busy for somebody else
            return self._wave(i, hops, tuples, limit, order, self._sheet, 0)[0]
        try:
            helpers = threads.begin(len(hops) - 1)
            matches, helped = self._wave(i, hops, tuples, limit, order, threads.sheet, helpers)
        finally:
            threads.leading.release()
        if helped:
            worker_pool.helped(helped)
        return matches

    def _wave(
        self,
        i: int,
        hops: tuple[Hop, ...],
        tuples: Int64s,
        limit: int,
        order: ProbeOrder,
        sheet: Int64s,
        helpers: int,
    ) -> tuple[WaveMatches, int]:
        table = self._table(id(hops), hops)
        offsets, members, helped = probe_wave(
            sheet, self.directory.tables, self.directory.addresses.addresses, table.rows, tuples, limit, helpers,
            1000 * measured_call() if helpers else 0.0, self.paces.extra, self.paces.probes[i],
            order.probes[i], order.matches[i],
        )  # fmt: skip
        return WaveMatches(offsets, members), helped

    def alone(self, hop: Hop, tuples: Int64s, wanted: Int64s, limit: int, by_formula: bool) -> tuple[Matches, int]:
        """The matches of the tuples that are wanted by one hop, and how many entries were looked at.

        With its formula `by_formula`. Several threads may do so at once.
        """
        table = self._table(id(hop), (hop,))
        offsets, members, entries = probe_alone(
            blank_sheet(), self.directory.tables, self.directory.addresses.addresses, table.rows, tuples, limit,
            wanted, by_formula,
        )  # fmt: skip
        return Matches(offsets, members), entries

    def _table(self, number: int, hops: tuple[Hop, ...]) -> HopTable:
        """`number` is the identity of what is kept with the table, and so of nothing else."""
        table = self._tables.get(number)
        if table is None:
            table = self._tables[number] = HopTable.of(hops, self.directory.first)
        return table
