"""Tactics of scans: what a stream or a table is made of as rows come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transom.kernels.kernel import Kernel
from transom.kernels.negative.departures import DeparturesKernel
from transom.kernels.operator import Alive, Key, Operator, Site, Tactic
from transom.kernels.scan.table import ChangesTable, ChangesTableState, StaticTable
from transom.kernels.to_stream.direct_stream import AliveRows
from transom.plan.algebra import StreamScan, TableScan
from transom.plan.catalogue import TableDefinition
from transom.plan.same_key import columns_in


class ScanTactic(Tactic):
    name = "scan"
    nodes = (StreamScan,)
    cheap = True

    def describe(self, operator: Operator) -> str:
        assert isinstance(operator.node, StreamScan)
        return f"stream {operator.node.name}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        return ()


class TableTactic(Tactic):
    nodes = (TableScan,)

    def describe(self, operator: Operator) -> str:
        assert isinstance(operator.node, TableScan)
        return f"table {operator.node.name}"

    def kernels(self, operator: Operator, site: Site) -> tuple[Kernel, ...]:
        assert isinstance(operator.node, TableScan)
        definition = site.catalogue.relations[operator.node.name.lower()]
        assert isinstance(definition, TableDefinition)
        departures = (DeparturesKernel(operator.schema.held()),) if operator.negative else ()
        return (table_kernel(definition), *departures)

    def alive(self, operator: Operator, below: Sequence[Alive]) -> Alive:
        return Alive()  # a table is as large as what it stands for


class StaticTableTactic(TableTactic):
    name = "static_table"
    states = (AliveRows,)

    def lasts(self, operator: Operator, below: bool) -> bool:
        return True


class ChangesTableTactic(TableTactic):
    name = "changes_table"
    states = (ChangesTableState, AliveRows)

    def with_negative_tuples(self, operator: Operator) -> Tactic:
        return replace(self, keeps=f"{self.keeps}, whole")


class UpsertTableTactic(ChangesTableTactic):
    name = "upsert_table"

    def answer_key(self, operator: Operator, below: Sequence[Key | None]) -> Key | None:
        return columns_in(operator.needs[0].keys)


def table_kernel(definition: TableDefinition) -> StaticTable | ChangesTable:
    if definition.time is None:
        return StaticTable()
    names = [column.name.lower() for column in definition.relation_columns]
    if definition.primary_key:
        identity = tuple(names.index(name.lower()) for name in definition.primary_key)
    else:
        identity = tuple(i for i, name in enumerate(names) if name != definition.time.column.lower())
    has_change_column = definition.change_column is not None
    return ChangesTable(definition.relation_columns.held(), identity, bool(definition.primary_key), has_change_column)
