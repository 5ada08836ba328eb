"""The join of sorted runs: every tuple of rows, one of a sorted run of each input, that agree on the key and on the
residual.

One share of the hashes at a time. Sorted runs in memory are used where they lie; of those on disk the share is read,
and kept for as long as there is room for it in the work area.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.core.delta import Int64s
from transom.kernels import scalar
from transom.kernels.slide_join.probe import match
from transom.kernels.slide_join.sorted_run import Bundle, ProbeTable, SortedRun
from transom.kernels.slide_join.spec import ColumnReading, SlideSpec, TupleSpec

Unit = SortedRun | Bundle

MOST_TUPLES = 1 << 15
"""Tuples that are looked at together."""


@dataclass
class Shares:
    """Shares that were read from disk, as many as fit into `room` bytes; `seconds` is how long that took."""

    room: int
    tables: dict[tuple[int, ...], tuple[Unit, ProbeTable]] = field(default_factory=dict)
    bytes: int = 0
    seconds: float = 0.0

    def get(self, run: Unit, number: int, bits: int, using: Sequence[ProbeTable]) -> ProbeTable:
        if isinstance(run, SortedRun) and run.in_memory:
            return run.table
        cached = self.tables.get(run.key)
        if cached is not None:
            return cached[1]
        started = time.perf_counter()
        table = ProbeTable(run.read(number, bits))
        self.seconds += time.perf_counter() - started
        for other in list(self.tables):
            if self.bytes + table.bytes <= self.room:
                break
            if all(self.tables[other][1] is not used for used in using):
                self.bytes -= self.tables.pop(other)[1].bytes
        self.tables[run.key] = run, table
        self.bytes += table.bytes
        return table


@dataclass
class Term:
    """Tuples of a join that begin with a row of `starts`, of its input `first`, and go on with one of others[i] of each
    other input i."""

    join: TupleSpec
    first: int
    starts: list[Unit]
    others: dict[int, list[Unit]]

    @property
    def units(self) -> Iterator[Unit]:
        yield from self.starts
        for own in self.others.values():
            yield from own

    def bundled(self, by_death: bool, starts: bool = True) -> Term:
        """Sorted runs on disk are taken together, those of an input that end together, or all of an input.

        `starts`: those that are probed with, too; else their rows stay in one order, wherever the runs are.
        """
        others = {i: _bundled(own, by_death) for i, own in self.others.items()}
        return Term(self.join, self.first, _bundled(self.starts, by_death) if starts else self.starts, others)


def _bundled(units: list[Unit], by_death: bool) -> list[Unit]:
    together: dict[int, list[SortedRun]] = {}
    bundled: list[Unit] = []
    for unit in units:
        if isinstance(unit, SortedRun) and not unit.in_memory:
            together.setdefault(unit.te if by_death else 0, []).append(unit)
        else:
            bundled.append(unit)
    return bundled + [runs[0] if len(runs) == 1 else Bundle(runs) for runs in together.values()]


def terms_of(runs: Sequence[SortedRun], spec: SlideSpec, at: int, new: bool) -> list[Term]:
    """The tuples of all joins that are alive at an instant; `new`: only those that begin then.

    A new tuple has a first input, in their order, whose row is new: those before it are older, those behind are not
    looked at.
    """
    of_inputs: list[list[Unit]] = [[] for _ in spec.sides]
    for run in runs:
        if run.alive(at) and run.rows:
            of_inputs[run.source].append(run)
    terms: list[Term] = []
    for join, inputs in zip(spec.joins, spec.inputs, strict=True):
        alive = [of_inputs[number] for number in inputs]
        count = len(alive)
        if not new:
            terms.append(Term(join, 0, alive[0], {i: alive[i] for i in range(1, count)}))
            continue
        fresh = [[unit for unit in own if unit.ta == at] for own in alive]
        older = [[unit for unit in own if unit.ta < at] for own in alive]
        terms += [
            Term(join, i, fresh[i], {j: older[j] if j < i else alive[j] for j in range(count) if j != i})
            for i in range(count)
        ]
    return [term for term in terms if term.starts and all(term.others.values())]


class Combination:
    """The join of a term's sorted runs, in one share."""

    def __init__(self, names: tuple[str, ...], shares: Shares, chunk_bytes: int) -> None:
        self._names = names
        self._shares = shares
        self._chunk_bytes = chunk_bytes
        self.probes = 0

    def results(
        self, term: Term, number: int, bits: int, cut: int = 0, cuts: int = 1
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of the answer, each batch with the instant at which all of it ends; of a share, or of one of its cuts:
        every so many rows that are probed with."""
        if any(all(own.is_empty(number, bits) for own in runs) for runs in term.others.values()):
            return
        width = sum(max(own.bytes // own.rows for own in runs) for runs in (term.starts, *term.others.values()))
        limit = int(min(max(self._chunk_bytes // width, 16), MOST_TUPLES))
        for start in term.starts:
            if start.is_empty(number, bits):
                continue
            table = self._shares.get(start, number, bits, ())
            first, last = table.share(number, bits)
            wanted = np.arange(first + cut, last, cuts, dtype=np.int64)
            self.probes += len(wanted)
            for at in range(0, len(wanted), limit):
                rows = wanted[at : at + limit]
                bound = {term.first: (table, rows)}
                yield from self._visit(term, list(term.others), bound, start.te, number, bits, limit)

    def _visit(
        self,
        term: Term,
        others: list[int],
        bound: dict[int, tuple[ProbeTable, Int64s]],
        death: int,
        number: int,
        bits: int,
        limit: int,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Depth first, so that there is never more than a chunk of tuples at each input."""
        if not others:
            batch = self._emitted(term.join, bound)
            if len(batch):
                yield death, batch
            return
        target, *rest = others
        first_table, rows = bound[term.first]
        keyed = term.join.sides[0].keyed
        using = [table for table, _ in bound.values()]
        for run in term.others[target]:
            if run.is_empty(number, bits):
                continue
            table = self._shares.get(run, number, bits, using)
            row, at = 0, -1
            while row < len(rows):
                pairs, row, at = match(
                    rows, first_table.hashes, row, at, table.hashes, table.directory, table.shift, limit, keyed,
                    first_table.keys, table.keys,
                )  # fmt: skip
                if not pairs.shape[1]:
                    continue
                which = pairs[0]
                further = {i: (bound_table, indexes[which]) for i, (bound_table, indexes) in bound.items()}
                further[target] = table, pairs[1]
                yield from self._visit(term, rest, further, min(death, run.te), number, bits, limit)

    def _emitted(self, join: TupleSpec, bound: dict[int, tuple[ProbeTable, Int64s]]) -> pa.RecordBatch:
        if join.check is not None:
            (predicate,) = join.check.expressions
            kept = scalar.keep(predicate, _gathered(join.check, bound))
            if kept is not None:
                indexes = kept.to_numpy()
                bound = {i: (table, rows[indexes]) for i, (table, rows) in bound.items()}
        return scalar.project(join.emitted.expressions, self._names, _gathered(join.emitted, bound))


def _gathered(reading: ColumnReading, bound: dict[int, tuple[ProbeTable, Int64s]]) -> pa.RecordBatch:
    """The columns that are read, of the tuples."""
    arrays: list[pa.Array] = []
    for i, columns in enumerate(reading.columns):
        if columns:
            table, rows = bound[i]
            arrays += table.batch.select(list(columns)).take(pa.array(rows)).columns
    if not arrays:  # constants alone
        arrays = [pa.nulls(len(bound[0][1]))]
    return pa.RecordBatch.from_arrays(arrays, names=[str(n) for n in range(len(arrays))])
