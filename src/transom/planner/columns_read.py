"""What a query reads of a source: the columns, and the selections that all rows have to pass.

The rewrites have narrowed the plan already (`prune_columns`, `push_filters`): right above a scan there are selections
and projections, and whatever else is there reads whole rows. What remains is to look.
"""

from __future__ import annotations

from collections.abc import Iterable

from transom.kernels.operator import Operator
from transom.plan.algebra import (
    Aggregate,
    Filter,
    Project,
    StreamFilter,
    StreamProject,
    StreamScan,
    TableScan,
    Unnest,
)
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.plan.expression import Expression, columns_of


def columns_read(root: Operator, stream: str) -> list[int]:
    """Positions among the columns of a stream (or a static table) that some operator of the plan reads, ascending.

    The time column is among them only if the query reads it: that it is needed for the time of a row is another
    matter. So is a row that goes to a dead-letter table, which is kept whole; and a changing table, which is told apart
    by its key or by whole rows, may need more columns than a query reads.
    """
    scan = _scan(root, stream)
    return [] if scan is None else sorted(_read(root, scan))


def columns_wanted(
    root: Operator, definition: StreamDefinition | TableDefinition, catalogue: Catalogue
) -> list[str] | None:
    """The names of the columns of a source that a query reads; None where whole rows are wanted."""
    if isinstance(definition, TableDefinition) or shown_whole(definition, catalogue):
        return None
    return [definition.columns[index].name for index in columns_read(root, definition.name)]


def shown_whole(definition: StreamDefinition | TableDefinition, catalogue: Catalogue) -> bool:
    """Whether a row that the source could read may be rejected and shown: late, ahead of the clock, too early, or
    without a value."""
    too_early = catalogue.options.get("origin") is not None
    return definition.late == "dead_letter" or definition.ahead is not None or too_early or bool(definition.not_null)


def selections(root: Operator, stream: str) -> tuple[Expression, ...]:
    """The predicates of which a row of the stream passes at least one, or nobody looks at it; () when all are read.

    Each of them is that of one reader; a reader without a predicate reads all.
    """
    scan = _scan(root, stream)
    predicates: list[Expression] = []
    for reader in [] if scan is None else _readers(root, scan):
        if not isinstance(reader.node, Filter | StreamFilter):
            return ()
        predicates.append(reader.node.predicate)
    return () if root is scan else tuple(predicates)


def _scan(root: Operator, name: str) -> Operator | None:
    """The scan of a source: there is one, as equal operators are the same."""
    for operator in root.walk():
        if isinstance(operator.node, StreamScan | TableScan) and operator.node.name.lower() == name.lower():
            return operator
    return None


def _readers(root: Operator, operator: Operator) -> list[Operator]:
    return [other for other in root.walk() if any(child is operator for child in other.inputs)]


def _read(root: Operator, operator: Operator) -> frozenset[int]:
    """Positions among the operator's columns that are read by the operators above it, or by the query's reader."""
    everything = frozenset(range(len(operator.schema)))
    if operator is root:
        return everything
    indexes: frozenset[int] = frozenset()
    for reader in _readers(root, operator):
        node = reader.node
        if isinstance(node, Filter | StreamFilter):
            indexes |= columns_of(node.predicate) | _read(root, reader)
        elif isinstance(node, Project | StreamProject):
            indexes |= _used(node.expressions)
        elif isinstance(node, Unnest):
            width = len(operator.schema)
            indexes |= columns_of(node.array) | frozenset(i for i in _read(root, reader) if i < width)
        elif isinstance(node, Aggregate):
            indexes |= _used(node.keys) | _used(each for call in node.calls for each in call.expressions)
        else:
            return everything
    return indexes


def _used(expressions: Iterable[Expression]) -> frozenset[int]:
    used: frozenset[int] = frozenset()
    for expression in expressions:
        used |= columns_of(expression)
    return used
