"""The inputs of a session: rows that it was handed, rows that it is to ask for, and the rows that it rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from transom.connectors.arrow_input import batches_of, columns_of, readable
from transom.connectors.connector import Source
from transom.connectors.first_rows import FirstRows
from transom.connectors.iterable import IterableSource, Supply, is_lazy
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.open import declaration_of, in_memory, open_memory, open_source
from transom.connectors.properties import read_time_unit
from transom.core.errors import QueryError, SourceError
from transom.core.schema import Schema
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA, DEAD_LETTER_TABLE
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition, ViewDefinition
from transom.plan.reads import reads
from transom.program.arguments import require_text
from transom.program.data import Data
from transom.program.declare import Timing, declared_stream, declared_table
from transom.program.sample import peeked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Definition = StreamDefinition | TableDefinition

Declare = Callable[[Schema], Definition]
"""Makes the definition of an input, of its columns."""


@dataclass(frozen=True)
class DataFrameInput:
    """A DataFrame whose rows are read where it lives, and its columns in our types."""

    frame: DataFrame
    columns: pa.Schema


def of_spark(data: object) -> TypeGuard[DataFrame]:
    """Whether it is a DataFrame of Spark: known by its class, so that nobody has to import PySpark."""
    return type(data).__module__.partition(".")[0] == "pyspark"


class SessionInputs:
    """Declares what it is handed in the catalogue, and opens the source of every definition for a query.

    The catalogue learns the table `transom_dead_letters`, whose rows are those of `dead_letters` when it is opened.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._memory: dict[str, MemorySource] = {}
        self._supplies: dict[str, Supply] = {}
        self.frames: dict[str, DataFrame] = {}
        self.dead_letters = MemorySink(DEAD_LETTER_SCHEMA)
        catalogue.relations[DEAD_LETTER_TABLE] = declared_table(
            DEAD_LETTER_TABLE, columns_of(DEAD_LETTER_SCHEMA, DEAD_LETTER_TABLE)
        )

    def table(
        self,
        name: str,
        data: Data | DataFrameInput,
        columns: pa.Schema | None,
        timing: Timing,
        key: Sequence[str],
        replace: bool,
    ) -> None:
        require_text(name, "the name of a table")
        if isinstance(data, DataFrameInput):
            raise SourceError(
                f"'{name}' is a streaming DataFrame, and the rows of a table must all be there",
                remedy="declare it with stream(..), or give a DataFrame that does not stream",
            )

        def declared(schema: Schema) -> TableDefinition:
            return declared_table(name, schema, timing, key)

        if timing.column is not None and is_lazy(data):
            self._supply(name, data, columns, declared, replace)
        else:
            self._hold_rows(name, data, columns, declared, replace)

    def stream(
        self, name: str, data: Data | DataFrameInput, columns: pa.Schema | None, timing: Timing, replace: bool
    ) -> None:
        require_text(name, "the name of a stream")

        def declared(schema: Schema) -> StreamDefinition:
            return declared_stream(name, schema, timing)

        if isinstance(data, DataFrameInput):
            definition = declared(columns_of(data.columns if columns is None else columns, name))
            self._declare(definition, replace)
            self.frames[name.lower()] = data.frame
        elif is_lazy(data):
            self._supply(name, data, columns, declared, replace)
        else:
            self._hold_rows(name, data, columns, declared, replace)

    def append(self, name: str, data: Data) -> None:
        require_text(name, "the name of a stream or table")
        source = self._memory.get(name.lower())
        if source is None:
            raise SourceError(
                f"'{name}' is not a stream or table in memory", remedy="declare it WITH (connector = 'memory')"
            )
        for batch in batches_of(data, source.given)[1]:
            source.append(batch)

    def hold(self, definition: Definition) -> None:
        """A definition of the catalogue; if it is one in memory, its rows are kept from now on."""
        self.forget(definition.name)
        if in_memory(definition):
            self._memory[definition.name.lower()] = open_memory(definition)

    def forget(self, name: str) -> None:
        """What was handed under a name that stands for something else from now on, or for nothing."""
        for by_name in (self._memory, self._supplies, self.frames):
            by_name.pop(name.lower(), None)

    def open(self, definition: Definition) -> Source:
        key = definition.name.lower()
        if key in self._supplies:
            declared = declaration_of(definition)
            return IterableSource(
                self._supplies[key],
                declared.columns,
                time_column=declared.time_column,
                stamped=declared.stamped,
                time_unit=read_time_unit(declared.properties),
            )
        if key == DEAD_LETTER_TABLE:
            dead_letters = MemorySource(definition.columns, time_column=None)
            for batch in list(self.dead_letters.batches):
                dead_letters.append(batch)
            return dead_letters
        return self._memory.get(key) or open_source(definition, self.catalogue.within)

    def peek(self, definition: Definition) -> Source | None:
        """A source to look at the first rows of; None where that would take them from whoever reads them."""
        key = definition.name.lower()
        if key in self._supplies or key in self.frames or key == DEAD_LETTER_TABLE:
            return None
        return self._memory.get(key) or peeked(definition, self.catalogue.within)

    def _supply(self, name: str, data: Data, columns: pa.Schema | None, declared: Declare, replace: bool) -> None:
        """Rows that are read as they are wanted."""
        self._reject_declared(name, replace)
        supply = Supply(name, data, columns)
        self._declare(self._of_columns(supply.columns, columns, name, declared), replace)
        self._supplies[name.lower()] = supply

    def _hold_rows(self, name: str, data: Data, columns: pa.Schema | None, declared: Declare, replace: bool) -> None:
        """Rows that are there."""
        self._reject_declared(name, replace)
        given = None if columns is None else columns_of(columns, name)
        schema, batches = batches_of(data, given)
        definition = self._of_columns(schema, columns, name, declared)
        source = open_memory(definition)
        for batch in batches:
            source.append(batch)
        self._declare(definition, replace)
        self._memory[name.lower()] = source

    def _of_columns(
        self, schema: pa.Schema, columns: pa.Schema | None, name: str, declared: Declare
    ) -> StreamDefinition | TableDefinition:
        """Columns that nobody has asked for, and no SQL type can hold, are left out."""
        if columns is not None:
            return declared(columns_of(columns, name))
        try:
            return declared(columns_of(readable(schema), name))
        except SourceError:
            return declared(columns_of(schema, name))  # what is missing is a column that was left out, perhaps

    def _declare(self, definition: Definition, replace: bool) -> None:
        """Declare a stream or table, in place of what has the name, if that is to be replaced."""
        key = definition.name.lower()
        self._reject_declared(definition.name, replace)
        self._reject_views(definition)
        self.forget(key)
        self.catalogue.relations[key] = definition

    def _reject_declared(self, name: str, replace: bool) -> None:
        replaced = replace and name.lower() in self.catalogue.relations and name.lower() != DEAD_LETTER_TABLE
        if not replaced and (name.lower() in self.catalogue.relations or name.lower() in self.catalogue.sinks):
            raise QueryError(
                f"'{name}' is declared already",
                remedy="choose another name, write replace=True, or append() rows to it",
            )

    def _reject_views(self, definition: Definition) -> None:
        """A view is bound to the columns that its inputs had."""
        before = self.catalogue.relations.get(definition.name.lower())
        if before is None or isinstance(before, ViewDefinition) or _columns(before) == _columns(definition):
            return
        for view in self.catalogue.relations.values():
            if isinstance(view, ViewDefinition) and reads(view.query, definition.name.lower()):
                raise QueryError(
                    f"the view '{view.name}' reads '{definition.name}', whose columns would be others",
                    remedy="choose another name, or keep the columns",
                )


class FirstInputs:
    """The first rows of the inputs of a session, which stay where they are; for whoever opens sources."""

    def __init__(self, inputs: SessionInputs, most: int) -> None:
        self._inputs = inputs
        self._most = most

    def open(self, definition: Definition) -> Source:
        source = self._inputs.peek(definition)
        if source is None:
            raise SourceError(
                f"the first rows of '{definition.name}' cannot be looked at without taking them from other queries",
                remedy="start the query: its answer is shown as it comes",
            )
        return FirstRows(source, self._most)


def _columns(definition: Definition) -> tuple[type[Definition], Schema, frozenset[str]]:
    return type(definition), definition.columns, definition.invisible
