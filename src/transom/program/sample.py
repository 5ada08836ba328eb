"""Some rows of an input of a join as the join would see them: filtered, projected, and with the lifetimes that a window
gives them. Only sources that can be read again are looked at, and only their first rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np
import pyarrow as pa

from transom.connectors.connector import Source
from transom.connectors.open import open_source
from transom.connectors.source import START
from transom.core.delta import Int64s
from transom.core.location import Within
from transom.core.time import FOREVER, SECOND
from transom.kernels import scalar
from transom.kernels.nested import held_rows
from transom.plan.algebra import (
    Filter,
    Node,
    Project,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    Window,
    WindowSpec,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.expression import Expression
from transom.planner.statistics import RATE, population

ROWS: Final = 2048
"""So many of the first rows of an input are looked at."""

Peek = Callable[[StreamDefinition | TableDefinition], Source | None]
"""Opens a source to look at its first rows; None where that would take them from whoever reads it."""


@dataclass(frozen=True)
class Sample:
    """Rows with their lifetimes, in the order of their times. `rate` is how many come in a second, None if that is not
    known, and `alive` how many are there at once."""

    rows: pa.RecordBatch
    ta: Int64s
    te: Int64s
    rate: float | None
    alive: float = inf
    partitions: float = 1.0

    def __len__(self) -> int:
        return len(self.ta)

    def only(self, predicate: Expression) -> Sample:
        kept = scalar.keep(predicate, self.rows)
        if kept is None:
            return self
        at = kept.to_numpy().astype(np.int64)
        share = len(at) / max(len(self), 1)
        rate = None if self.rate is None else self.rate * share
        return replace(
            self, rows=self.rows.take(kept), ta=self.ta[at], te=self.te[at], rate=rate, alive=self.alive * share
        )

    def projected(self, expressions: tuple[Expression, ...], names: tuple[str, ...]) -> Sample:
        return replace(self, rows=scalar.project(expressions, names, self.rows))

    def in_window(self, spec: WindowSpec, tick: int, usual: float) -> Sample:
        """The sample with the ends that the window gives; a slide is taken for the range that it comes to."""
        rate = usual if self.rate is None else self.rate
        te = np.full(len(self), FOREVER)
        partitions = 1.0
        if spec.session is not None:
            te = self.ta + spec.session
        if spec.now:
            te = self.ta + tick
        if spec.range is not None:
            te = self.ta + max(spec.range, spec.slide or 0)
        if spec.rows is not None:
            codes = _codes(self.rows, spec.partition)
            partitions = float(len(np.unique(codes)))
            te = np.minimum(te, _ends(self.ta, codes, spec.rows))
        alive = population(spec, rate)
        if spec.partition is not None and spec.rows is not None:
            alive = min(alive, partitions * spec.rows)
        if spec.now:
            alive = max(1.0, len(self) / max(len(np.unique(self.ta)), 1))
        return replace(self, te=te, alive=alive)


class Samples:
    """The samples of the relations of a query, each source looked at once."""

    def __init__(self, catalogue: Catalogue, peek: Peek, tick: int) -> None:
        self._catalogue = catalogue
        self._peek = peek
        self._tick = tick
        self._read: dict[str, Sample | None] = {}

    def of(self, node: Node, usual: float = RATE) -> Sample | None:
        """The sample of an input; rows of a stream without times of their own are taken to come at the usual rate."""
        match node:
            case StreamScan() | TableScan():
                return self._scan(node, usual)
            case StreamFilter() | Filter():
                below = self.of(node.input, usual)
                return None if below is None else below.only(node.predicate)
            case StreamProject() | Project():
                below = self.of(node.input, usual)
                return None if below is None else below.projected(node.expressions, node.names)
            case Window():
                below = self.of(node.input, usual)
                return None if below is None else below.in_window(node.spec, self._tick, usual)
            case _:
                return None

    def _scan(self, node: StreamScan | TableScan, usual: float) -> Sample | None:
        name = node.name.lower()
        if name not in self._read:
            self._read[name] = self._sampled(node, usual)
        return self._read[name]

    def _sampled(self, node: StreamScan | TableScan, usual: float) -> Sample | None:
        definition = self._catalogue.relations[node.name.lower()]
        assert isinstance(definition, StreamDefinition | TableDefinition)
        changing = isinstance(definition, TableDefinition) and definition.time is not None
        source = None if changing else self._peek(definition)
        if source is None:
            return None
        rows = held_rows(source.read(START, ROWS).rows)
        if not len(rows):
            return None
        wanted = [rows.schema.names.index(column) for column in node.schema.names]
        chosen = pa.RecordBatch.from_arrays([rows.column(at) for at in wanted], node.schema.names)
        if isinstance(definition, TableDefinition):
            return Sample(chosen, np.full(len(rows), -FOREVER), np.full(len(rows), FOREVER), 0.0, float(len(rows)))
        declared = definition.rate
        if definition.arrival_time:
            times = (np.arange(len(rows)) * SECOND / (declared or usual)).astype(np.int64)
            return Sample(chosen, times, times, declared)
        times = rows.column(rows.schema.names.index(definition.time.column)).cast(pa.int64()).to_numpy()
        order = np.argsort(times, kind="stable")
        times = times[order]
        span = float(times[-1] - times[0]) / SECOND
        sampled = (len(times) - 1) / span if span > 0 else None
        return Sample(chosen.take(pa.array(order)), times, times, declared or sampled)


def peeked(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Source | None:
    """A declared source whose rows stay where they are when somebody looks at them."""
    source = open_source(definition, within)
    return source if source.sampled else None


def _codes(rows: pa.RecordBatch, columns: tuple[int, ...] | None) -> Int64s:
    codes = np.zeros(len(rows), np.int64)
    for at in columns or ():
        values = rows.column(at).dictionary_encode(null_encoding="encode")
        codes = codes * max(len(values.dictionary), 1) + values.indices.to_numpy()
    return codes


def _ends(times: Int64s, codes: Int64s, count: int) -> Int64s:
    """The ends of rows that leave when so many others of the same code have come."""
    ends = np.full(len(times), FOREVER)
    order = np.lexsort((np.arange(len(times)), codes))
    first, later = order[:-count], order[count:]
    same = codes[first] == codes[later]
    ends[first[same]] = times[later[same]]
    return ends
