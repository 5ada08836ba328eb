"""The inputs of a session: rows that it was handed, rows that it is to ask for, and the rows that it refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from transom.connectors.arrow_input import batches_of, columns_of
from transom.connectors.connector import Source
from transom.connectors.iterable import IterableSource, Supply, is_lazy
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.open import declaration_of, in_memory, open_memory, open_source
from transom.core.errors import QueryError, SourceError
from transom.pipeline.side import SIDE, SIDE_TABLE
from transom.plan.catalogue import Catalogue, StreamDefinition, TableDefinition
from transom.program.arguments import require_text
from transom.program.data import Data
from transom.program.declare import Bound, ByClock, Late, declared_stream, declared_table
from transom.program.sample import peeked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Definition = StreamDefinition | TableDefinition


@dataclass(frozen=True)
class Frame:
    """A DataFrame whose rows are read where it lives, and its columns in our types."""

    frame: DataFrame
    columns: pa.Schema


def of_spark(data: object) -> TypeGuard[DataFrame]:
    """Whether it is a DataFrame of Spark: told by its class, so that nobody has to import PySpark."""
    return type(data).__module__.partition(".")[0] == "pyspark"


class Inputs:
    """Declares what it is handed in the catalogue, and opens the source of every definition for a query.

    The catalogue learns the table `transom_side`, whose rows are those of `side` when it is opened.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._memory: dict[str, MemorySource] = {}
        self._supplies: dict[str, Supply] = {}
        self.frames: dict[str, DataFrame] = {}
        self.side = MemorySink(SIDE)
        catalogue.relations[SIDE_TABLE] = declared_table(SIDE_TABLE, columns_of(SIDE, SIDE_TABLE))

    def table(self, name: str, data: Data | Frame) -> None:
        require_text(name, "the name of a table")
        if isinstance(data, Frame):
            raise SourceError(
                f"'{name}' is a streaming DataFrame, and the rows of a table must all be there",
                remedy="declare it with stream(..), or give a DataFrame that does not stream",
            )
        schema, batches = batches_of(data)
        self._declare(declared_table(name, columns_of(schema, name)), batches)

    def stream(
        self,
        name: str,
        data: Data | Frame,
        time: str | None,
        bound: Bound,
        late: Late,
        columns: pa.Schema | None,
        by_clock: ByClock,
    ) -> None:
        require_text(name, "the name of a stream")
        if isinstance(data, Frame):
            self._refuse_known(name)
            declared = columns_of(data.columns if columns is None else columns, name)
            self._catalogue.relations[name.lower()] = declared_stream(name, declared, time, bound, late, by_clock)
            self.frames[name.lower()] = data.frame
            return
        if is_lazy(data):
            self._refuse_known(name)
            supply = Supply(name, data, columns)
            definition = declared_stream(name, columns_of(supply.columns, name), time, bound, late, by_clock)
            self._catalogue.relations[name.lower()] = definition
            self._supplies[name.lower()] = supply
            return
        told = None if columns is None else columns_of(columns, name)
        schema, batches = batches_of(data, told)
        declared = columns_of(schema, name) if told is None else told
        self._declare(declared_stream(name, declared, time, bound, late, by_clock), batches)

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
        if in_memory(definition):
            self._memory[definition.name.lower()] = open_memory(definition)

    def open(self, definition: Definition) -> Source:
        key = definition.name.lower()
        if key in self._supplies:
            declared = declaration_of(definition)
            return IterableSource(
                self._supplies[key], declared.columns, time_column=declared.time_column, stamped=declared.stamped
            )
        if key == SIDE_TABLE:
            side = MemorySource(definition.columns, time_column=None)
            for batch in list(self.side.batches):
                side.append(batch)
            return side
        return self._memory.get(key) or open_source(definition, self._catalogue.within)

    def peek(self, definition: Definition) -> Source | None:
        """A source to look at the first rows of; None where that would take them from whoever reads them."""
        key = definition.name.lower()
        if key in self._supplies or key in self.frames or key == SIDE_TABLE:
            return None
        return self._memory.get(key) or peeked(definition, self._catalogue.within)

    def _declare(self, definition: Definition, batches: Iterable[pa.RecordBatch]) -> None:
        self._refuse_known(definition.name)
        source = open_memory(definition)
        for batch in batches:
            source.append(batch)
        self._catalogue.relations[definition.name.lower()] = definition
        self._memory[definition.name.lower()] = source

    def _refuse_known(self, name: str) -> None:
        if name.lower() in self._catalogue.relations or name.lower() in self._catalogue.sinks:
            raise QueryError(f"'{name}' is declared already", remedy="choose another name, or append() rows to it")
