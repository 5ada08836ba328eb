"""Where the answer of a query goes in this process, and the rows that were rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from transom.connectors.connector import Opening, Sink
from transom.kernels.nested import shown_rows
from transom.pipeline.dead_letters import DEAD_LETTER_SCHEMA
from transom.program.run import QuerySpec
from transom.program.sink_epochs import Saved, SinkEpochs

Key = tuple[str, ...] | None


class QueryOutput:
    """The sinks of a query whose answer has this form and these columns, opened when they are first needed.

    The `key` is requested then, since a checkpoint may have the query planned otherwise.
    It is to `hold` no more bytes of rows in memory than so many (see `Opening`).
    Of `latest` the last rows are the whole answer, which is shown in place of the one before.
    """

    def __init__(
        self, spec: QuerySpec, schema: pa.Schema, form: str, key: Callable[[], Key], hold: int | None = None
    ) -> None:
        self.snapshots = form == "latest"
        self.at_the_end_of_a_batch = form in ("latest", "net")
        """Whether rows leave when a batch is over."""
        self.latest: pa.RecordBatch | None = None
        self._latest_is_new = False
        self._left = False
        self._schema = schema
        opening = Opening(schema, snapshots=self.snapshots, form=form, hold=hold)
        self._answer = SinkEpochs(spec.open_sink, lambda: replace(opening, key=key()))
        self.dead_letters = (
            None
            if spec.open_dead_letters is None
            else SinkEpochs(spec.open_dead_letters, lambda: Opening(DEAD_LETTER_SCHEMA))
        )
        """Where rejected rows go."""

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self._answer.sink

    @property
    def sinks(self) -> list[SinkEpochs]:
        return [self._answer] if self.dead_letters is None else [self._answer, self.dead_letters]

    def held(self) -> int:
        """Bytes of rows that wait in the hands of the sink."""
        return self._answer.held_bytes

    def open(self) -> None:
        for each in self.sinks:
            each.open()

    def write(self, rows: pa.RecordBatch) -> bool:
        """Whether the answer is another one now."""
        rows = shown_rows(rows, self._schema)
        if self.snapshots:
            changed = self.latest is None or not rows.equals(self.latest)
            self.latest, self._latest_is_new = rows, self._latest_is_new or changed
            return changed
        self._answer.write(rows)
        self._left = self._left or (self.at_the_end_of_a_batch and len(rows) > 0)
        return len(rows) > 0

    def prepare(self) -> list[Saved]:
        self.write_latest()
        return [each.prepare() for each in self.sinks]

    def commit(self) -> bool:
        """What was written until now is seen; whether that ends a batch that has changed something."""
        self.write_latest()
        for each in self.sinks:
            each.commit()
        left, self._left = self._left, False
        return left

    def write_latest(self) -> None:
        """The sink has the last snapshot."""
        if self.latest is not None and self._latest_is_new:
            self._answer.replace(self.latest)
            self._latest_is_new, self._left = False, True

    def resume(self, saved: Sequence[Saved] | None, latest: pa.RecordBatch | None) -> None:
        """Go on from a checkpoint, with what it keeps of the sinks; None where it does not know them."""
        for each, kept in zip(self.sinks, [*(saved or ()), None, None], strict=False):
            each.restore(kept, latest if each is self._answer else None)
        self.latest, self._latest_is_new = latest, False

    def close(self) -> None:
        """Close the sinks, after everything has been shown."""
        for each in self.sinks:
            each.close()

    def abort(self) -> None:
        for each in self.sinks:
            each.abort()
