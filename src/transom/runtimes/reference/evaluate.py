"""The one law, executed: Q(R1, .., Rn)(t) = Q_sql(R1(t), .., Rn(t)) at every instant at which an input changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transom.core.time import FOREVER, floor_to_tick
from transom.plan.algebra import (
    Change,
    Deduplicate,
    Node,
    Relation,
    Stream,
    StreamScan,
    TableScan,
    ToStream,
    Window,
    WindowTable,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.no_from import ONE_ROW
from transom.runtimes.reference.admission import (
    AdmittedStream,
    AdmittedTable,
    Lifetime,
    TimedRow,
    TimeSettings,
    admit,
    admit_table,
    lacks,
    position,
)
from transom.runtimes.reference.database import answers
from transom.runtimes.reference.history import History, RelationHistory, StreamHistory
from transom.runtimes.reference.scans import scans
from transom.runtimes.reference.sql import Leaf, snapshot_query
from transom.runtimes.reference.to_stream import slides_of, stream_of
from transom.runtimes.reference.window import in_windows, lifetimes, without_repeats

Inputs = Mapping[str, Sequence[tuple[Any, ...]]]


def evaluate(query: Node, catalogue: Catalogue, inputs: Inputs) -> History:
    """The whole answer of a query over bounded inputs.

    `inputs[name]` are the rows of that stream or table in source order, values in the order of its declared columns;
    the name in lower case, timestamps as naive datetimes in UTC. An input that is missing is empty.
    """
    taken = _take_in(query, catalogue, inputs)
    ledger: list[tuple[str, AdmittedStream | AdmittedTable]] = [*taken.streams.items(), *taken.tables.items()]
    late = {name: admitted.late for name, admitted in ledger}
    rejected = {name: admitted.rejected for name, admitted in ledger}
    origin = taken.origin
    evaluation = None if origin is None else _Evaluation(taken, origin)
    if isinstance(query, Stream):
        rows = evaluation.stream(query) if evaluation else []
        return StreamHistory.of([(row.t, row.values) for row in rows], late, rejected)
    assert isinstance(query, Relation)
    history = evaluation.relation(query) if evaluation else RelationHistory()
    return RelationHistory(history.points, late=late, rejected=rejected)


@dataclass(frozen=True)
class _Taken:
    """What a query reads, admitted; `tables` are the changing ones. Names are in lower case."""

    clock: TimeSettings
    definitions: dict[str, StreamDefinition | TableDefinition] = field(default_factory=dict)
    streams: dict[str, AdmittedStream] = field(default_factory=dict)
    tables: dict[str, AdmittedTable] = field(default_factory=dict)
    static: dict[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def instants(self) -> list[int]:
        """The times of all admitted rows."""
        in_streams = [row.t for stream in self.streams.values() for row in stream.rows]
        return in_streams + [t for table in self.tables.values() for t in table.instants]

    @property
    def origin(self) -> int | None:
        """Where time begins; None when it never does."""
        if self.clock.origin is not None:
            return floor_to_tick(self.clock.origin, self.clock.tick)
        if not self.streams and not self.tables:
            return 0
        return min(self.instants, default=None)


def _take_in(query: Node, catalogue: Catalogue, inputs: Inputs) -> _Taken:
    taken = _Taken(TimeSettings(catalogue.options.get("tick", 1), catalogue.options.get("origin")))
    for scan in scans(query):
        name = scan.name.lower()
        definition = catalogue.relations[name]
        rows = inputs.get(name, [(1,)] if name == ONE_ROW else ())
        match definition:
            case StreamDefinition():
                taken.streams[name] = admit(rows, definition, taken.clock)
            case TableDefinition(time=None):
                taken.static[name] = [row for row in rows if not lacks(row, definition)]
            case TableDefinition():
                taken.tables[name] = admit_table(rows, definition, taken.clock)
            case _:
                raise TypeError(f"{scan.name} is neither a stream nor a table")
        taken.definitions[name] = definition
    return taken


@dataclass(frozen=True)
class _Evaluation:
    """One query, bottom-up: streams as lists of rows, relations as histories."""

    taken: _Taken
    origin: int

    def stream(self, node: Stream) -> list[TimedRow]:
        match node:
            case StreamScan():
                where = self._positions(node)
                rows = self.taken.streams[node.name.lower()].rows
                return [TimedRow(tuple(row.values[i] for i in where), row.t) for row in rows]
            case ToStream():
                return self._to_stream(node)
            case Deduplicate():
                return without_repeats(self.stream(node.input), node.partition, node.length)
        raise TypeError(f"a stream without a meaning: {node!r}")

    def relation(self, node: Relation) -> RelationHistory:
        query = snapshot_query(node)
        leaves = [self._leaf(leaf) for leaf in query.leaves]
        instants = sorted({self.origin, *_boundaries(leaves)})
        return RelationHistory.of(zip(instants, answers(query, leaves, instants), strict=True))

    def _leaf(self, leaf: Leaf) -> list[Lifetime]:
        if isinstance(leaf, Window):
            return lifetimes(self.stream(leaf.input), leaf.spec, self.taken.clock.tick)
        if isinstance(leaf, WindowTable):
            return in_windows(self.stream(leaf.input), leaf.spec, self.taken.clock.tick)
        name = leaf.name.lower()
        if name in self.taken.static:
            lives = [Lifetime(tuple(row), self.origin, FOREVER) for row in self.taken.static[name]]
        else:
            lives = list(self.taken.tables[name].lifetimes)
        where = self._positions(leaf)
        return [Lifetime(tuple(life.values[i] for i in where), life.ta, life.te) for life in lives]

    def _positions(self, scan: StreamScan | TableScan) -> list[int]:
        """Where the columns of a scan are among the declared ones."""
        definition = self.taken.definitions[scan.name.lower()]
        return [position(definition, column.name) for column in scan.columns]

    def _to_stream(self, node: ToStream) -> list[TimedRow]:
        relation = self.relation(node.input)
        leaves = snapshot_query(node.input).leaves
        slides = self._slides(leaves) if node.change is Change.RSTREAM else []
        if not slides:
            return stream_of(relation, node.change)
        ends = _boundaries([self._leaf(leaf) for leaf in leaves])
        return slides_of(relation, slides, max([*ends, *self.taken.instants], default=self.origin))

    def _slides(self, leaves: Sequence[Leaf]) -> list[int]:
        """The slides of a relation whose every changing leaf slides by time; nothing when one of them does not."""
        changing = [
            leaf for leaf in leaves if not isinstance(leaf, TableScan) or leaf.name.lower() not in self.taken.static
        ]
        slides = [leaf.spec.slide if isinstance(leaf, Window) and leaf.spec.range else None for leaf in changing]
        return [slide for slide in slides if slide is not None] if None not in slides else []


def _boundaries(leaves: Sequence[Sequence[Lifetime]]) -> set[int]:
    """The finite instants at which a lifetime begins or ends."""
    ends = {end for leaf in leaves for life in leaf for end in (life.ta, life.te) if end is not None}
    return {end for end in ends if end < FOREVER}
