"""A query that shares its join with others in this process: where its answer goes, and how it is doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from transom.connectors.memory import MemorySink
from transom.connectors.sink import Sink
from transom.pipeline.branch import Branch
from transom.pipeline.side import SIDE
from transom.program.run import Order
from transom.program.status import Status


class LocalMember:
    """`branch` is what makes its answer; `tell` how it is doing is for the group to say, and whether it is `over`."""

    def __init__(
        self, order: Order, branch: Branch, over: Callable[[], bool], tell: Callable[[LocalMember], Status]
    ) -> None:
        self.name = order.name
        self.branch = branch
        self.parts: list[int | None] = [None, None]
        self._order = order
        self._over = over
        self._tell = tell
        self._sink: Sink | None = None
        self._side: Sink | None = None
        self.latest: pa.RecordBatch | None = None
        self._latest_is_new = False

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self.open()[0]

    @property
    def side(self) -> Sink | None:
        """Where refused rows go."""
        self.open()
        return self._side

    @property
    def in_memory(self) -> bool:
        return isinstance(self.sink, MemorySink)

    @property
    def finished(self) -> bool:
        return self._over()

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        self.show()
        sink = self.sink
        assert isinstance(sink, MemorySink)
        return sink.table()

    def status(self) -> Status:
        return self._tell(self)

    def open(self) -> list[Sink]:
        """The sinks; opened when they are first needed."""
        if self._sink is None:
            self._sink = self._order.open_sink(self.branch.consumer.output_schema, self.parts[0])
            open_side = self._order.open_side
            self._side = None if open_side is None else open_side(SIDE, self.parts[1])
        return [self._sink] if self._side is None else [self._sink, self._side]

    def write(self, rows: pa.RecordBatch) -> None:
        if self.branch.consumer.emit_name == "latest":
            self.latest, self._latest_is_new = rows, True
        else:
            self.sink.write(rows)

    def show(self) -> None:
        """What was written until now is seen."""
        sinks = self.open()
        if self.latest is not None and self._latest_is_new:
            sinks[0].replace(self.latest)
            self._latest_is_new = False
        for sink in sinks:
            sink.commit()

    def go_on(self, parts: Sequence[int] | None, latest: pa.RecordBatch | None) -> None:
        """From a checkpoint: the sinks have so many parts; None where it does not know them."""
        self.abandon()
        self._sink = self._side = None
        self.parts[:] = [None, None] if parts is None else [*parts, 0][:2]
        self.latest, self._latest_is_new = latest, True

    def close(self) -> None:
        self.show()
        for sink in self.open():
            sink.close()

    def abandon(self) -> None:
        for sink in (self._sink, self._side):
            if sink is not None:
                sink.abandon()
