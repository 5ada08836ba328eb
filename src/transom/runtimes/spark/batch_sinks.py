"""Where the answer of a batch goes, by the number of the batch: it is the same when the batch is run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from transom.connectors.files_sink import OpenFiles
from transom.connectors.sink import Sink
from transom.program.run import OnBatch, OpenSink
from transom.runtimes.spark.checkpoint import Reached
from transom.runtimes.spark.file_parts import BatchFiles, PartFiles


class BatchSink(Protocol):
    @property
    def parts(self) -> PartFiles | None:
        """Where tasks write the rows themselves; then the driver is told of the files, and shows them."""

    def show(self, batch: int, files: Iterable[tuple[int, str]]) -> None: ...

    def write(self, batch: int, rows: pa.RecordBatch) -> None:
        """All rows of a batch, perhaps none."""

    def replace(self, batch: int, rows: pa.RecordBatch) -> None:
        """A whole snapshot."""

    def abandon(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Sinks:
    """Where the answers go, by the keys of the queries, and where refused rows go."""

    answers: dict[str, BatchSink]
    sides: list[BatchSink]

    @property
    def all(self) -> list[BatchSink]:
        return [*self.answers.values(), *self.sides]


class InDriver:
    """Takes rows, no files."""

    @property
    def parts(self) -> None:
        return None

    def show(self, batch: int, files: Iterable[tuple[int, str]]) -> None:
        raise AssertionError("tasks have written files that nobody asked for")


class PlainSink(InDriver):
    """A sink that knows nothing of batches: what is on a terminal or in memory is gone with the process anyway."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def write(self, batch: int, rows: pa.RecordBatch) -> None:
        if len(rows):
            self.sink.write(rows)
        self.sink.commit()

    def replace(self, batch: int, rows: pa.RecordBatch) -> None:
        self.sink.replace(rows)
        self.sink.commit()

    def abandon(self) -> None:
        self.sink.abandon()

    def close(self) -> None:
        self.sink.close()


class FunctionSink(InDriver):
    """Calls a function of the program with the rows of every batch that has any, and the number of the batch.

    After a restart the last batch may come again, with the same number and the same rows: a function that writes them
    under the number writes them once.
    """

    def __init__(self, on_batch: OnBatch) -> None:
        self._on_batch = on_batch

    def write(self, batch: int, rows: pa.RecordBatch) -> None:
        if len(rows):
            self._on_batch(pa.Table.from_batches([rows]), batch)

    def replace(self, batch: int, rows: pa.RecordBatch) -> None:
        self._on_batch(pa.Table.from_batches([rows]), batch)

    def abandon(self) -> None:
        """What was handed over cannot be taken back."""

    def close(self) -> None:
        """Nothing is held that would have to be let go."""


def open_batch_sink(open_sink: OpenSink, schema: pa.Schema, reached: Reached, snapshots: bool = False) -> BatchSink:
    """A sink that goes on where a checkpoint is; `snapshots`: it gets the whole answer anew with every batch."""
    if isinstance(open_sink, OpenFiles):
        done, planned = reached.done, reached.planned
        return BatchFiles(
            open_sink.properties,
            schema,
            done=done,
            planned=planned,
            snapshots=snapshots,
            run=open_sink.run(),
            within=open_sink.within,
        )
    return PlainSink(open_sink(schema, None))
