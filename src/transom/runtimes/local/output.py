"""Where the answer of a query goes in this process, and the rows that were refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from transom.connectors.sink import Sink
from transom.pipeline.side import SIDE
from transom.program.run import Order


class QueryOutput:
    """The sinks of a query whose answer has these columns; they are opened when they are first needed.

    With `snapshots` the last rows are the whole answer, which is shown in place of the one before.
    """

    def __init__(self, order: Order, schema: pa.Schema, snapshots: bool) -> None:
        self.snapshots = snapshots
        self.latest: pa.RecordBatch | None = None
        self._latest_is_new = False
        self._order = order
        self._schema = schema
        self._parts: list[int | None] = [None, None]
        self._sink: Sink | None = None
        self._side: Sink | None = None

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self.open()[0]

    @property
    def side(self) -> Sink | None:
        """Where refused rows go."""
        self.open()
        return self._side

    def open(self) -> list[Sink]:
        if self._sink is None:
            self._sink = self._order.open_sink(self._schema, self._parts[0])
            open_side = self._order.open_side
            self._side = None if open_side is None else open_side(SIDE, self._parts[1])
        return [self._sink] if self._side is None else [self._sink, self._side]

    def write(self, rows: pa.RecordBatch) -> bool:
        """Whether the answer is another one now."""
        if self.snapshots:
            changed = self.latest is None or not rows.equals(self.latest)
            self.latest, self._latest_is_new = rows, self._latest_is_new or changed
            return changed
        self.sink.write(rows)
        return len(rows) > 0

    def prepare(self) -> list[int]:
        return [sink.prepare() for sink in self.open()]

    def show(self) -> bool:
        """What was written until now is seen; whether that is another snapshot than before."""
        sinks = self.open()
        replaced = self.latest is not None and self._latest_is_new
        if self.latest is not None and replaced:
            sinks[0].replace(self.latest)
            self._latest_is_new = False
        for sink in sinks:
            sink.commit()
        return replaced

    def go_on(self, parts: Sequence[int] | None, latest: pa.RecordBatch | None) -> None:
        """From a checkpoint: the sinks have so many parts; None where it does not know them."""
        self.abandon()
        self._sink = self._side = None
        self._parts[:] = [None, None] if parts is None else [*map(int, parts), 0][:2]
        self.latest, self._latest_is_new = latest, True

    def close(self) -> None:
        """After everything has been shown."""
        for sink in self.open():
            sink.close()

    def abandon(self) -> None:
        for sink in (self._sink, self._side):
            if sink is not None:
                sink.abandon()
