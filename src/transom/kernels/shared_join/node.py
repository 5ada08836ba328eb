"""A join that several queries share (paper 2), which the planner alone makes.

`SharedJoin` has the pairs of the widest windows, `Narrow` is what one query sees of them. Columns of a shared join are
known by their place in the two streams side by side, so that a query can be told what to read however many columns the
join keeps for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from transom.core.schema import BIGINT, Column, Schema
from transom.plan.algebra import OfStream, OfTwo, Relation, Stream, WindowSpec

AGE: Final = "age"
NUMBER: Final = "number"

NUMBERS: Final = (-2, -1)
"""In the place of a column of the streams: the running numbers of the left and of the right rows."""


@dataclass(frozen=True)
class CountedWindow(OfStream, Relation):
    """The rows of a stream with their running number behind them, alive as long as any of several windows holds them.

    That is until `length` has passed and `rows` more rows have come, whichever is later.
    """

    input: Stream
    length: int
    rows: int

    @property
    def schema(self) -> Schema:
        return Schema((*self.input.schema.columns, Column(NUMBER, BIGINT)))


@dataclass(frozen=True)
class SharedJoin(OfTwo, Relation):
    """The pairs of two windows, and behind their columns how much younger the right row is than the left one.

    `kept` are the places, in the two streams side by side, of the columns that the inputs have.
    """

    left: Relation
    right: Relation
    kept: tuple[int, ...]

    @cached_property
    def indexes(self) -> tuple[int, ...]:
        """Of every column but the age, where it is in the two streams side by side."""
        indexes: list[int] = []
        for number, side in zip(NUMBERS, self.inputs, strict=True):
            counted = isinstance(side, CountedWindow)
            count = len(side.schema) - counted
            taken = len([index for index in indexes if index >= 0])
            indexes += [*self.kept[taken : taken + count], *[number] * counted]
        return tuple(indexes)

    @cached_property
    def side_columns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The indexes of the columns of the left side, and those of the right."""
        indexes, width = self.indexes, len(self.left.schema)
        return indexes[:width], indexes[width:]

    @property
    def schema(self) -> Schema:
        return Schema((*self.left.schema.columns, *self.right.schema.columns, Column(AGE, BIGINT)))


@dataclass(frozen=True)
class Narrow(Relation):
    """The join of two streams under a query's own windows, of rows from `begin` on.

    It does not say what it is made from, because that changes as queries come and go; `read` are the places of its
    columns in the two streams side by side.
    """

    columns: Schema
    read: tuple[int, ...]
    windows: tuple[WindowSpec, WindowSpec]
    begin: int | None = None

    def __post_init__(self) -> None:
        assert len(self.columns) == len(self.read) > 0

    @property
    def schema(self) -> Schema:
        return self.columns

    @property
    def counts(self) -> bool:
        """Whether a window counts rows."""
        return any(window.rows is not None for window in self.windows)
