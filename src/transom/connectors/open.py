"""Opens the source or the sink that a definition means by its property `connector`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from transom.connectors.built_in import FILES, memory_source
from transom.connectors.connector import Connector, Declaration, Opening, OpenSink, Sink, SinkDeclaration, Source
from transom.connectors.memory import MemorySource
from transom.connectors.properties import taken_properties
from transom.connectors.registry import find_connector
from transom.core.location import Within
from transom.plan.catalogue import SinkDefinition, StreamDefinition, TableDefinition


def declaration_of(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Declaration:
    """What the source of a stream or a table is to give."""
    time_column = None if definition.time is None else definition.time.column
    stamped = isinstance(definition, StreamDefinition) and definition.arrival_time
    return Declaration(
        definition.name,
        definition.columns,
        taken_properties(definition.properties),
        time_column=None if stamped else time_column,
        stamped=time_column if stamped else None,
        static=definition.time is None,
        within=within,
        change=definition.change_column if isinstance(definition, TableDefinition) else None,
        primary_key=definition.primary_key if isinstance(definition, TableDefinition) else (),
    )


def open_source(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Source:
    """The source of a stream or a table, checked but not yet read; its files are to be `within` a folder."""
    return source_opener(definition, within)()


def source_opener(definition: StreamDefinition | TableDefinition, within: Within | None = None) -> Callable[[], Source]:
    """Opens the source wherever it is called; it travels to other processes."""
    factory = find_connector(definition.properties, definition.name, sink=False).source
    assert factory is not None
    return partial(factory, declaration_of(definition, within))


def narrowed(opener: Callable[[], Source], columns: Collection[str]) -> Source:
    """A source of which only these columns are read (`Source.narrow`)."""
    source = opener()
    source.narrow(columns)
    return source


def open_memory(definition: StreamDefinition | TableDefinition) -> MemorySource:
    """The rows of a stream or table with connector 'memory', to which the program appends."""
    return memory_source(declaration_of(definition))


def in_memory(definition: StreamDefinition | TableDefinition) -> bool:
    """Whether the program itself appends the rows."""
    return definition.properties.get("connector", "").lower() == "memory"


Run = Callable[[], str | None]
"""What the run is called; asked when a sink is opened."""


def open_sink_of(definition: SinkDefinition, declared: SinkDeclaration, run: Run = lambda: None) -> OpenSink:
    """Opens the sink of a query; `declared` says more of it than the definition does."""
    declared = replace(declared, properties=taken_properties(declared.properties))
    return _opener(find_connector(definition.properties, definition.name, sink=True), declared, run)


def open_files(properties: dict[str, str], run: Run = lambda: None, within: Within | None = None) -> OpenSink:
    """Opens a sink of files that nobody has declared."""
    return _opener(FILES, SinkDeclaration("files", properties, within=within), run)


def _opener(connector: Connector, declared: SinkDeclaration, run: Run) -> OpenSink:
    def opens(opening: Opening) -> Sink:
        assert connector.sink is not None
        return connector.sink(replace(declared, run=run()), opening)

    return OpenSink(
        opens,
        lambda: connector.check_start(declared),
        lambda: connector.folders(declared),
        declared.properties.get("path"),
    )


def check_sink(definition: SinkDefinition, within: Within | None = None) -> None:
    """Rejects a wrong declaration, and touches no file."""
    connector = find_connector(definition.properties, definition.name, sink=True)
    connector.check_sink(SinkDeclaration(definition.name, taken_properties(definition.properties), within=within))


def is_terminal(definition: SinkDefinition) -> bool:
    """Whether its rows are shown to a person."""
    return definition.properties.get("connector", "").lower() == "terminal"
