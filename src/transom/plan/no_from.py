"""The table of one row that a SELECT without FROM reads."""

from __future__ import annotations

from typing import Final

from transom.core.schema import INTEGER, Schema
from transom.plan.algebra import TableScan
from transom.plan.catalogue import Catalogue, TableDefinition

ONE_ROW: Final = "transom_one"
_COLUMNS: Final = Schema.of(("one", INTEGER))


def scan_one_row(catalogue: Catalogue) -> TableScan:
    """Reads the row, which is always there; the catalogue knows the table from then on."""
    definition = TableDefinition(ONE_ROW, _COLUMNS, properties={"connector": "one_row"})
    catalogue.relations.setdefault(ONE_ROW, definition)
    return TableScan(ONE_ROW, _COLUMNS)
