"""The algebra on one page.

A node is a `Stream` (rows with a time) or a `Relation` (rows with a lifetime). Windows lead from streams to relations,
`ToStream` leads back, everything else works on relations and means at every instant what SQL says of the snapshots.
Nodes are frozen and check themselves when built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Literal as OneOf

import pyarrow as pa

from transom.core.excerpt import Excerpt
from transom.core.schema import BIGINT, BOOLEAN, TIMESTAMP, VARCHAR, Column, Schema, is_array
from transom.core.structural import Structural
from transom.core.time import format_duration
from transom.plan.expression import Expression, Literal


@dataclass(frozen=True)
class Node(Structural, ABC):
    """`excerpt` is what of a query says so, where it is known; what a rewrite makes has none."""

    excerpt: Excerpt | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return self

    def over(self, inputs: tuple[Node, ...]) -> Node:
        """The node over these inputs: itself, where they are those that it has."""
        same = all(new is old for new, old in zip(inputs, self.inputs, strict=True))
        return self if same else self.with_inputs(inputs)


class Stream(Node):
    """Rows <v, t> in time order."""


class Relation(Node):
    """Rows <v, ta, te>, alive on [ta, te)."""


def a_stream(node: Node) -> Stream:
    assert isinstance(node, Stream), node
    return node


def a_relation(node: Node) -> Relation:
    assert isinstance(node, Relation), node
    return node


@dataclass(frozen=True)
class OfStream(Node):
    """A node with one input, a stream."""

    input: Stream

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, input=a_stream(inputs[0]))


@dataclass(frozen=True)
class OfRelation(Node):
    """A node with one input, a relation."""

    input: Relation

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, input=a_relation(inputs[0]))


@dataclass(frozen=True)
class OfTwo(Node):
    """A node with two inputs, both of them relations."""

    left: Relation
    right: Relation

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, left=a_relation(inputs[0]), right=a_relation(inputs[1]))


@dataclass(frozen=True)
class OfSeveral(Node):
    """A node with two relations or more as its inputs."""

    relations: tuple[Relation, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.relations

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, relations=tuple(a_relation(node) for node in inputs))


# --- streams ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamScan(Stream):
    """A declared stream by its name in the catalogue; `columns` are its columns, the time column among them."""

    name: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns


@dataclass(frozen=True)
class StreamFilter(OfStream, Stream):
    """A selection that a rewrite has moved below a window; queries are not bound to it directly."""

    input: Stream
    predicate: Expression

    def __post_init__(self) -> None:
        assert self.predicate.type == BOOLEAN

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class StreamProject(OfStream, Stream):
    """A projection below a window, made by a rewrite to carry fewer columns."""

    input: Stream
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(Column(n, e.type) for n, e in zip(self.names, self.expressions, strict=True)))


class Change(Enum):
    """The three ways from a relation back to a stream."""

    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"


@dataclass(frozen=True)
class ToStream(OfRelation, Stream):
    input: Relation
    change: Change

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class Deduplicate(OfStream, Stream):
    """The rows of which none of their key has passed within `length` before them; repeats do not prolong it."""

    input: Stream
    partition: tuple[int, ...]
    length: int

    def __post_init__(self) -> None:
        assert self.partition and self.length > 0

    @property
    def schema(self) -> Schema:
        return self.input.schema


# --- windows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowSpec:
    """Which rows of a stream are alive. Exactly the table of semantics.md; all durations in microseconds.

    Now: now=True. Unbounded: nothing set. `rows` and `range` may both be set (whichever ends first).
    `slide` is a duration with `range`, a row count with `rows`. `session` is the gap that ends a session.
    """

    range: int | None = None
    rows: int | None = None
    partition: tuple[int, ...] | None = None
    slide: int | None = None
    now: bool = False
    session: int | None = None

    @property
    def unbounded(self) -> bool:
        return not self.now and self.range is None and self.rows is None and self.session is None

    def __str__(self) -> str:
        if self.now:
            return "[NOW]"
        if self.unbounded:
            return "[RANGE UNBOUNDED]"
        words = []
        if self.partition:
            words.append("PARTITION BY " + ", ".join(f"#{i}" for i in self.partition))
        if self.rows is not None:
            words.append(f"ROWS {self.rows}")
        if self.session is not None:
            words.append(f"SESSION {format_duration(self.session)}")
        if self.range is not None:
            words.append(f"RANGE {format_duration(self.range)}")
        if self.slide is not None:
            words.append(f"SLIDE {self.slide if self.range is None else format_duration(self.slide)}")
        return "[" + " ".join(words) + "]"


@dataclass(frozen=True)
class Window(OfStream, Relation):
    input: Stream
    spec: WindowSpec

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class WindowTableSpec:
    """Windows that are named in the rows: those of TUMBLE and HOP, `[k slide + offset, k slide + offset + size)`.

    Without a slide it is SESSION: rows of a partition, each at most `size` after the one before.
    """

    size: int
    slide: int | None = None
    offset: int = 0
    partition: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        assert self.size > 0 and (self.slide is None) == (self.partition is not None)
        assert self.slide is None or (self.slide > 0 and 0 <= self.offset < self.slide)

    def __str__(self) -> str:
        if self.slide is None:
            keys = ", ".join(f"#{i}" for i in self.partition or ())
            return f"SESSION {format_duration(self.size)}" + (f" PARTITION BY {keys}" if keys else "")
        offset = f" OFFSET {format_duration(self.offset)}" if self.offset else ""
        if self.slide == self.size:
            return f"TUMBLE {format_duration(self.size)}{offset}"
        return f"HOP {format_duration(self.slide)} SIZE {format_duration(self.size)}{offset}"


WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
"""What a window table adds to the columns of its stream; `window_time` is the instant at which the rows enter."""


@dataclass(frozen=True)
class WindowTable(OfStream, Relation):
    """Each row of a stream once for every window that holds it; the rows of a window enter together when it is over:
    at `window_end` - 1 tick, those of a session at `window_end`. They never leave."""

    input: Stream
    spec: WindowTableSpec

    @cached_property
    def schema(self) -> Schema:
        return Schema((*self.input.schema.columns, *(Column(name, TIMESTAMP) for name in WINDOW_COLUMNS)))


# --- relations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableScan(Relation):
    """A declared table, static or changing, by its name in the catalogue."""

    name: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns


@dataclass(frozen=True)
class Filter(OfRelation, Relation):
    input: Relation
    predicate: Expression

    def __post_init__(self) -> None:
        assert self.predicate.type == BOOLEAN

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class Project(OfRelation, Relation):
    input: Relation
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.expressions) == len(self.names) > 0

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(Column(n, e.type) for n, e in zip(self.names, self.expressions, strict=True)))


@dataclass(frozen=True)
class Unnest(OfRelation, Relation):
    """Each row once for every element of its `array`, which stands behind the columns of the row.

    `names` are that of the element and, if there are two, that of its number, from 1 on. `outer`: a row whose array has
    no element, or is NULL, is there once, with NULL.
    """

    input: Relation
    array: Expression
    names: tuple[str, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        assert is_array(self.array.type) and 1 <= len(self.names) <= 2

    @cached_property
    def schema(self) -> Schema:
        types = (self.array.type.value_type, BIGINT)
        added = tuple(Column(name, type_) for name, type_ in zip(self.names, types, strict=False))
        return Schema(self.input.schema.columns + added)


@dataclass(frozen=True)
class Join(OfSeveral, Relation):
    """Inner join of two or more relations; the columns of all of them side by side; no predicate is a cross join."""

    relations: tuple[Relation, ...]
    predicate: Expression | None = None

    def __post_init__(self) -> None:
        assert len(self.relations) >= 2
        assert self.predicate is None or self.predicate.type == BOOLEAN

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(column for relation in self.relations for column in relation.schema))


@dataclass(frozen=True)
class OuterJoin(OfTwo, Relation):
    """The pairs of an inner join; and of the named side, or of both, each row with NULLs while it has no partner.

    `stays`: what is so when a row ends stays so (`planner/time_bounds.py`).
    """

    left: Relation
    right: Relation
    side: OneOf["left", "right", "full"]
    predicate: Expression
    stays: bool = False

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.left.schema.columns + self.right.schema.columns)


@dataclass(frozen=True)
class Lateral(OfTwo, Relation):
    """Each row of the left beside those that the right has for it: a query that reads that row as the one around it.

    `outer`: beside NULLs while there are none. A rewrite makes a join of it (`rewrites/join_sub_queries.py`).
    """

    left: Relation
    right: Relation
    predicate: Expression | None
    outer: bool

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.left.schema.columns + self.right.schema.columns)


AggregateName = OneOf[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "var_pop",
    "var_samp",
    "covar_pop",
    "covar_samp",
    "bit_and",
    "bit_or",
    "bit_xor",
    "first",
    "quantile_cont",
    "quantile_disc",
    "string_agg",
    "array_agg",
]
"""The aggregates that are computed; plan/aggregate_functions.py makes all others of them."""


@dataclass(frozen=True)
class OrderedBy(Structural):
    """One value that the rows of an aggregate are ordered by. NULLs come last unless told, whichever the direction."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return f"{self.expression}{' DESC' * self.descending}{' NULLS FIRST' * self.nulls_first}"


@dataclass(frozen=True)
class SemiJoin(OfTwo, Relation):
    """The rows of the left with a partner on the right; EXISTS and IN become one. No predicate: any row will do.

    `stays`: what is so when a row ends stays so (`planner/time_bounds.py`).
    """

    left: Relation
    right: Relation
    predicate: Expression | None
    stays: bool = False

    def __post_init__(self) -> None:
        assert self.predicate is None or self.predicate.type == BOOLEAN

    @property
    def schema(self) -> Schema:
        return self.left.schema


@dataclass(frozen=True)
class AntiJoin(SemiJoin):
    """The rows of the left that have none: NOT EXISTS and, with more to ask, NOT IN."""


@dataclass(frozen=True)
class AggregateCall(Structural):
    """COUNT(*) has no argument; `result_type` follows plan/aggregate_functions.py.

    `first` is the argument, NULL or not, of the first row in the `order` that meets the `condition`; the order leaves
    no choice but among equal values. The others leave NULL out, and quantiles are at the `fraction` of the values.
    `string_agg` is all texts in the `order`, with the `separator` between them; `array_agg` the array of all values,
    NULL or not. A covariance has an `other` argument, and both are NULL where one is.
    """

    function: AggregateName
    argument: Expression | None
    result_type: pa.DataType
    distinct: bool = False
    order: tuple[OrderedBy, ...] = ()
    condition: Expression | None = None
    fraction: Fraction | None = None
    separator: str = ""
    other: Expression | None = None
    excerpt: Excerpt | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it computes of a row."""
        expressions = (self.argument, self.other, *(each.expression for each in self.order), self.condition)
        return tuple(each for each in expressions if each is not None)

    def over(self, change: Callable[[Expression], Expression]) -> AggregateCall:
        """The same call of changed expressions."""
        return replace(
            self,
            argument=None if self.argument is None else change(self.argument),
            order=tuple(replace(each, expression=change(each.expression)) for each in self.order),
            condition=None if self.condition is None else change(self.condition),
            other=None if self.other is None else change(self.other),
        )

    def __str__(self) -> str:
        inner = "*" if self.argument is None else str(self.argument)
        parts = f"{'DISTINCT ' * self.distinct}{inner}"
        if self.other is not None:
            parts += f", {self.other}"
        if self.fraction is not None:
            parts += f", {float(self.fraction)}"
        if self.function == "string_agg":
            parts += f", {Literal(self.separator, VARCHAR)}"
        if self.order:
            parts += f" ORDER BY {', '.join(map(str, self.order))}"
        return f"{self.function}({parts})" + ("" if self.condition is None else f" FILTER (WHERE {self.condition})")


@dataclass(frozen=True)
class Aggregate(OfRelation, Relation):
    """Columns: the keys, then the calls. Not `grouped`: one row always, over nothing as well (and no keys)."""

    input: Relation
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    grouped: bool

    def __post_init__(self) -> None:
        assert len(self.names) == len(self.keys) + len(self.calls)
        assert self.grouped == bool(self.keys)

    @cached_property
    def schema(self) -> Schema:
        types = [key.type for key in self.keys] + [call.result_type for call in self.calls]
        return Schema(tuple(Column(n, t) for n, t in zip(self.names, types, strict=True)))


@dataclass(frozen=True)
class Distinct(OfRelation, Relation):
    input: Relation

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT, EXCEPT; both inputs have the same types (the binder casts), names come from the left."""

    kind: OneOf["union", "intersect", "except"]
    all: bool
    left: Relation
    right: Relation

    def __post_init__(self) -> None:
        assert self.left.schema.types == self.right.schema.types

    @property
    def schema(self) -> Schema:
        return self.left.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, left=a_relation(inputs[0]), right=a_relation(inputs[1]))


@dataclass(frozen=True)
class KeptForever(OfRelation, Relation):
    """Every row of the input from its beginning on, whenever it ends there; the planner puts it in."""

    input: Relation

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class SortKey:
    """A column by which rows are ordered. NULLs come last unless told, whichever the direction."""

    column: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class TopN(OfRelation, Relation):
    """The rows whose number is within `least` and `most` (None: all from `least` on), within each partition.

    Rows are numbered in the order of `order`; what that leaves open, the columns of the input from left to right
    decide, ascending (-0.0 before 0.0), so that rows without a place of their own are equal. ROW_NUMBER counts rows;
    RANK gives rows that `order` does not tell apart one number, that of the first of them, and DENSE_RANK counts such
    groups. Columns: those of the input and, if it has a name, the number.
    """

    input: Relation
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    function: OneOf["row_number", "rank", "dense_rank"] = "row_number"
    least: int = 1
    most: int | None = None
    number: str | None = None

    def __post_init__(self) -> None:
        assert self.least >= 1
        assert self.most is None or self.most >= 0
        assert all(0 <= i < len(self.input.schema) for i in (*self.partition, *(key.column for key in self.order)))

    @cached_property
    def schema(self) -> Schema:
        if self.number is None:
            return self.input.schema
        return Schema((*self.input.schema.columns, Column(self.number, BIGINT)))


@dataclass(frozen=True)
class OverFrame(Structural):
    """Which rows of its partition a row sees: those at places from `start` to `end` away from its own, in an order.

    A place is the number of the row; among `peers` it is that of the group of rows which the order does not tell apart.
    None has no bound. With a `distance` it is not places that are counted: the bounds are how far the one value of the
    order is away, as a number or as a time in microseconds.
    """

    start: int | None
    end: int | None
    peers: bool = False
    distance: OneOf["number", "time"] | None = None

    def __str__(self) -> str:
        unit = "RANGE" if self.distance is not None else "GROUPS" if self.peers else "ROWS"
        return f"{unit} BETWEEN {self._bound(self.start, 'PRECEDING')} AND {self._bound(self.end, 'FOLLOWING')}"

    def _bound(self, far: int | None, unbounded: str) -> str:
        if not far:
            return f"UNBOUNDED {unbounded}" if far is None else "CURRENT ROW"
        number = f"INTERVAL '{abs(far)} microseconds'" if self.distance == "time" else str(abs(far))
        return f"{number} {'PRECEDING' if far < 0 else 'FOLLOWING'}"


@dataclass(frozen=True)
class Over(OfRelation, Relation):
    """Each row with aggregates of the rows that its frame holds; without a frame, of all rows of its partition.

    The order is that of `TopN`: what it leaves open, the columns of the input decide. A `first` without an order of its
    own is the first of the frame. A rewrite makes numbers, joins and aggregates of it. Columns: those of the input,
    then the calls.
    """

    input: Relation
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: OverFrame | None
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.calls) == len(self.names) > 0

    @cached_property
    def schema(self) -> Schema:
        made = (Column(name, call.result_type) for name, call in zip(self.names, self.calls, strict=True))
        return Schema((*self.input.schema.columns, *made))
