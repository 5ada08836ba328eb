"""The connectors that come with Transom, each under its name.

It imports all of them, so that nobody else has to.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from transom.connectors.batch_files import BatchFiles
from transom.connectors.connector import Connector, Declaration, Opening, Sink, SinkDeclaration, Source
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
from transom.connectors.properties import read_time_unit, reject_unknown
from transom.connectors.registry import register
from transom.connectors.screen import Screen
from transom.connectors.sink_folder import reject_unmarked
from transom.connectors.storage_sink import StorageFiles, check_folder
from transom.connectors.terminal_sink import TerminalSink, read_terminal_properties
from transom.core.location import is_remote


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


def memory_source(declared: Declaration) -> MemorySource:
    """The rows of a program."""
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


FILES: Final = Connector(
    _files_source,
    _files_sink,
    check_sink=lambda declared: read_sink_properties(declared.properties, declared.within),
    check_start=_check_folder,
    folders=_folders,
)
register("files", FILES)
register("generator", Connector(_generator))
register("kafka", Connector(KafkaSource, KafkaSink, check_sink=check_kafka_sink, check_start=check_kafka_start))
register("one_row", Connector(_one_row))
register(
    "memory", Connector(memory_source, lambda declared, opening: MemorySink(opening.schema), check_sink=_check_memory)
)
register(
    "terminal", Connector(sink=_terminal, check_sink=lambda declared: read_terminal_properties(declared.properties))
)
register(
    "postgres", Connector(_postgres_source, PostgresSink, check_sink=SinkProperties.of, check_start=check_postgres)
)
register("delta", Connector(sink=DeltaSink, check_sink=check_delta))
