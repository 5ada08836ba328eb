"""A query that shares its join with others in this process: where its answer goes, and how it is doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from transom.connectors.connector import Sink
from transom.pipeline.branch import Branch
from transom.pipeline.side import SIDE
from transom.program.run import Order
from transom.program.sink_epochs import Saved, SinkEpochs
from transom.program.status import Status


class LocalMember:
    """`branch` is what makes its answer; `tell` how it is doing is for the group to say, and whether it is `over`."""

    def __init__(
        self, order: Order, branch: Branch, over: Callable[[], bool], tell: Callable[[LocalMember], Status]
    ) -> None:
        self.name = order.name
        self.branch = branch
        self._over = over
        self._tell = tell
        self._answer = SinkEpochs(order.open_sink, branch.output_schema, branch.emit_name == "latest")
        self.side = None if order.open_side is None else SinkEpochs(order.open_side, SIDE)
        """Where refused rows go."""
        self.latest: pa.RecordBatch | None = None
        self._latest_is_new = False

    @property
    def sink(self) -> Sink:
        """Where the answer goes."""
        return self._answer.sink

    @property
    def sinks(self) -> list[SinkEpochs]:
        return [self._answer] if self.side is None else [self._answer, self.side]

    @property
    def in_memory(self) -> bool:
        return self.sink.collected() is not None

    @property
    def finished(self) -> bool:
        return self._over()

    def table(self) -> pa.Table:
        """The answer so far, of a query whose answer stays in memory."""
        self._show_latest()
        found = self.sink.collected()
        assert found is not None
        return found

    def status(self) -> Status:
        return self._tell(self)

    def open(self) -> None:
        """Before anything is read."""
        for each in self.sinks:
            _ = each.sink

    def write(self, rows: pa.RecordBatch) -> None:
        if self.branch.emit_name == "latest":
            self.latest, self._latest_is_new = rows, True
        else:
            self._answer.write(rows)

    def show(self) -> None:
        """What was written until now is seen."""
        self._show_latest()
        for each in self.sinks:
            each.commit()

    def _show_latest(self) -> None:
        if self.latest is not None and self._latest_is_new:
            self._answer.replace(self.latest)
            self._latest_is_new = False

    def go_on(self, saved: Sequence[Saved] | None, latest: pa.RecordBatch | None) -> None:
        """From a checkpoint, with what it keeps of the sinks; None where it does not know them."""
        for each, kept in zip(self.sinks, [*(saved or ()), None, None], strict=False):
            each.restore(kept)
        self.latest, self._latest_is_new = latest, True

    def close(self) -> None:
        self._show_latest()
        for each in self.sinks:
            each.close()

    def abandon(self) -> None:
        for each in self.sinks:
            each.abort()
