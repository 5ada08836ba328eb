"""The answer of a query as it is now, and as it was: what was written to its sink is kept here as well.

Kept are the changes of the time that SET history names, and the snapshot before them. A change costs what it costs to
hold on to the batch that it came in; batches are folded into the snapshot when there is as much in them as in it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.connector import Opening, OpenSink, Sink
from transom.core.errors import QueryError
from transom.core.time import BEGINNING, format_instant
from transom.flight.fold import COUNT, folded

Kept = dict[str, int | float | str | None]

_LEAST_FOLDED: Final = 65_536
"""Rows; with fewer nothing is gained."""

MOST_STREAM_ROWS: Final = 100_000
"""Of a stream, the rows that came last are its table."""


@dataclass(frozen=True)
class Snapshot:
    """An answer at an instant: rows of `base` as often as `COUNT` says, and `changes` to them, of which those with '-'
    take one away. `changes` None: each row of `base` is there once."""

    base: pa.Table
    changes: pa.Table | None


class AnswerHistory:
    """`history` is in microseconds. It is written by the thread of the query, and read by any."""

    def __init__(self, name: str, history: int = 0) -> None:
        self.name = name
        self._history = history
        self._lock = threading.Lock()
        self._form: str | None = None
        self._resumed = False
        self._base: pa.Table = pa.table({})
        self._base_at = BEGINNING
        """The base is the answer at this instant."""
        self._log: list[pa.RecordBatch] = []
        self._log_rows = 0
        self._pending: list[pa.RecordBatch] = []
        self._columns: pa.Schema = pa.schema([])

    # --- written by the query ----------------------------------------------------------------------------------------

    def open(self, opening: Opening) -> None:
        form, fields = opening.form or "changes", list(opening.schema)
        own = {"changes": 2, "net": 1}.get(form, 0)
        with self._lock:
            self._form = form if opening.key is None else "keyed"
            self._resumed = opening.resume is not None and form != "latest"
            self._columns = pa.schema(fields[own:])
            self._base = _none(self._columns, counted=form in ("changes", "net"))
            self._base_at, self._log, self._log_rows, self._pending = BEGINNING, [], 0, []

    def write(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            self._base = pa.Table.from_batches([batch], self._columns)

    def commit(self) -> None:
        """What was written is seen from now on."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        with self._lock:
            self._log += pending
            self._log_rows += sum(len(batch) for batch in pending)
            if self._form == "stream":
                self._drop_oldest()
        if self._form in ("changes", "net") and self._log_rows > max(_LEAST_FOLDED, 2 * len(self._base)):
            self._fold()

    def forget(self) -> None:
        """What was not committed."""
        self._pending = []

    def _drop_oldest(self) -> None:
        while self._log and self._log_rows - len(self._log[0]) >= MOST_STREAM_ROWS:
            self._log_rows -= len(self._log.pop(0))

    def _fold(self) -> None:
        """Changes that nobody may ask for any more become part of the base."""
        changes = pa.Table.from_batches(self._log)
        base_at = self._base_at
        if self._form == "changes":
            at = changes.column(1).cast(pa.int64())
            base_at = pc.max(at).as_py() - self._history
            old = pc.less_equal(at, base_at)
            changes, rest = changes.filter(old), changes.filter(pc.invert(old))
        else:
            rest = changes.slice(0, 0)
        base = folded(self._base, _signed(changes, self._columns), self._columns)
        with self._lock:
            self._base, self._base_at = base, base_at
            self._log, self._log_rows = rest.to_batches(), len(rest)

    # --- read by others ----------------------------------------------------------------------------------------------

    @property
    def columns(self) -> pa.Schema:
        return self._columns

    @property
    def offered(self) -> bool:
        """Whether its form is one that has snapshots, or that of a stream."""
        return self._form in ("changes", "net", "latest", "stream")

    def kept(self) -> Kept:
        """How many rows and bytes are kept, and from which instant on, for the status."""
        with self._lock:
            size = self._base.nbytes + sum(batch.nbytes for batch in self._log)
            rows = len(self._base) + self._log_rows
            since = None if self._base_at <= BEGINNING else format_instant(self._base_at)
        return {"seconds": self._history / 1e6, "rows": rows, "bytes": size, "from": since}

    def at(self, instant: int | None = None) -> Snapshot:
        """The answer now, or at an instant that is still known."""
        with self._lock:
            self._check(instant)
            if self._form == "latest":
                return Snapshot(self._base, None)
            log = pa.Table.from_batches(self._log, self._log[0].schema) if self._log else None
            base = self._base
        if log is not None and instant is not None:
            log = log.filter(pc.less_equal(log.column(0 if self._form == "stream" else 1).cast(pa.int64()), instant))
        if self._form == "stream":
            return Snapshot(base if log is None else log.rename_columns(self._columns.names), None)
        empty = base.slice(0, 0)
        return Snapshot(base, empty if log is None else _signed(log, self._columns))

    def _check(self, instant: int | None) -> None:
        if self._resumed:
            raise QueryError(
                f"the answer of '{self.name}' is not known as a whole: its query was resumed from a checkpoint",
                remedy="write it with emit = 'latest', or start it without the checkpoint",
            )
        if instant is None:
            return
        if self._form in ("latest", "net"):
            raise QueryError(
                f"of '{self.name}' only the answer as it is now is known: it is written as {self._form}",
                remedy="leave out AS OF, or write the query with emit = 'changes'",
            )
        if instant < self._base_at or (self._form == "changes" and self._history == 0):
            since = "now" if self._history == 0 else format_instant(self._base_at)
            raise QueryError(
                f"the answer of '{self.name}' is known from {since} on",
                remedy="ask for a later instant, or keep more: SET history = '1 HOUR'",
            )


class RememberedSink(Sink):
    """A sink of whose rows a live answer hears as well. On Spark, rows come to the driver for it."""

    def __init__(self, sink: Sink, live: AnswerHistory) -> None:
        self._sink, self._live = sink, live
        self.snapshots = sink.snapshots  # type: ignore[misc]  # as the sink within

    @property
    def full(self) -> bool:
        return self._sink.full

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.write(batch)
        self._live.write(batch)

    def replace(self, batch: pa.RecordBatch) -> None:
        self._sink.replace(batch)
        self._live.replace(batch)

    def prepare(self, epoch: int) -> Any:
        return self._sink.prepare(epoch)

    def commit(self, epoch: int, token: Any) -> None:
        self._sink.commit(epoch, token)
        self._live.commit()

    def abort(self, epoch: int) -> None:
        self._live.forget()
        self._sink.abort(epoch)

    def close(self) -> None:
        self._sink.close()

    def collected(self) -> pa.Table | None:
        return self._sink.collected()


def with_history(opens: OpenSink, live: AnswerHistory) -> OpenSink:
    def opened(opening: Opening) -> Sink:
        live.open(opening)
        return RememberedSink(opens(opening), live)

    return OpenSink(opened, opens.check, path=opens.path)


def _none(columns: pa.Schema, counted: bool) -> pa.Table:
    return (columns.append(pa.field(COUNT, pa.int64())) if counted else columns).empty_table()


def _signed(changes: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows of changes, each with how many of it come or go."""
    sign = pc.if_else(pc.equal(changes.column(0).cast(pa.string()), "+"), 1, -1)
    rows = changes.select(list(range(changes.num_columns - len(columns), changes.num_columns)))
    return pa.table([*rows.columns, sign.cast(pa.int64())], names=[*columns.names, COUNT])
