"""Which source or sink a definition means, by its property `connector`."""

from __future__ import annotations

import pyarrow as pa

from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink, read_sink_properties
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.properties import refuse_unknown
from transom.core.errors import OptionError
from transom.plan.catalogue import SinkDefinition, StreamDefinition, TableDefinition


def open_source(definition: StreamDefinition | TableDefinition) -> FileSource | MemorySource:
    """The source of a stream or a table, checked but not yet read.

    The time column of a stream with `time = 'arrival'` comes from no source; it is NULL until the row is stamped.
    """
    time_column = None if definition.time is None else definition.time.column
    stamped = None
    if isinstance(definition, StreamDefinition) and definition.arrival_time:
        time_column, stamped = None, time_column
    properties = definition.properties
    if _connector(properties, definition.name) == "files":
        return FileSource(definition.columns, properties, time_column=time_column, stamped=stamped)
    refuse_unknown(properties, ["connector"], "connector 'memory'")
    return MemorySource(definition.columns, time_column=time_column, stamped=stamped)


def open_sink(definition: SinkDefinition, schema: pa.Schema, *, parts: int = 0) -> FileSink | MemorySink:
    """The sink of a query whose rows have `schema`; `parts` have been committed before."""
    properties = definition.properties
    if _connector(properties, definition.name) == "files":
        return FileSink(properties, schema, parts=parts)
    refuse_unknown(properties, ["connector"], "connector 'memory'")
    return MemorySink(schema)


def check_sink(definition: SinkDefinition) -> None:
    """Refuses what `open_sink` would refuse, and touches no file."""
    if _connector(definition.properties, definition.name) == "files":
        read_sink_properties(definition.properties)
    else:
        refuse_unknown(definition.properties, ["connector"], "connector 'memory'")


def _connector(properties: dict[str, str], name: str) -> str:
    connector = properties.get("connector")
    if connector is None:
        raise OptionError(f"'{name}' does not say where it is", remedy="write connector = 'files' and a path")
    if connector.lower() not in ("files", "memory"):
        raise OptionError(f"there is no connector '{connector}'", remedy="connectors are 'files' and 'memory'")
    return connector.lower()
