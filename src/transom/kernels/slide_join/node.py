"""Joins of windows that slide, emitted slide by slide, as one node, which the planner alone makes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from transom.core.schema import BIGINT, VARCHAR, Column, Schema
from transom.plan.algebra import AggregateCall, Node, OfStream, Stream, a_stream
from transom.plan.expression import Expression

MARKS: Final = (Column("attempt", BIGINT), Column("status", VARCHAR))
"""Before a row, where results may be put off: the number of its attempt, and in the last row how that ended."""


@dataclass(frozen=True)
class SlideInput:
    """A stream under [RANGE length SLIDE slide], of whose rows those that satisfy the predicate are joined.

    The predicate and the expressions, which make the columns of the join, are over the columns of the stream; the keys
    and what must hold of a row besides (`same`) are over the columns of the join.
    """

    stream: Stream
    length: int
    slide: int
    predicate: Expression | None
    expressions: tuple[Expression, ...]
    keys: tuple[Expression, ...]
    same: Expression | None = None


@dataclass(frozen=True)
class SlideTuples:
    """The tuples of rows of a join, one of each source, that agree on all keys and on the residual. The residual and
    the expressions, which make the results, are over the columns of the sources side by side. Rows are spread by the
    keys of the numbers in `meeting`."""

    sources: tuple[SlideInput, ...]
    residual: Expression | None
    expressions: tuple[Expression, ...]
    meeting: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.sources) >= 2
        assert all(len(source.keys) == len(self.sources[0].keys) > 0 for source in self.sources)


@dataclass(frozen=True)
class SlideGroups:
    """The results of a slide in groups, of which those count that satisfy the predicate. Keys and arguments are over
    the columns of the results, predicate and expressions over keys and calls. Without keys there is one group, also of
    no results."""

    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    predicate: Expression | None
    expressions: tuple[Expression, ...]

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return (*(key.type for key in self.keys), *(call.result_type for call in self.calls))


@dataclass(frozen=True)
class SlideJoin(Stream):
    """RSTREAM over the results of all `joins`; with `groups` over these. With a memory budget, in bytes, results may be
    put off, and the rows are emitted with `MARKS` before them. `put_off` is how long a step works on
    slides, in microseconds; None: until all are made, or, of rows that are stamped on arrival, the next one is due.
    """

    joins: tuple[SlideTuples, ...]
    names: tuple[str, ...]
    marked: bool
    put_off: int | None = None
    memory: int | None = field(default=None, repr=False)
    groups: SlideGroups | None = None

    def __post_init__(self) -> None:
        assert self.joins and self.names

    @property
    def sources(self) -> tuple[SlideInput, ...]:
        return tuple(source for join in self.joins for source in join.sources)

    @property
    def schema(self) -> Schema:
        expressions = self.joins[0].expressions if self.groups is None else self.groups.expressions
        row = tuple(Column(n, e.type) for n, e in zip(self.names, expressions, strict=True))
        return Schema((*MARKS, *row) if self.marked else row)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(source.stream for source in self.sources)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        assert len(inputs) == len(self.sources)
        given = iter(inputs)
        joins = [
            replace(join, sources=tuple(replace(source, stream=a_stream(next(given))) for source in join.sources))
            for join in self.joins
        ]
        return replace(self, joins=tuple(joins))


@dataclass(frozen=True)
class SlideMarks(OfStream, Stream):
    """The same rows, and of the markers of all places that make a slide one, behind its rows."""

    input: Stream

    @property
    def schema(self) -> Schema:
        return self.input.schema
