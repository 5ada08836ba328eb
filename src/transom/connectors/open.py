"""Which source or sink a definition means, by its property `connector`; and the connectors that come with Transom."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from transom.connectors.batch_files import BatchFiles
from transom.connectors.connector import (
    Connector,
    Declaration,
    Opening,
    OpenSink,
    Sink,
    SinkDeclaration,
    Source,
)
from transom.connectors.delta_sink import DeltaSink, check_delta
from transom.connectors.file_target import FileTarget, read_sink_properties
from transom.connectors.files import FileSource
from transom.connectors.files_sink import FileSink
from transom.connectors.generator import GeneratorSource
from transom.connectors.kafka_sink import KafkaSink, check_kafka_sink
from transom.connectors.kafka_sink import check_start as check_kafka_start
from transom.connectors.kafka_source import KafkaSource
from transom.connectors.listing import show
from transom.connectors.memory import MemorySink, MemorySource
from transom.connectors.postgres_changes import PostgresChanges
from transom.connectors.postgres_sink import PostgresSink, SinkProperties
from transom.connectors.postgres_sink import check_start as check_postgres
from transom.connectors.postgres_source import PostgresSource
from transom.connectors.properties import read_time_unit, reject_unknown, taken_properties
from transom.connectors.registry import find_connector, register
from transom.connectors.screen import Screen
from transom.connectors.sink_folder import reject_unmarked
from transom.connectors.storage_sink import StorageFiles, check_folder
from transom.connectors.terminal_sink import TerminalSink, read_terminal_properties
from transom.core.location import Within, is_remote
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
    return _memory_source(declaration_of(definition))


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
    return _opener(_FILES, SinkDeclaration("files", properties, within=within), run)


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


# --- those that come with Transom ------------------------------------------------------------------------------------


def _files_source(declared: Declaration) -> FileSource:
    return FileSource(
        declared.columns,
        declared.properties,
        time_column=declared.time_column,
        stamped=declared.stamped,
        within=declared.within,
    )


def _files_sink(declared: SinkDeclaration, opening: Opening) -> Sink:
    """A sink of files: in one process it goes by the number of parts, where batches come again by theirs."""
    properties, schema, run, within = declared.properties, opening.schema, declared.run, declared.within
    resume = opening.resume
    target = FileTarget.of(properties, schema, within)
    if is_remote(target.folder):
        return StorageFiles(target, run, resume, opening.snapshots)
    if opening.replayed:
        done, planned = (0, 0) if resume is None else (resume.done, resume.begun)
        snapshots = opening.snapshots
        return BatchFiles(properties, schema, done=done, planned=planned, snapshots=snapshots, run=run, within=within)
    parts = None if resume is None else int(resume.token["parts"])
    return FileSink(properties, schema, parts=parts, run=run, within=within, hold=opening.hold)


def _check_folder(declared: SinkDeclaration) -> None:
    """Rejects a folder that is somebody else's."""
    target = FileTarget.of(declared.properties, pa.schema([]), declared.within)
    if is_remote(target.folder):
        with target.errors():
            check_folder(target)
    elif target.file is None:
        with target.errors():
            reject_unmarked(target.folder)


def _folders(declared: SinkDeclaration) -> dict[str, str]:
    target = FileTarget.of(declared.properties, pa.schema([]), declared.within)
    return {f"the sink '{show(declared.properties.get('path', ''))}'": target.folder}


def _generator(declared: Declaration) -> GeneratorSource:
    return GeneratorSource(
        declared.columns,
        declared.properties,
        time_column=declared.time_column,
        stamped=declared.stamped,
        endless_allowed=not declared.static,
    )


def _memory_source(declared: Declaration) -> MemorySource:
    reject_unknown(declared.properties, ["connector", "time_unit"], "connector 'memory'")
    unit = read_time_unit(declared.properties)
    return MemorySource(declared.columns, time_column=declared.time_column, stamped=declared.stamped, time_unit=unit)


def _one_row(declared: Declaration) -> MemorySource:
    source = MemorySource(declared.columns, time_column=None)
    source.append(pa.record_batch([pa.array([1], column.type) for column in declared.columns], declared.columns.names))
    return source


def _check_memory(declared: SinkDeclaration) -> None:
    reject_unknown(declared.properties, ["connector"], "connector 'memory'")


def _terminal(declared: SinkDeclaration, opening: Opening) -> TerminalSink:
    style = read_terminal_properties(declared.properties)
    return TerminalSink(declared.screen or Screen(), declared.name, opening.schema, style, declared.follow)


def _postgres_source(declared: Declaration) -> Source:
    return PostgresSource(declared) if declared.static else PostgresChanges(declared)


_FILES: Final = Connector(
    _files_source,
    _files_sink,
    check_sink=lambda declared: read_sink_properties(declared.properties, declared.within),
    check_start=_check_folder,
    folders=_folders,
)
register("files", _FILES)
register("generator", Connector(_generator))
register("kafka", Connector(KafkaSource, KafkaSink, check_sink=check_kafka_sink, check_start=check_kafka_start))
register("one_row", Connector(_one_row))
register(
    "memory", Connector(_memory_source, lambda declared, opening: MemorySink(opening.schema), check_sink=_check_memory)
)
register(
    "terminal", Connector(sink=_terminal, check_sink=lambda declared: read_terminal_properties(declared.properties))
)
register(
    "postgres", Connector(_postgres_source, PostgresSink, check_sink=SinkProperties.of, check_start=check_postgres)
)
register("delta", Connector(sink=DeltaSink, check_sink=check_delta))
