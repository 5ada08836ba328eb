"""The names that an expression can see: the columns of the inputs in FROM, and those of the queries around."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from functools import cached_property

from transom.plan.expression import ColumnRef, Expression, OuterColumn, columns_of, remap, transform


@dataclass(frozen=True)
class ScopeColumn:
    """`value` is what `input.name` means, `bare` what the name alone (and `*`) means.

    `bare` is None for the right one of two columns that USING made one. A column that is not `shown` was declared
    INVISIBLE: it has to be named.
    """

    name: str
    value: Expression
    bare: Expression | None
    shown: bool = True


@dataclass(frozen=True)
class Input:
    """One input of FROM. A query without an alias has none, and its columns go by their names alone.

    `time` is the time of its rows, where they are those of one stream.
    """

    alias: str | None
    columns: tuple[ScopeColumn, ...]
    time: ColumnRef | None = None

    def moved(self, by: int) -> Input:
        """The same input in a row in which its columns stand further to the right."""
        time = None if self.time is None else replace(self.time, index=self.time.index + by)
        return replace(self, columns=tuple(_moved(column, by) for column in self.columns), time=time)


def _moved(column: ScopeColumn, by: int) -> ScopeColumn:
    bare = None if column.bare is None else move(column.bare, by)
    return replace(column, value=move(column.value, by), bare=bare)


def move(expression: Expression, by: int) -> Expression:
    """The expression over a row in which its columns stand `by` further to the right."""
    return remap(expression, {index: index + by for index in columns_of(expression)}) if by else expression


@dataclass(frozen=True)
class Scope:
    inputs: tuple[Input, ...]
    outer: Scope | None = None

    def find(self, name: str, qualifier: str | None) -> list[Expression]:
        """All that the name may mean here, without the queries around."""
        low, wanted = name.lower(), qualifier.lower() if qualifier is not None else None
        values: list[Expression] = []
        for item, column in self._by_name.get(low, ()):
            if wanted is not None and (item.alias is None or item.alias.lower() != wanted):
                continue
            value = column.bare if wanted is None else column.value
            if value is not None:
                values.append(value)
        return values

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[Input, ScopeColumn]]]:
        by_name: dict[str, list[tuple[Input, ScopeColumn]]] = {}
        for item in self.inputs:
            for column in item.columns:
                by_name.setdefault(column.name.lower(), []).append((item, column))
        return by_name

    def find_around(self, name: str, qualifier: str | None) -> list[Expression]:
        """The same in the nearest query around that knows the name."""
        around, depth = self.outer, 1
        while around is not None:
            if values := around.find(name, qualifier):
                return [_from_outside(expression, depth) for expression in values]
            around, depth = around.outer, depth + 1
        return []

    def has_input(self, alias: str) -> bool:
        inner = any(item.alias is not None and item.alias.lower() == alias.lower() for item in self.inputs)
        return inner or (self.outer is not None and self.outer.has_input(alias))

    def remedy(self, name: str, qualifier: str | None) -> str:
        """What to write instead of a name that is not known here."""
        if close := self.candidates(name, qualifier):
            return f"did you mean {' or '.join(close)}?"
        names = dict.fromkeys(column.name for item in self.inputs for column in item.columns)
        return f"the columns are {', '.join(list(names)[:8])}{', ..' if len(names) > 8 else ''}"

    def candidates(self, name: str, qualifier: str | None) -> list[str]:
        """Names that were perhaps meant, best first."""
        names: dict[str, None] = {}
        exact: list[str] = []
        for item in self.inputs:
            for column in item.columns:
                full = f"{item.alias}.{column.name}" if item.alias is not None else column.name
                written = full if qualifier is not None else column.name
                names.setdefault(written)
                if column.name.lower() == name.lower():
                    exact.append(full)
        wanted_name = f"{qualifier}.{name}" if qualifier is not None else name
        by_low = {written.lower(): written for written in names}
        close = [by_low[low] for low in difflib.get_close_matches(wanted_name.lower(), by_low, n=3, cutoff=0.5)]
        return list(dict.fromkeys([*exact, *close]))

    def aliases(self) -> list[str]:
        return [item.alias for item in self.inputs if item.alias is not None]


def _from_outside(expression: Expression, depth: int) -> Expression:
    def lift(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return OuterColumn(node.index, node.type, node.name, depth)
        return node

    return transform(expression, lift)


def columns_of_row(names: list[str], values: list[Expression], hidden: frozenset[str]) -> tuple[ScopeColumn, ...]:
    """Scope columns of one input; `hidden` are the names that `*` leaves out."""
    pairs = zip(names, values, strict=True)
    return tuple(ScopeColumn(name, value, value, name not in hidden) for name, value in pairs)
