"""Queries of which no snapshot has more than one row, for a reason that the text gives."""

from __future__ import annotations

from transom.plan.algebra import Aggregate, Distinct, Filter, Join, Over, Project, Relation, TableScan, TopN
from transom.plan.catalogue import Catalogue, TableDefinition
from transom.plan.expression import Call, ColumnRef, Expression, columns_of, conjuncts
from transom.plan.same_key import without_widening


def has_one_row(relation: Relation, catalogue: Catalogue) -> bool:
    """Whether there is at most one: an aggregate without GROUP BY, LIMIT 1, or a row of a table by its whole key."""
    match relation:
        case Aggregate():
            return not relation.grouped
        case Filter() if isinstance(relation.input, TableScan):
            return _by_its_key(relation.input, relation.predicate, catalogue)
        case TopN() if not relation.partition and relation.function == "row_number":
            few = relation.most is not None and relation.most <= relation.least
            return few or has_one_row(relation.input, catalogue)
        case Project() | Filter() | Distinct() | TopN() | Over():
            return has_one_row(relation.input, catalogue)
        case Join():
            return all(has_one_row(each, catalogue) for each in relation.relations)
    return False


def _by_its_key(table: TableScan, predicate: Expression, catalogue: Catalogue) -> bool:
    """Whether each column of the primary key is equal to something that is the same for all rows of the table."""
    definition = catalogue.relations[table.name.lower()]
    assert isinstance(definition, TableDefinition)
    equal_columns: set[str] = set()
    for part in conjuncts(predicate):
        if isinstance(part, Call) and part.function == "=":
            for side, other in (part.arguments, part.arguments[::-1]):
                column = without_widening(side)
                if isinstance(column, ColumnRef) and not columns_of(other):
                    equal_columns.add(table.schema[column.index].name.lower())
    return bool(definition.primary_key) and {key.lower() for key in definition.primary_key} <= equal_columns
