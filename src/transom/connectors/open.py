"""Which source or sink a definition means, by its property `connector`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from transom.connectors.connector import Declaration, Source
from transom.connectors.file_target import read_sink_properties
from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink
from transom.connectors.generator import GeneratorSource
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.properties import refuse_unknown
from transom.connectors.screen import Screen
from transom.connectors.terminal_sink import TerminalSink, read_terminal_properties
from transom.core.errors import OptionError
from transom.core.location import Within
from transom.plan.catalogue import SinkDefinition, StreamDefinition, TableDefinition

_SINKS: Final = ("files", "memory", "terminal")


def declaration_of(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Declaration:
    """What the source of a stream or a table is to give."""
    time_column = None if definition.time is None else definition.time.column
    stamped = isinstance(definition, StreamDefinition) and definition.arrival_time
    return Declaration(
        definition.name,
        definition.columns,
        definition.properties,
        time_column=None if stamped else time_column,
        stamped=time_column if stamped else None,
        static=definition.time is None,
        within=within,
    )


def open_source(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Source:
    """The source of a stream or a table, checked but not yet read; its files are to be `within` a folder."""
    return source_opener(definition, within)()


def source_opener(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Callable[[], Source]:
    """Opens the source wherever it is called; it travels to other processes."""
    factory = _SOURCES[_connector(definition.properties, definition.name)]
    return partial(factory, declaration_of(definition, within))


def open_memory(definition: StreamDefinition | TableDefinition) -> MemorySource:
    """The rows of a stream or table with connector 'memory', to which the program appends."""
    return _memory(declaration_of(definition))


def in_memory(definition: StreamDefinition | TableDefinition) -> bool:
    """Whether the program itself appends the rows."""
    return definition.properties.get("connector", "").lower() == "memory"


def _files(declared: Declaration) -> FileSource:
    return FileSource(
        declared.columns,
        declared.properties,
        time_column=declared.time_column,
        stamped=declared.stamped,
        within=declared.within,
    )


def _generator(declared: Declaration) -> GeneratorSource:
    return GeneratorSource(
        declared.columns,
        declared.properties,
        time_column=declared.time_column,
        stamped=declared.stamped,
        endless_allowed=not declared.static,
    )


def _memory(declared: Declaration) -> MemorySource:
    refuse_unknown(declared.properties, ["connector"], "connector 'memory'")
    return MemorySource(declared.columns, time_column=declared.time_column, stamped=declared.stamped)


def open_sink(
    definition: SinkDefinition,
    schema: pa.Schema,
    *,
    parts: int | None = None,
    screen: Screen | None = None,
    follow: bool = False,
    within: Within | None = None,
) -> FileSink | MemorySink | TerminalSink:
    """The sink of a query whose rows have `schema`; `parts` have been committed before, by a log that was found.

    `screen` is that of the terminal, and `follow` says that the rows may never end.
    """
    properties = definition.properties
    connector = _connector(properties, definition.name, _SINKS)
    if connector == "files":
        return FileSink(properties, schema, parts=parts, within=within)
    if connector == "terminal":
        style = read_terminal_properties(properties)
        return TerminalSink(screen or Screen(), definition.name, schema, style, follow)
    refuse_unknown(properties, ["connector"], "connector 'memory'")
    return MemorySink(schema)


def check_sink(definition: SinkDefinition, within: Within | None = None) -> None:
    """Refuses what `open_sink` would refuse, and touches no file."""
    connector = _connector(definition.properties, definition.name, _SINKS)
    if connector == "files":
        read_sink_properties(definition.properties, within)
    elif connector == "terminal":
        read_terminal_properties(definition.properties)
    else:
        refuse_unknown(definition.properties, ["connector"], "connector 'memory'")


def is_files(definition: SinkDefinition) -> bool:
    """Whether its rows go to files."""
    return definition.properties.get("connector", "").lower() == "files"


def is_terminal(definition: SinkDefinition) -> bool:
    """Whether its rows are shown to a person."""
    return definition.properties.get("connector", "").lower() == "terminal"


def _connector(properties: dict[str, str], name: str, known: Sequence[str] | None = None) -> str:
    known = list(_SOURCES) if known is None else known
    connector = properties.get("connector")
    if connector is None:
        raise OptionError(f"'{name}' does not say where it is", remedy="write connector = 'files' and a path")
    if connector.lower() not in known:
        names = [f"'{each}'" for each in known]
        raise OptionError(
            f"there is no connector '{connector}'" + (" to read from" if connector.lower() in _SINKS else ""),
            remedy=f"connectors are {', '.join(names[:-1])} and {names[-1]}",
        )
    return connector.lower()


_SOURCES: Final[dict[str, Callable[[Declaration], Source]]] = {
    "files": _files,
    "generator": _generator,
    "memory": _memory,
}
