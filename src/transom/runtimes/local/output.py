"""Where the answer of a query goes in this process, and the rows that were refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.pipeline.side import SIDE
from transom.program.run import Order
from transom.program.sink_epochs import Saved, SinkEpochs


class QueryOutput:
    """The sinks of a query whose answer has these columns; they are opened when they are first needed.

    With `snapshots` the last rows are the whole answer, which is shown in place of the one before.
    """

    def __init__(self, order: Order, schema: pa.Schema, snapshots: bool) -> None:
        self.snapshots = snapshots
        self.latest: pa.RecordBatch | None = None
        self._latest_is_new = False
        self._answer = SinkEpochs(order.open_sink, schema, snapshots)
        self.side = None if order.open_side is None else SinkEpochs(order.open_side, SIDE)
        """Where refused rows go."""

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self._answer.sink

    @property
    def sinks(self) -> list[SinkEpochs]:
        return [self._answer] if self.side is None else [self._answer, self.side]

    def open(self) -> None:
        for each in self.sinks:
            each.open()

    def write(self, rows: pa.RecordBatch) -> bool:
        """Whether the answer is another one now."""
        if self.snapshots:
            changed = self.latest is None or not rows.equals(self.latest)
            self.latest, self._latest_is_new = rows, self._latest_is_new or changed
            return changed
        self._answer.write(rows)
        return len(rows) > 0

    def prepare(self) -> list[Saved]:
        return [each.prepare() for each in self.sinks]

    def show(self) -> bool:
        """What was written until now is seen; whether that is another snapshot than before."""
        replaced = self.show_latest()
        for each in self.sinks:
            each.commit()
        return replaced

    def show_latest(self) -> bool:
        if self.latest is None or not self._latest_is_new:
            return False
        self._answer.replace(self.latest)
        self._latest_is_new = False
        return True

    def go_on(self, saved: Sequence[Saved] | None, latest: pa.RecordBatch | None) -> None:
        """From a checkpoint, with what it keeps of the sinks; None where it does not know them."""
        for each, kept in zip(self.sinks, [*(saved or ()), None, None], strict=False):
            each.restore(kept)
        self.latest, self._latest_is_new = latest, True

    def close(self) -> None:
        """After everything has been shown."""
        for each in self.sinks:
            each.close()

    def abandon(self) -> None:
        for each in self.sinks:
            each.abort()
