"""Which source or sink a definition means, by its property `connector`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from transom.connectors.file_target import read_sink_properties
from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink
from transom.connectors.generator import GeneratorSource
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.pieces import PiecewiseSource
from transom.connectors.properties import refuse_unknown
from transom.connectors.screen import Screen
from transom.connectors.terminal_sink import TerminalSink, read_terminal_properties
from transom.core.errors import OptionError
from transom.core.location import Within
from transom.plan.catalogue import SinkDefinition, StreamDefinition, TableDefinition

_SOURCES: Final = ("files", "generator", "memory")
_SINKS: Final = ("files", "memory", "terminal")


def open_source(
    definition: StreamDefinition | TableDefinition, within: Within | None = None
) -> FileSource | GeneratorSource | MemorySource:
    """The source of a stream or a table, checked but not yet read; its files are to be `within` a folder.

    The time column of a stream with `time = 'arrival'` comes from no source; it is NULL until the row is stamped.
    """
    time_column = None if definition.time is None else definition.time.column
    stamped = None
    if isinstance(definition, StreamDefinition) and definition.arrival_time:
        time_column, stamped = None, time_column
    properties = definition.properties
    connector = _connector(properties, definition.name)
    if connector == "files":
        return FileSource(definition.columns, properties, time_column=time_column, stamped=stamped, within=within)
    if connector == "generator":
        return GeneratorSource(
            definition.columns,
            properties,
            time_column=time_column,
            stamped=stamped,
            endless_allowed=definition.time is not None,
        )
    refuse_unknown(properties, ["connector"], "connector 'memory'")
    return MemorySource(definition.columns, time_column=time_column, stamped=stamped)


def open_piecewise(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> PiecewiseSource:
    """The same source for many tasks, in this process and in others."""
    source = open_source(definition, within)
    if isinstance(source, MemorySource):
        raise OptionError(
            f"the rows of '{definition.name}' are in the memory of one process, and others cannot read them there",
            remedy="write connector = 'files' and a path, or hand the rows over by session.stream(..)",
        )
    return source


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


def _connector(properties: dict[str, str], name: str, known: Sequence[str] = _SOURCES) -> str:
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
