"""Where the answers of a streaming query go on Spark: a batch is an epoch of each of its sinks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from transom.connectors.callback import EpochCallbackSink
from transom.connectors.connector import Opening, OpenSink, Resume, Sink, TaskWriter
from transom.kernels.nested import shown_rows
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA
from transom.pipeline.frames import DEAD_LETTERS, FILES, OUT, STATUS, Frame, unpack
from transom.pipeline.layout import Layout
from transom.pipeline.merge import merged
from transom.program.run import OnBatch


@dataclass(frozen=True)
class SinkSpec:
    """What the sinks of a query are opened with: who opens them, the columns, form and key of the answer."""

    open_sink: OpenSink
    open_dead_letters: OpenSink | None
    schema: pa.Schema
    form: str
    key: tuple[str, ...] | None

    def opened(self, resume: Resume | None, on_batch: OnBatch | None) -> list[Sink]:
        """The sinks: first that of the answer, and then that of rejected rows if they are wanted."""
        if on_batch is not None:
            sinks: list[Sink] = [EpochCallbackSink(on_batch)]
        else:
            snapshots = self.form == "latest"
            opening = Opening(self.schema, resume, replayed=True, snapshots=snapshots, form=self.form, key=self.key)
            sinks = [self.open_sink(opening)]
        if self.open_dead_letters is not None:
            sinks.append(self.open_dead_letters(Opening(DEAD_LETTER_SCHEMA, resume, replayed=True)))
        return sinks


@dataclass(frozen=True)
class Sinks:
    """Where the answers go, by the keys of the queries, and where rejected rows go."""

    answers: dict[str, Sink]
    dead_letters: list[Sink]

    @property
    def all(self) -> list[Sink]:
        return [*self.answers.values(), *self.dead_letters]

    def writers(self) -> dict[str, TaskWriter]:
        """Of the answers that tasks write."""
        return {key: sink.tasks for key, sink in self.answers.items() if sink.tasks is not None}

    def take(self, brought: dict[int, list[Frame]], layout: Layout, number: int) -> None:
        """What a batch brought, shown whole."""
        for key, answer in self.answers.items():
            emit, held = layout.answers[key]
            shown = layout.shown[key]
            rows_out = [part.rows for part in brought[OUT] if part.about["query"] == key]
            if answer.tasks is not None:
                parts = [part.about for part in brought[FILES] if part.about["query"] == key]
                answer.add_parts((about["partition"], about["part"]) for about in parts)
            elif emit == "latest":
                answer.replace(shown_rows(merged(rows_out, emit, held), shown))
            elif len(rows := merged(rows_out, emit, held)):
                answer.write(shown_rows(rows, shown))
        rejected_rows = [part.rows for part in brought[DEAD_LETTERS]]
        for dead_letters in self.dead_letters if rejected_rows else ():
            dead_letters.write(pa.concat_batches(rejected_rows))
        for sink in self.all:
            sink.commit(number, sink.prepare(number))


def frames_of(messages: pa.Table) -> dict[int, list[Frame]]:
    """What a batch brought, by its kind."""
    brought: dict[int, list[Frame]] = {kind: [] for kind in (OUT, DEAD_LETTERS, STATUS, FILES)}
    for kind, blob in zip(messages.column("kind").to_pylist(), messages.column("blob"), strict=True):
        brought[kind] += unpack(blob.as_buffer())
    return brought
